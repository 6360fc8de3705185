"""Step 5: the views, from their declaration to their commit.

declare.py            the Delta table of each view, as Spark's analyser describes the view
project_analysis.py   the same analysis without a warehouse, for `check` and `explain`
kept.py               how views are kept, for readers
maintain.py           updates the views whose inputs changed
search_tables.py      the tables of search indexes
saved/                views of saved searches
relations.py          the inputs of queries, as temporary views
strategies/           how the changes of one view are computed
failures.py           why a view failed, without row values
view_tables.py        path and columns of a view's table
analysis/             what Spark's analyser says about a view
"""
