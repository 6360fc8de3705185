"""The bank's total at every published epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_views.demo.bank import bank_totals
from cdc_views.errors import CheckFailed

ROOT = Path("warehouse")


@dataclass(frozen=True)
class Version:
    path: str
    version: int
    status: str = "live"


@dataclass(frozen=True)
class Record:
    epoch: int | None
    tables: Mapping[str, Version] = field(default_factory=dict)
    kind: str = "publish"


class Bank:
    """Tables of balances by path and version."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], pa.Table] = {}

    def epoch(self, number: int, accounts: list[int], savings: list[int], shown: list[tuple[int, int]]) -> Record:
        """An epoch whose view shows the rows (total, holdings)."""
        totals = [{"total": Decimal(total), "holdings": holdings} for total, holdings in shown]
        self.stored["total", number] = pa.Table.from_pylist(
            totals, schema=pa.schema({"total": pa.decimal128(18, 2), "holdings": pa.int64()})
        )
        for name, balances in (("accounts", accounts), ("savings", savings)):
            self.stored[name, number] = pa.table({"balance": pa.array(map(Decimal, balances), pa.decimal128(12, 2))})
        paths = {"bank_total": "total", "public.accounts": "accounts", "public.savings": "savings"}
        return Record(number, {name: Version(path, number) for name, path in paths.items()})

    def read(self, root: Path, path: str, version: int) -> pa.Table:
        assert root == ROOT
        return self.stored[path, version]


def test_totals_that_never_change_are_returned_by_epoch() -> None:
    bank = Bank()
    records = [
        bank.epoch(1, [5, 5], [10], [(20, 3)]),
        Record(None, kind="intent"),
        bank.epoch(2, [1, 5], [14], [(20, 3)]),
    ]
    assert bank_totals(ROOT, records, bank.read) == [(1, Decimal(20)), (2, Decimal(20))]


def test_total_that_changes_fails_and_names_the_epoch() -> None:
    bank = Bank()
    records = [bank.epoch(1, [5], [10], [(15, 2)]), bank.epoch(7, [4], [10], [(14, 2)])]
    with pytest.raises(CheckFailed, match="at epoch 7 is not what it was at epoch 1"):
        bank_totals(ROOT, records, bank.read)


def test_half_a_transfer_in_the_mirrors_fails_though_the_view_did_not_change() -> None:
    bank = Bank()
    records = [bank.epoch(1, [5], [10], [(15, 2)]), bank.epoch(2, [4], [10], [(15, 2)])]
    with pytest.raises(CheckFailed, match="not the sum of its mirrors at epoch 2"):
        bank_totals(ROOT, records, bank.read)


@pytest.mark.parametrize("shown", [[], [(15, 2), (15, 2)]])
def test_total_with_other_than_one_row_fails_and_names_the_epoch(shown: list[tuple[int, int]]) -> None:
    bank = Bank()
    with pytest.raises(CheckFailed, match=f"has {len(shown)} rows at epoch 3"):
        bank_totals(ROOT, [bank.epoch(3, [5], [10], shown)], bank.read)
