"""What the user declares: view files, the kinds of views, and who reads whom.

text.py         places in a view file: from an offset to file, line and column
definition.py   one file: CREATE MATERIALIZED VIEW ... AS SELECT ...
kinds.py        the kinds of views and their options
references.py   which tables and views a SELECT reads, and where it names them
graph.py        the views in the order in which they depend on each other
"""
