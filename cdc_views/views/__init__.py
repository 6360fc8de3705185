"""What the user declares: view files, the kinds of views, and which view reads which.

text.py            positions in a view file: from an offset to file, line and column; its tokens
definition.py      one file: CREATE MATERIALIZED VIEW ... AS SELECT ...
kinds/             the kinds of views: their options, and what each adds to the SELECT
quoting.py         names in Spark SQL
selected.py        the names of a SELECT's columns, as far as its text says
postgres_forms.py  refuses forms of Postgres that Spark SQL does not have
nesting.py         refuses queries that are nested too deeply
join_parentheses.py  parentheses around joins that change nothing
references.py      which tables and views a SELECT reads, and where it names them
expression_text.py where an expression is written, and whether two are written alike
graph.py           the views in the order in which they depend on each other
"""
