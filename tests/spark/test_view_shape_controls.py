"""Negative controls of the random histories: each breaks one rule of the engine, and the check must notice.

The histories are the same in every run, so a control does not pass or fail by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_views.base.names import HIDDEN
from cdc_views.engine.views.strategies import Incremental
from cdc_views.errors import UnequalRows
from cdc_views.plan.incremental import Leaf
from cdc_views.store.warehouse import RowsChanged
from cdc_views.testing import ViewHarness
from tests.seed import drawn
from tests.unit.incremental.broken import one_equality_too_many
from tests.view_shapes import DDL, VIEWS
from tests.view_shapes.changes import history
from tests.view_shapes.check import check_history, declare, tables_below, with_parents

SEEDS: Final = range(1, 5)  # of histories, one of which must notice
EPOCHS: Final = 8

Function = Callable[..., Any]


@dataclass(frozen=True)
class Broken:
    """A rule that is broken, and a view that shows it.

    `name` is a function of `module`, or `Class.method`; `broken` makes the wrong one of it. The history of `seed` is
    tried first: one that is known to notice saves time.
    """

    module: str
    name: str
    broken: Callable[[Function], Function]
    view: str
    seed: int = SEEDS[0]


def without_deletes(difference: Function) -> Function:
    """Rows that the SQL no longer returns stay in the view."""

    def broken(*arguments: Any) -> tuple[pa.Table, pa.Table]:
        deleted, upserts = difference(*arguments)
        return deleted.slice(0, 0), upserts

    return broken


def half_of_upserts(difference: Function) -> Function:
    """Half of the new rows, rounded up, do not reach the view."""

    def broken(*arguments: Any) -> tuple[pa.Table, pa.Table]:
        deleted, upserts = difference(*arguments)
        return deleted, upserts.slice((upserts.num_rows + 1) // 2)

    return broken


def without_old_rows(changed_rows: Function) -> Function:
    """Rows that a change removes lead to no key."""

    def broken(*arguments: Any) -> Any:
        found = changed_rows(*arguments)
        return replace(found, old=found.old.slice(0, 0))

    return broken


def half_of_keys(values_of: Function) -> Function:
    """Half of the affected keys, or of the rows to merge, rounded up, are lost."""

    def broken(*arguments: Any, **options: Any) -> pa.Table:
        found = values_of(*arguments, **options)
        return found.slice((found.num_rows + 1) // 2)

    return broken


def without_removed_rows(terms: Function) -> Function:
    """The totals and values over removed rows are not taken away."""

    def broken(*arguments: Any) -> Any:
        return (term for term in terms(*arguments) if term.is_added)

    return broken


def without_derived_tables(delta: Function) -> Function:
    """Changed rows of a derived table, which an internal view stores, lead to no key."""

    def broken(work: Incremental[Any], leaf: Leaf) -> RowsChanged:
        found: RowsChanged = delta(work, leaf)
        return RowsChanged(found.old.slice(0, 0), found.new.slice(0, 0)) if leaf.source.startswith(HIDDEN) else found

    return broken


def never(require: Function) -> Function:
    """What is required is not checked."""
    return lambda *arguments: None


FULL: Final = "cdc_views.engine.views.strategies.full"
KEYS: Final = "cdc_views.engine.views.strategies.keys"
PATCH: Final = "cdc_views.engine.views.strategies.patch"
INCREMENTAL: Final = "cdc_views.engine.views.strategies.incremental"
TERMS: Final = "cdc_views.engine.views.strategies.adding.terms"
WAREHOUSE: Final = "cdc_views.store.warehouse"
DEPENDENT: Final = "cdc_views.plan.incremental.operators.dependent"
CONTROLS: Final = {
    "FULL: rows that appear": Broken(FULL, "difference", half_of_upserts, "window_over_all"),
    "rows of a key that vanish": Broken(KEYS, "difference", without_deletes, "left_join"),
    "rows of a bag that vanish": Broken(KEYS, "difference", without_deletes, "bag"),
    "rows that appear": Broken(KEYS, "difference", half_of_upserts, "group_min_max"),
    "old rows of a change": Broken(WAREHOUSE, "Warehouse.changed_rows", without_old_rows, "group_min_max", 3),
    "affected keys": Broken(KEYS, "values_of", half_of_keys, "inner_join"),
    "explode: affected keys": Broken(KEYS, "values_of", half_of_keys, "posexplode_outer"),
    "explode: rows that vanish": Broken(KEYS, "difference", without_deletes, "terms"),
    "semi join: rows inside": Broken(DEPENDENT, "Dependent.restrict", one_equality_too_many, "semi"),
    "anti join: rows inside": Broken(DEPENDENT, "Dependent.restrict", one_equality_too_many, "anti"),
    "LATERAL: rows inside": Broken(DEPENDENT, "Dependent.restrict", one_equality_too_many, "document_lateral"),
    "window: affected keys": Broken(KEYS, "values_of", half_of_keys, "rank_ties"),
    "window of time: affected keys": Broken(KEYS, "values_of", half_of_keys, "tumbling"),
    "DISTINCT: old rows": Broken(WAREHOUSE, "Warehouse.changed_rows", without_old_rows, "distinct_rows"),
    "EXCEPT ALL: affected keys": Broken(KEYS, "values_of", half_of_keys, "except_all"),
    "LIMIT: rows to merge": Broken(PATCH, "_united", half_of_keys, "global_top_k"),
    "rows of a derived table": Broken(INCREMENTAL, "Incremental.delta", without_derived_tables, "join_on_aggregate", 2),
    "values of subqueries": Broken(KEYS, "_require_same_constants", never, "scalar_uncorrelated", 2),
    "PATCH: rows to merge": Broken(PATCH, "_united", half_of_keys, "top_k_per_group"),
    "ADD: rows that a change removes": Broken(TERMS, "_terms_of_joins", without_removed_rows, "group_sum_count"),
    "ADD: rows of a join that a change removes": Broken(
        TERMS, "_terms_of_joins", without_removed_rows, "global_max_of_join"
    ),
    "PATCH: values that a change removes": Broken(TERMS, "_terms_of_joins", without_removed_rows, "ordered_list"),
}


def check(spark: SparkSession, view: str, seed: int) -> None:
    """Play a history in which each change is one of a table below the view."""
    views, tables = with_parents(VIEWS, [view]), tables_below(VIEWS, [view])
    with ViewHarness(DDL, spark, partitions=1) as harness:
        declare(harness, views.values())
        check_history(harness, views, history(Random(f"control {seed}"), EPOCHS, tables))


def is_noticed(spark: SparkSession, view: str, seed: int) -> bool:
    try:
        check(spark, view, seed)
    except UnequalRows as error:
        return f'view "{view}"' in error.message
    return False


@pytest.mark.parametrize("rule", drawn(4, list(CONTROLS), ids=list(CONTROLS)))
def test_history_notices_a_broken_rule(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    control = CONTROLS[rule]
    check(spark, control.view, control.seed)  # which passes where nothing is broken
    *path, name = control.name.split(".")
    owner = reduce(getattr, path, import_module(control.module))
    monkeypatch.setattr(owner, name, control.broken(getattr(owner, name)))
    assert any(is_noticed(spark, control.view, seed) for seed in (control.seed, *SEEDS))
