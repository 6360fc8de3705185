"""Why a view has no strategy but FULL in an epoch: what is not as of the last one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc_views.engine.views.choice import Choice
from cdc_views.metrics import ViewUpdate
from cdc_views.store.control import PublishedDetail
from tests.unit.incremental.memory import Memory, Table

VIEW = "SELECT lower(name) AS low, count(DISTINCT id) AS n FROM users GROUP BY lower(name)"
LIVE = frozenset({"v", "_cv_v_1"})


def reason(
    sql: str = VIEW,
    *,
    live: frozenset[str] = LIVE,
    failed: frozenset[str] = frozenset(),
    known: bool = True,
    looks_up: bool = True,
) -> str | None:
    memory = Memory([Table("users", {"id": "bigint", "name": "text"}, ("id",))])
    memory.declare({"v": sql})
    view = memory.views["v"]
    tables = SimpleNamespace(is_live=live.__contains__, warehouse=SimpleNamespace(allows_direct=looks_up))
    inputs = SimpleNamespace(versions=lambda name: object() if known else None)
    queries = SimpleNamespace(is_possible=True)
    given: tuple[Any, ...] = (tables, inputs, None, queries, failed.__contains__)
    return Choice(*cast("Any", given)).why_full(view.compiled, view.plan)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (reason(), None),
        (reason("SELECT id, rank() OVER (ORDER BY name) AS place FROM users"), "strategy"),
        (reason(live=frozenset({"_cv_v_1"})), "new view"),
        (reason(live=frozenset({"v"})), "internal view"),
        (reason(failed=frozenset({"_cv_v_1"})), "internal view"),
        (reason(known=False), "new input"),
        (reason(looks_up=False), "no lookups"),
    ],
)
def test_reason_follows_from_what_the_last_epoch_has(found: str | None, wanted: str | None) -> None:
    assert found == wanted


def test_work_of_earlier_versions_and_reasons_of_later_ones_are_read() -> None:
    work = {"old": {"rows_found": 3}, "later": {"rows_found": 3, "why_full": "a reason of later", "cost": 1}}
    found = PublishedDetail.model_validate({"view_work": work}).view_work
    assert found["old"] == ViewUpdate(rows_found=3)
    assert found["later"].why_full == "a reason of later"


def test_reason_is_kept_as_it_was_written() -> None:
    detail = PublishedDetail(view_work={"v": ViewUpdate(rows_found=3, why_full="new view")})
    assert PublishedDetail.model_validate(detail.json_fields()) == detail
    assert detail.json_fields()["view_work"]["v"]["why_full"] == "new view"


def test_work_is_added_to_that_of_an_update_without_its_reason() -> None:
    total = ViewUpdate(rows_found=1, why_full="error")
    total.add(ViewUpdate(rows_found=2, why_full="new view"))
    assert total == ViewUpdate(rows_found=3, why_full="error")
