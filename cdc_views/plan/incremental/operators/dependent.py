"""Dependent: a subquery in an expression (EXISTS, IN, a scalar), a semi or anti join, or LATERAL.

For each row of the outer side, its value is a function of the inner rows whose columns equal those of the outer row.
So the rules are those of a left join that preserves the outer side: the outer rows first, then all inner rows that
they compare with; and a changed inner row changes the output of each outer row that compares with it. Inner rows that
remove output (NOT EXISTS) are inner rows like others. An aggregate or LIMIT of a correlated subquery is computed for
each outer row on its own, so the inner side is the subquery's input, below them.

For `x IN (SELECT y ...)` without correlation, the inner side is the whole subquery, and the equality is x = y. Where
NULL means the same as false, inner rows with other values of y decide nothing. Elsewhere, as in NOT IN and in SELECT,
they do: one NULL among them makes `x IN (...)` NULL instead of false, and a row where x is NULL depends on whether
there are inner rows at all. So both x and y must never be NULL: as key columns of a table, because WHERE has `IS NOT
NULL` for them, or as columns that the source declares NOT NULL and that hold no NULL before and after the epoch. Then
`x IN (...)` is true or false, and is true exactly if there is an inner row with y = x. The declaration alone is not
enough: no event says that it has changed, and the mirror may have older rows. So each epoch looks
(engine/views/strategies/keys.py).

The same holds for `(x, z) IN (SELECT y, w ...)`, with an equality for each of the values; any of these leave all rows
that decide.

    SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'paid')

    a change of public.users affects (id)
    a change of public.orders affects (id)
      look up public.users by (id) from (user_id) of public.orders
    the rows of affected (id) are computed again from
      public.users by (id) from (id) of the affected keys
      public.orders by (user_id) from (id) of public.users
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_views.plan.incremental.operators.outer_join import OuterJoin


@dataclass(frozen=True)
class Dependent(OuterJoin):
    """`preserved` is the outer side, `optional` the inner one."""
