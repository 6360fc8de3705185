"""Step 5: the views, from their declaration to their commit.

declare.py            the Delta table of each view, as Spark's analyser describes the view
project_analysis.py   the same analysis without a warehouse, for `check` and `explain`
kept.py               how views are kept, for readers
planning.py           the plan of a view, from the tables that the analyser has found
internal_views.py     the tables of internal views
maintain.py           updates the views whose inputs changed
inputs.py             what the views read in an epoch, at the old and the new version
choice.py             the strategies by which a view can be updated, the cheapest first
lookups.py            runs the lookups of a plan
search/               the tables of search indexes
saved/                views of saved searches
queries/              Spark SQL over the inputs of a view, or over a few rows
strategies/           how the changes of one view are computed
failures.py           why a view failed, without row values
view_tables.py        path and columns of a view's table
analysis/             what Spark's analyser says about a view
"""
