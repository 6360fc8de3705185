"""What Spark's analyser says about a view, before anything runs.

analysed_view.py     runs the analyser over empty inputs and applies every check below
shapes.py            the empty inputs: tables without rows, as temporary views
plan_tree.py         the analysed plan as a tree of Python objects, fetched in one call
result_columns.py    columns that cannot be published: their names and types
determinism.py       whether the view is a function of its inputs; the classes it judges by are in known_classes.py
texts/               operations on columns that are text in a mirror but not in Postgres
dialect_notes.py     places where Postgres would give another answer
"""

from cdc_views.engine.views.analysis.analysed_view import AnalysedView, analyse_view
from cdc_views.engine.views.analysis.shapes import Shapes
from cdc_views.engine.views.analysis.texts import TextColumns, text_columns

__all__ = ["AnalysedView", "Shapes", "TextColumns", "analyse_view", "text_columns"]
