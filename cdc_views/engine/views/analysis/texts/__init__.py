"""Refuses operations on text columns for which Spark and Postgres would give different answers.

Some Postgres types (numeric without a scale, money, uuid, json, ...) are text in a mirror. `plan/text_types.py` says
which operations on such text answer as Postgres does on the value. The modules here follow the columns through Spark's
analysed plan: through aliases, subqueries, CTEs, set operations, structs, arrays, and functions that return one of
their arguments. An operation that is not listed here is refused. A cast in the view's SQL ends the tracking: from
there on the view says which type it means.

tags.py           what a value holds: text of a column, an array or a struct with such text
functions.py      what each expression class of Spark does with its arguments
values.py         what is known of an expression, and the comparisons that are refused
expressions.py    from the arguments of an expression to its value
plans.py          from the inputs of a plan operator to its outputs
check.py          checks a view and names the place of the first operation that is refused
"""

from cdc_views.engine.views.analysis.texts.check import check_text_columns
from cdc_views.engine.views.analysis.texts.tags import TextColumns, text_columns

__all__ = ["TextColumns", "check_text_columns", "text_columns"]
