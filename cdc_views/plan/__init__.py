"""From a view's SQL to how it is maintained: what is refused, its key, its strategy. No Spark here.

support.py    refuses queries whose result is not a function of their tables, with file, line and column
refusals.py   the reasons and hints of refusals, also for engine/views/analysis/determinism.py
facts/        what can be proven of a query's rows: columns, key, order
text_types.py Postgres types that mirrors hold as text, and which operations on the text are right
compiled.py   a view as the engine needs it: inputs, key, and its SQL over given relations
dialect.py    where Spark SQL and Postgres give different answers
explain.py    all of that as text
incremental/  what is looked up and computed again when an input changes
"""
