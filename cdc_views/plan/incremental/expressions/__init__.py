"""Values that a view computes and that internal views store: those of GROUP BY lower(name), or of a subquery.

written.py        the text of an expression in the view
known.py          stored values as columns of a plan, and the expressions that a plan lacks
subquery_text.py  where a subquery stands in the text
one_row.py        subqueries with one row that does not depend on the rows around them
derived_table.py  derived tables that are joined by a column that they compute
stored_groups.py  grouping sets that cannot be added up as the view selects them
select_text.py    the items of a SELECT over stored aggregates
internal_view.py  the views that store them
"""
