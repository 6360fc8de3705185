"""From a view's SQL to how it is maintained: what is refused, its key, its strategy. No Spark here.

support.py    refuses queries whose result is not a function of their tables, with file, line and column
refusals.py   the reasons and hints of refusals, also for engine/views/analysis/determinism.py
relation.py   what is known of a relation: columns, types, key; and how names in a FROM are resolved
joins.py      the key of a join, from the keys of its sides
keys.py       which columns identify a view's rows, if that can be proven
order.py      completes an ORDER BY that may tie by the key, or refuses it
names.py      gives columns without a name the one that Postgres gives them
text_types.py Postgres types that mirrors hold as text, and which operations on the text are right
compiled.py   a view as the engine needs it: inputs, key, and its SQL over given relations
dialect.py    where Spark SQL and Postgres give different answers
explain.py    all of that as text
incremental/  what is looked up and computed again when an input changes
"""
