"""Negative controls: each breaks one rule, and the check of a named view over random histories must notice.

The histories are the same in every run, so a control does not pass or fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc_views.engine.views.inputs import InputVersions
from cdc_views.engine.views.lookups import values_of
from cdc_views.plan.incremental.expressions import known
from cdc_views.plan.incremental.operators import FullJoin, Grouping, OuterJoin, Scan, SetOperation, equalities
from cdc_views.plan.incremental.restrictions import Lookup, Restriction, Values, within
from cdc_views.plan.incremental.scope import Scope
from cdc_views.store.index.changed_rows import RowsChanged
from tests.unit.incremental.memory import Stored
from tests.unit.incremental.played import check_fails
from tests.unit.incremental.zoo import VIEWS, maintained_at_random

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")  # the package has a function of that name
HISTORIES: Final = 100
RANKED: Final = "SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t"


def is_noticed(sql: str, first: int = 0) -> None:
    check_fails(lambda seed: maintained_at_random(sql, seed), HISTORIES, first)


def test_groups_that_are_cut_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_all_columns(self: Grouping, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        return self.child.restrict(restrictions, finding=finding)

    monkeypatch.setattr(Grouping, "restrict", by_all_columns)
    is_noticed(f"SELECT q.id, q.r, w.id AS p, w.k FROM ({RANKED}) q JOIN w ON w.k = q.k", first=26)


def test_partitions_that_are_not_looked_up_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grouping, "find", lambda self, leaf, needed: self.child.find(leaf, needed))
    is_noticed(f"SELECT w.g, q.r, q.g AS h FROM ({RANKED}) q JOIN w ON w.k = q.k", first=34)


def test_partitions_that_are_cut_to_the_rows_found_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    restrict = Grouping.restrict

    def to_rows(self: Grouping, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        return restrict(self, restrictions, finding=finding or self.by_rows)

    monkeypatch.setattr(Grouping, "restrict", to_rows)
    is_noticed(VIEWS["window that is joined by a row"], first=33)


def test_matches_that_are_left_out_of_an_outer_join_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def passable(self: OuterJoin) -> list[frozenset[Any]]:
        return [one | other for one in self.preserved.passable() for other in self.optional.passable()]

    def each_side(self: OuterJoin, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        sides = (self.preserved, self.optional)
        return [found for side in sides for found in side.restrict(within(restrictions, side.leaves), finding=finding)]

    monkeypatch.setattr(OuterJoin, "passable", passable)
    monkeypatch.setattr(OuterJoin, "restrict", each_side)
    is_noticed("SELECT t.g, u.g AS h FROM t LEFT JOIN u ON t.k = u.k", first=12)


def test_full_join_that_is_looked_for_by_one_side_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FullJoin, "passable", lambda self: self.left.passable())
    is_noticed("SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.k = u.k")


def test_sides_of_a_full_join_that_are_restricted_on_their_own_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def each_side(self: FullJoin, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        sides = (self.left, self.right)
        return [found for side in sides for found in side.restrict(within(restrictions, side.leaves), finding=finding)]

    monkeypatch.setattr(FullJoin, "passable", lambda self: [self.left.passable()[0] | self.right.passable()[0]])
    monkeypatch.setattr(FullJoin, "restrict", each_side)
    is_noticed("SELECT t.g, u.g AS h FROM t FULL JOIN u ON t.k = u.k")


@pytest.mark.parametrize("kind", ["left join", "exists", "groups"])
def test_null_that_equals_null_and_is_not_looked_up_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    views = {
        "left join": VIEWS["left join in which null equals null"],
        "exists": VIEWS["exists in which null equals null"],
        "groups": VIEWS["right join in which null equals null"],
    }
    monkeypatch.setattr(equalities, "Values", lambda columns, is_join=True: Values(columns))
    is_noticed(views[kind])


def test_null_for_want_of_a_match_that_is_not_looked_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equalities, "passes", lambda operator, origin: True)
    is_noticed("SELECT t.id, w.id AS o, w.k FROM t LEFT JOIN u ON u.k = t.k JOIN w ON w.g IS NOT DISTINCT FROM u.g")


def test_keys_of_nulls_of_a_full_join_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_has_nulls", lambda values: False)
    is_noticed(VIEWS["bag of a full join"])


def test_branches_that_are_restricted_by_the_first_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_first(self: SetOperation, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        first, second = self.branches
        (of_first,), (of_second,) = within(restrictions, first.leaves), within(restrictions, second.leaves)
        values = Values((tuple(next(iter(origin)) for origin in of_first.columns),), is_join=False)
        return [*first.restrict([of_first]), *second.restrict([Restriction(of_second.columns, values)])]

    monkeypatch.setattr(SetOperation, "restrict", by_the_first)
    is_noticed("SELECT k, g FROM t UNION SELECT k, g FROM u")


@pytest.mark.parametrize("name", ["filter and case", "groups of a left join", "except", "anti join below a left join"])
def test_old_rows_that_are_ignored_are_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    delta = Stored.delta

    def without_old(self: Stored, of: InputVersions, columns: Iterable[str]) -> RowsChanged:
        changed = delta(self, of, list(columns))
        return RowsChanged(changed.old.slice(0, 0), changed.new)

    monkeypatch.setattr(Stored, "delta", without_old)
    is_noticed(VIEWS[name])


def test_lookups_at_the_new_version_only_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = strategy.look_up

    def at_new(work: Any, of: InputVersions, version: int, *rest: Any) -> pa.Table:
        return look_up(work, of, of.new, *rest)

    monkeypatch.setattr(strategy, "look_up", at_new)
    is_noticed(VIEWS["bag of three tables"], first=27)


def test_groups_of_null_that_are_not_found_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "values_of", lambda *arguments: values_of(*arguments).drop_null())
    is_noticed(VIEWS["aggregates"], first=14)


def test_rows_from_outside_their_box_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def anywhere(rows: pa.Table, box: Any) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array([True] * rows.num_rows, pa.bool_())])

    monkeypatch.setattr(strategy, "inside", anywhere)
    is_noticed("SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.k = u.k AND t.g <> u.g")


def test_expressions_over_rows_that_an_outer_join_lacks_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scope, "make_optional", lambda self, side, begin, middle: None)
    is_noticed(
        "SELECT coalesce(t.s, 'a') AS x, coalesce(u.s, 'a') AS y, count(*) AS c FROM t FULL JOIN u ON t.k = u.k "
        "GROUP BY 1, 2"
    )


def test_not_in_over_values_that_may_be_null_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Scan.columns.fget
    assert columns is not None
    monkeypatch.setattr(Scan, "columns", property(lambda self: [replace(c, is_never_null=True) for c in columns(self)]))
    is_noticed("SELECT id, g FROM t WHERE id NOT IN (SELECT k FROM u)")
    is_noticed("SELECT id, g FROM t WHERE k NOT IN (SELECT id FROM u)")


def test_not_in_over_rows_that_an_outer_join_lacks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scope, "make_optional", lambda self, side, begin, middle: None)
    is_noticed("SELECT t.id FROM t LEFT JOIN u ON u.k = t.k WHERE u.id NOT IN (SELECT id FROM w)")


def test_expressions_over_renamed_columns_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_mean_the_same_alone", lambda parts, columns: True)
    is_noticed("SELECT k + 1 AS x, max(s) AS m FROM t AS a(id, g, k, s) GROUP BY k + 1")
