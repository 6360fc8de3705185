"""What can be proven of the rows of a query, from its SQL and the facts of its inputs.

relation.py      what is known of a relation: columns, types, key; and how names in a FROM are resolved
joins.py         the key of a join, from the keys of its sides
grouping_sets.py the columns of GROUPING SETS, ROLLUP and CUBE
keys.py          which columns identify a view's rows, if that can be proven
order.py         completes an ORDER BY that may tie by the key, or refuses it
names.py         gives columns without a name the one that Postgres gives them
"""
