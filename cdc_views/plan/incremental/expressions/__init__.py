"""Values that a view computes and by which its rows are found: GROUP BY lower(name).

written.py        the text of an expression in the view
known.py          stored values as columns of a plan, and the expressions that a plan lacks
internal_view.py  the views that store them
"""
