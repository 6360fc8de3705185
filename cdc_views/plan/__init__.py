"""From a view's SQL to how it is kept: what is refused, its key, its strategy. No Spark here.

support.py    queries whose result is not a function of their tables, refused with file, line and column
refusals.py   the words for that, which engine/views/determinism.py uses too
keys.py       which columns identify a view's rows, where that can be proven
order.py      an ORDER BY that may tie is completed by the key, or refused
names.py      columns without a name get the one that Postgres gives them
compiled.py   a view as the engine needs it: inputs, key, strategy, and its SQL over given relations
explain.py    the same, for people
"""
