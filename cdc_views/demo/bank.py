"""The total of the bank at every published epoch: always the same number.

A transfer changes two tables in one transaction. An epoch with half of a transfer would have another total. The
mirrors are summed, too, so this does not depend on the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.errors import CheckFailed
from cdc_views.store.reading import read_table
from cdc_views.testing.postgres.compare import Published

VIEW: Final = "bank_total"
MIRRORS: Final = ("public.accounts", "public.savings")

Read = Callable[[Path, str, int], pa.Table]


class EpochRecord(Protocol):
    """A record of the control log, as far as it matters here."""

    @property
    def kind(self) -> str: ...
    @property
    def epoch(self) -> int | None: ...
    @property
    def tables(self) -> Mapping[str, Published]: ...


def bank_totals(root: Path, records: Iterable[EpochRecord], read: Read = read_table) -> list[tuple[int, Decimal]]:
    """Read the total at every published epoch.

    Returns (epoch, total) pairs. Raises CheckFailed with the epoch if the view does not have exactly one row, does not
    equal the sum of its mirrors, or differs from the first epoch.
    """
    states = _States(root, read)
    totals: list[tuple[int, Decimal]] = []
    first: tuple[Decimal, int] | None = None
    for record in records:
        if record.kind != "publish" or record.epoch is None or VIEW not in record.tables:
            continue
        shown = states.shown(record.tables[VIEW], record.epoch)
        if shown != states.summed([record.tables[name] for name in MIRRORS]):
            raise CheckFailed(f'"{VIEW}" is not the sum of its mirrors at epoch {record.epoch}')
        first = first or shown
        if shown != first:
            raise CheckFailed(f'"{VIEW}" at epoch {record.epoch} is not what it was at epoch {totals[0][0]}')
        totals.append((record.epoch, shown[0]))
    return totals


class _States:
    """Reads each version once: an epoch that does not change a table has the version of the previous epoch."""

    def __init__(self, root: Path, read: Read) -> None:
        self._root = root
        self._read = read
        self._sums: dict[tuple[str, int], tuple[Decimal, int]] = {}

    def shown(self, view: Published, epoch: int) -> tuple[Decimal, int]:
        key = (view.path, view.version)
        if key not in self._sums:
            rows = self._read(self._root, *key).to_pylist()
            if len(rows) != 1:
                raise CheckFailed(f'"{VIEW}" has {len(rows)} rows at epoch {epoch}, wanted 1')
            self._sums[key] = (rows[0]["total"], rows[0]["holdings"])
        return self._sums[key]

    def summed(self, mirrors: Iterable[Published]) -> tuple[Decimal, int]:
        each = [self._sum_of(mirror.path, mirror.version) for mirror in mirrors]
        return sum((total for total, _ in each), Decimal(0)), sum(count for _, count in each)

    def _sum_of(self, path: str, version: int) -> tuple[Decimal, int]:
        if (path, version) not in self._sums:
            mirror = self._read(self._root, path, version)
            total = pc.sum(mirror["balance"]).as_py() or Decimal(0)
            self._sums[path, version] = (total, mirror.num_rows)
        return self._sums[path, version]
