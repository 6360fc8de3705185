"""Compares the mirrors and views of every published epoch with the WAL-order oracle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from cdc_views.base.lsn import Lsn
from cdc_views.errors import CheckFailed, NothingPublished
from cdc_views.store.control import PUBLISHING, ControlRecord, TableVersion, read_control
from cdc_views.store.delta_log import TableCommit, read_entry
from cdc_views.testing.oracle import WalOracle
from cdc_views.testing.postgres.compare import Difference, describe, differences, read_published
from cdc_views.testing.postgres.question import Question
from cdc_views.testing.postgres.shadow import connect_for_queries

AT_A_TIME: Final = 2


@dataclass(frozen=True)
class EpochDifference:
    """A difference in an epoch, whose tables and views must equal Postgres at `position`."""

    epoch: int
    position: Lsn
    difference: Difference

    @property
    def table(self) -> str:
        """The mirror (`schema.table`) or view."""
        return self.difference.table

    def __str__(self) -> str:
        return f'epoch {self.epoch} at {self.position}: "{self.table}": {self.difference}'


class EpochCheck:
    """Compares epochs with the oracle as they are published.

    `sql` has a query in Postgres's SQL for every view, by name. Its first line may name the columns that identify rows,
    as in `-- key: user_id, post_id`. A mirror needs no query; one under its name (`schema.table`) replaces the default,
    which compares all columns.
    """

    def __init__(self, oracle: WalOracle, warehouse: Path, sql: Mapping[str, str]) -> None:
        self._oracle = oracle
        self._warehouse = warehouse
        self._questions = _mirrors(oracle) | {name: Question.of(text) for name, text in sql.items()}
        # A result stays valid while neither the oracle's rows nor the published version change.
        self._verdicts: dict[str, tuple[TableVersion, list[Difference]]] = {}
        self._last = 0  # number of a control record
        self._last_epoch: int | None = None
        self._before: Mapping[str, TableVersion] = {}
        self.epochs = 0
        self.versions = 0  # compared tables and views, counted in each epoch that changed their content

    @property
    def tables(self) -> int:
        """The mirrors and views to compare in each epoch."""
        return len(self._questions)

    def differences(self) -> list[EpochDifference]:
        """Compare the epochs published since the last call.

        Raises CheckFailed if an epoch in between is missing, PositionUnknown if one is older than the oracle's start,
        and the errors of `WalOracle.advance_to`.
        """
        found: list[EpochDifference] = []
        for record in read_control(self._warehouse):
            # By number: upkeep removes old records.
            if record.seq <= self._last or record.kind not in PUBLISHING:
                continue
            position = record.position
            assert position is not None
            self._require_next(record)
            found += [EpochDifference(record.epoch, position, each) for each in self._epoch(record, position)]
            self.epochs, self._last, self._last_epoch = self.epochs + 1, record.seq, record.epoch
            self.versions += sum(self._has_changed(name, table) for name, table in record.mirrors_and_views.items())
            self._before = record.tables
        return found

    def require_equal(self) -> None:
        """Raise CheckFailed with epochs, tables and the first keys that differ, unless everything is equal.

        Raises NothingPublished if no epoch has ever been compared.
        """
        found = self.differences()
        if not self.epochs:
            raise NothingPublished("there is no epoch to check", hint="wait for the engine's first epoch")
        if found:
            raise CheckFailed(
                describe_epochs(found), hint="the first epoch that differs shows most; later ones may only have kept it"
            )

    def _require_next(self, record: ControlRecord) -> None:
        if self._last_epoch is not None and record.epoch > self._last_epoch + 1:
            raise CheckFailed(
                f"epoch {record.epoch} comes after epoch {self._last_epoch}, wanted {self._last_epoch + 1}",
                hint="upkeep has removed what lies between; check more often, or raise upkeep.keep_records",
            )

    def _epoch(self, record: ControlRecord, position: Lsn) -> list[Difference]:
        verdicts, self._verdicts = self._verdicts, {}
        if not self._oracle.advance_to(position):  # otherwise no result stays valid: a view may read any table
            self._verdicts = verdicts
        known = {name: found for name, (table, found) in self._verdicts.items() if record.tables.get(name) == table}
        return differences(
            record.tables, self._questions, lambda names: known | self._judged(record, set(names) - set(known))
        )

    def _has_changed(self, name: str, table: TableVersion) -> bool:
        before = self._before.get(name)
        if before is None or before.path != table.path:
            return True
        folder, versions = self._warehouse / table.path, range(before.version + 1, table.version + 1)
        return any(TableCommit.of(each, read_entry(folder, each)).changes_content for each in versions)

    def _judged(self, record: ControlRecord, names: Iterable[str]) -> dict[str, list[Difference]]:
        """Query and compare, several at a time."""
        todo = iter(sorted(names))  # shared by the threads
        found: dict[str, list[Difference]] = {}

        def work(_: int) -> None:
            with connect_for_queries(self._oracle.shadow_dsn) as connection:
                for name in todo:
                    rows = read_published(self._warehouse, record.tables[name])
                    found[name] = self._questions[name].differences(connection, name, rows)

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(work, range(AT_A_TIME)))
        self._verdicts |= {name: (record.tables[name], rows) for name, rows in found.items()}
        return found


def describe_epochs(found: Iterable[EpochDifference]) -> str:
    """The differences, by epoch and table."""
    epochs = groupby(found, lambda each: (each.epoch, each.position))
    return "\n".join(
        f"epoch {epoch} at {position}: {describe(each.difference for each in inside)}"
        for (epoch, position), inside in epochs
    )


def _mirrors(oracle: WalOracle) -> dict[str, Question]:
    return {str(table): Question(*oracle.mirror_query(table)) for table in oracle.tables}
