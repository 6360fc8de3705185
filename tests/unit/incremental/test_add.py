"""ADD: which views it maintains, and that it gives the view's SQL after every epoch, or leaves the epoch to FULL."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from cdc_views.engine.views.strategies import Incremental, TooMany
from cdc_views.plan.explain import explain
from cdc_views.store.warehouse import RowsChanged
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, Table, UnequalView, tuples
from tests.unit.incremental.played import declared, is_kept, kept_by, random_states

TABLES: Final = (
    Table("a", {"id": "bigint", "d": "decimal", "h": "int", "s": "text"}, ("id",)),
    Table("b", {"id": "bigint", "d": "decimal", "h": "int", "s": "text"}, ("id",)),
    Table("f", {"id": "bigint", "x": "date"}, ()),
)
BOTH: Final = "(SELECT d, h, s FROM a UNION ALL SELECT d, h, s FROM b) q"
TOTAL: Final = "CAST(sum(d) AS DECIMAL(18, 2)) AS total"

VIEWS: Final = {
    "one table": f"SELECT {TOTAL}, count(*) AS n FROM a",
    "no count": f"SELECT {TOTAL} FROM a",
    "no casts": "SELECT sum(d) AS total, count(d) AS n FROM a",
    "union all": f"SELECT {TOTAL}, count(d) AS n, count(*) AS holdings FROM {BOTH}",
    "one table twice": f"SELECT {TOTAL}, count(s) AS n FROM (SELECT d, s FROM a UNION ALL SELECT d, s FROM a) q",
    "whole numbers": "SELECT CAST(sum(h) AS BIGINT) AS total, CAST(count(h) AS INT) AS n FROM a",
    "casts within casts": "SELECT CAST(CAST(sum(d) AS DECIMAL(20, 2)) AS DECIMAL(24, 4)) AS total FROM a",
    "whole numbers as decimals": "SELECT CAST(sum(h + 1) AS DECIMAL(20, 2)) AS total FROM a",
    "filters": (
        "SELECT CAST(sum(d) FILTER (WHERE h = 1) AS DECIMAL(18, 2)) AS total, count(d) FILTER (WHERE h = 1) AS n, "
        "count(*) FILTER (WHERE s IS NULL) AS m FROM a WHERE s <> 'b' OR s IS NULL"
    ),
    "case": "SELECT CAST(sum(CASE WHEN s = 'a' THEN d ELSE -d END) AS DECIMAL(18, 2)) AS total FROM a",
    "coalesce": "SELECT CAST(sum(coalesce(d, 0)) AS DECIMAL(18, 2)) AS total, count(1) AS n FROM a",
    "cast of the values": "SELECT CAST(sum(CAST(id * 2 AS BIGINT)) AS BIGINT) AS total FROM a",
    "nested projections": (
        "SELECT CAST(sum(v) AS BIGINT) AS total FROM (SELECT v FROM (SELECT h AS v, s FROM a WHERE h > 0) p "
        "WHERE s <> 'a' UNION ALL (SELECT h FROM b))"
    ),
    "CTE": (
        "WITH c AS (SELECT d, h FROM a), e AS (SELECT d FROM c WHERE h = 1 UNION ALL SELECT d FROM c) "
        f"SELECT {TOTAL}, count(*) AS n FROM e"
    ),
    "copies of rows": "SELECT count(x) AS n, count(*) AS m FROM f",
    "rows without columns": "SELECT count(*) AS n FROM a",
    "stars": f"SELECT {TOTAL}, count(*) AS n FROM (SELECT * FROM a UNION ALL SELECT * FROM b) q",
}


def state(*rows: tuple[Any, ...], **tables: Sequence[tuple[Any, ...]]) -> State:
    """The rows of `a` as (id, d), and those of other tables."""
    return {"a": [(*row, 1, None) for row in rows], "b": [], "f": [], **tables}


maintained = partial(kept_by, "ADD", TABLES)


def row(memory: Memory) -> tuple[Any, ...]:
    (only,) = tuples(memory.views["v"].stored.versions[-1])
    return only


def money(value: str) -> Decimal:
    return Decimal(value)


# ---- random histories


def maintained_at_random(sql: str) -> Memory:
    return maintained(sql, *random_states(TABLES, SEED, OF_EACH_VIEW))


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained_at_random(VIEWS[name]))


@pytest.mark.parametrize("name", ["one table", "union all", "copies of rows"])
def test_control_that_forgets_the_removed_rows_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = Incremental.delta

    def forgetful(work: Any, leaf: Any) -> RowsChanged:
        found = delta(work, leaf)
        return RowsChanged(found.old.slice(0, 0), found.new)

    monkeypatch.setattr(Incremental, "delta", forgetful)
    rows = [(1, money("1.00"), 1, None)]
    dates = [(1, None), (1, None)]
    with pytest.raises(UnequalView):
        maintained(VIEWS[name], state(a=rows, f=dates), state(f=dates[:1]))


# ---- NULL


def in_full(memory: Memory) -> tuple[int, int]:
    return memory.by_keys, memory.in_full


def test_sum_that_is_null_gets_the_added_values() -> None:
    memory = maintained(VIEWS["no count"], state((1, None)), state((1, None), (2, money("0.00"))))
    assert (row(memory), in_full(memory)) == ((money("0.00"),), (2, 0))


def test_sum_that_is_null_stays_null_without_values() -> None:
    memory = maintained(VIEWS["no count"], state(), state((1, None)), state((2, None)))
    assert (row(memory), in_full(memory)) == ((None,), (2, 0))


def test_count_of_the_values_decides_that_a_sum_is_null() -> None:
    before = state((1, money("1.00")), (2, None))
    memory = maintained(VIEWS["no casts"], before, state((2, None)))
    assert (row(memory), in_full(memory)) == ((None, 0), (2, 0))


def test_count_of_the_values_decides_that_a_sum_is_zero() -> None:
    before = state((1, money("1.00")), (2, money("0.00")))
    memory = maintained(VIEWS["no casts"], before, state((2, money("0.00"))))
    assert (row(memory), in_full(memory)) == ((money("0.00"), 1), (2, 0))


def test_count_of_all_rows_that_is_zero_decides_that_a_sum_is_null() -> None:
    memory = maintained(VIEWS["one table"], state((1, money("1.00"))), state())
    assert (row(memory), in_full(memory)) == ((None, 0), (2, 0))


@pytest.mark.parametrize("left", [None, money("0.00")])
@pytest.mark.parametrize("name", ["one table", "no count"])
def test_sum_of_zero_that_may_be_null_is_left_to_full(name: str, left: Decimal | None) -> None:
    before = state((1, money("1.00")), (2, left))
    memory = maintained(VIEWS[name], before, state((2, left)))
    assert (row(memory)[0], in_full(memory)) == (left, (1, 1))


def test_count_of_the_values_under_another_filter_does_not_decide() -> None:
    sql = f"SELECT {TOTAL}, count(d) FILTER (WHERE s IS NULL) AS n, count(*) FILTER (WHERE s = 'a') AS m FROM a"
    rows = [(1, money("1.00"), 1, "b"), (2, money("0.00"), 1, "b")]
    memory = maintained(sql, state(a=rows), state(a=rows[1:]))
    assert (row(memory), in_full(memory)) == ((money("0.00"), 0, 0), (1, 1))


def test_sum_that_is_null_has_no_values_to_remove() -> None:
    memory = maintained(VIEWS["no count"], state((1, money("1.00"))))
    view = memory.views["v"]
    view.stored.versions.append(view.stored.versions[0])
    with pytest.raises(TooMany, match='"total" is NULL, but has values to remove'):
        memory.changes(view, memory.write(state()))


# ---- ranges, and epochs that are left to FULL


def test_total_beyond_the_type_of_the_column_is_left_to_full() -> None:
    memory = maintained("SELECT CAST(sum(d) AS DECIMAL(4, 2)) AS total FROM a", state((1, money("60.00"))))
    with pytest.raises(TooMany, match='column "total" is beyond the range'):
        memory.changes(memory.views["v"], memory.write(state((1, money("60.00")), (2, money("60.00")))))


def test_total_beyond_a_type_on_the_way_to_the_column_is_left_to_full() -> None:
    sql = "SELECT CAST(CAST(count(*) AS TINYINT) AS BIGINT) AS n FROM a"
    rows = [(number, None) for number in range(128)]
    memory = maintained(sql, state(*rows[:127]))
    with pytest.raises(TooMany):
        memory.changes(memory.views["v"], memory.write(state(*rows)))


def test_total_of_38_digits_is_exact() -> None:
    sql = "SELECT sum(CAST(s AS DECIMAL(38, 2))) AS total FROM a"
    rows = [(number, None, 1, f"{number}23456789012345678901234567890.1{number}") for number in range(3)]
    memory = maintained(sql, state(a=rows[:2]), state(a=rows[1:]))
    assert row(memory) == (money("346913578024691357802469135780.23"),)


def test_change_of_too_many_rows_is_left_to_full() -> None:
    memory = declared(TABLES, VIEWS["one table"])
    memory.delta_rows = 1
    memory.epoch(state((1, money("1.00")), (2, money("1.00"))))
    memory.epoch(state((1, money("1.00"))))
    assert (row(memory), in_full(memory)) == ((money("1.00"), 1), (1, 1))


def test_view_without_a_stored_row_is_left_to_full() -> None:
    memory = declared(TABLES, VIEWS["one table"])
    view = memory.views["v"]
    view.stored.versions.append(view.stored.versions[-1].slice(0, 0))
    with pytest.raises(TooMany, match="0 rows of totals, wanted 1"):
        memory.changes(view, memory.write(state((1, money("1.00")))))


@pytest.mark.parametrize("after", [((1, "2.00"), (2, "1.00")), ((3, "1.00"), (4, "2.00")), ((1, "3.00"), (2, "0.00"))])
def test_changes_that_cancel_commit_nothing(after: Sequence[tuple[int, str]]) -> None:
    memory = maintained(VIEWS["one table"], state((1, money("1.00")), (2, money("2.00"))))
    old = memory.write(state(*((number, money(value)) for number, value in after)))
    assert memory.changes(memory.views["v"], old) is None


# ---- the choice of the strategy

# No internal view stores totals over it (test_stored_totals.py).
RENAMED: Final = "a AS q(id, d, h, s)"
REFUSED: Final = {
    "SELECT CAST(sum(DISTINCT d) AS DECIMAL(18, 2)) AS n FROM a": 'column "n" is neither',
    f"SELECT count(*) + 1 AS n FROM {RENAMED}": 'column "n" is neither',
    f"SELECT coalesce(sum(d), 0) AS n FROM {RENAMED}": 'column "n" is neither',
    "SELECT sum(CAST(h AS DOUBLE)) AS n FROM a": 'column "n" is a sum of type double, neither',
    "SELECT CAST(sum(CAST(h AS DOUBLE)) AS BIGINT) AS n FROM a": 'column "n" casts a sum whose values are not certain',
    "SELECT CAST(sum(h / 2) AS BIGINT) AS n FROM a": 'column "n" casts a sum whose values are not certain',
    f"SELECT CAST(sum(abs(h)) AS BIGINT) AS n FROM {RENAMED}": "cast the values themselves",
    f"SELECT CAST(sum(d) AS DOUBLE) AS n FROM {RENAMED}": 'column "n" has another cast than',
    f"SELECT TRY_CAST(sum(d) AS DECIMAL(18, 2)) AS n FROM {RENAMED}": 'column "n" has another cast than',
    f"SELECT CAST(sum(d) AS DECIMAL(18, 1)) AS n FROM {RENAMED}": (
        'column "n" has a CAST from decimal128(18, 2) to decimal128(18, 1), which rounds'
    ),
    f"SELECT CAST(sum(d) AS BIGINT) AS n FROM {RENAMED}": "which rounds",
    f"SELECT CAST(CAST(count(*) AS DECIMAL(9, 0)) AS INT) AS n FROM {RENAMED}": (
        "decimal128(9, 0) to int32, which rounds"
    ),
    f"SELECT count(*) AS n FROM {RENAMED} HAVING count(*) > 1": "HAVING",
    "SELECT DISTINCT count(*) AS n FROM a": "DISTINCT",
    "SELECT count(*) AS n FROM a ORDER BY n LIMIT 1": "LIMIT",
    "SELECT count(*) AS n FROM a, b": 'no equality of columns joins "public.b"',
    "SELECT count(*) AS n FROM a FULL JOIN b ON a.id = b.id": "a join that is no inner join of tables",
    "SELECT count(*) AS n FROM (SELECT count(*) AS m FROM a) q": "an aggregate, or what may be one, below it",
    "SELECT count(m) AS n FROM (SELECT product(h) AS m FROM a) q": "an aggregate, or what may be one, below it",
    "SELECT count(*) AS n FROM (SELECT id FROM a ORDER BY id LIMIT 2) q": "LIMIT",
    "SELECT count(*) AS n FROM (SELECT id, row_number() OVER (ORDER BY id) AS r FROM a) q WHERE r < 3": "a window",
    "SELECT count(*) AS n FROM (SELECT h FROM a UNION ALL SELECT 1) q": "a SELECT without FROM",
    "SELECT count(*) AS n FROM (SELECT DISTINCT h + 1 AS v FROM a) q": "DISTINCT",
    "SELECT count(*) AS n FROM a WHERE h + 1 IN (SELECT h FROM b)": "a subquery in an expression",
    "SELECT count((SELECT max(h) FROM b)) AS n FROM a": "a subquery in an expression",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_other_view_is_maintained_in_full_with_the_reason(sql: str) -> None:
    plan = declared(TABLES, sql).views["v"].plan
    start = "the whole query is run and compared with the stored rows: an aggregate over all rows that cannot be "
    "added up: "
    assert (plan.strategy, plan.reason[: len(start)]) == ("FULL", start)
    assert REFUSED[sql] in plan.reason


def test_explanation_of_the_demo_names_the_strategy_and_its_reason() -> None:
    text = (Path(__file__).parents[3] / "cdc_views" / "demo" / "views" / "bank_total.sql").read_text()
    columns = {"id": "bigint", "balance": "decimal"}
    memory = Memory([Table(name, columns, ("id",)) for name in ("accounts", "savings")])
    sql = text.partition(" AS\n")[2].rstrip(";\n")
    memory.declare({"bank_total": sql})
    view = memory.views["bank_total"]
    assert explain(view.compiled, view.plan).lines() == [
        "view: bank_total",
        "strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are "
        "subtracted",
        "key: (): an aggregate without GROUP BY has one row",
        "inputs: public.accounts, public.savings",
        "steps of the query, each over those below it:",
        "  select CAST(sum(balance) AS DECIMAL(18, 2)) AS total, count(*) AS holdings; one row",
        "    make one group of all rows; one row",
        "      holdings: all rows of all inputs; rows may repeat",
        "        select balance; rows may repeat",
        "          read public.accounts; one row for each (id)",
        "        select balance; rows may repeat",
        "          read public.savings; one row for each (id)",
        "sql:",
        "  SELECT CAST(SUM(balance) AS DECIMAL(18, 2)) AS total, COUNT(*) AS holdings",
        "  FROM (",
        "      SELECT balance FROM public.accounts AS accounts",
        "      UNION ALL",
        "      SELECT balance FROM public.savings AS savings",
        "  ) holdings",
    ]
