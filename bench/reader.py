"""The reader: a process that looks for the probes in the tables whenever there is something new.

    python -m bench.reader --warehouse FOLDER --out FILE        a warehouse of cdc_views, by its control log
    python -m bench.reader --tables FOLDER --out FILE           tables by themselves, each at its newest version

It shares nothing with the writers but the files. That there is something new shows in the name of the next log entry;
then delta-rs reads on in the logs of the tables, as a program does that stays, and scans them for the rows. What was
seen goes to FILE as lines of JSON: the time when the last row had been read, the number in each table, and the epoch.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import click
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_views.engine.epoch.parallel import in_parallel
from cdc_views.errors import NothingPublished
from cdc_views.store.control.control_log import FOLDER, last_published
from cdc_views.store.delta_log.entries import entry_file, newest_version

_POLL_S: Final = 0.01


@dataclass(frozen=True)
class Place:
    """Where a table holds the number of the last probe."""

    row: str
    column: str
    number: Callable[[Any], int]


def _of_time(value: datetime) -> int:
    return round(value.timestamp())


PLACES: Final[Mapping[str, Place]] = {
    "public.posts": Place("id = -1", "likes", int),
    "public.follows": Place("follower_id = -1", "since", _of_time),
    "public.orders": Place("id = -1", "note", int),
    "public.accounts": Place("id = -1", "owner", int),
    "public.savings": Place("id = -1", "account_id", int),
}


class Source(Protocol):
    """Something whose newest state can be read."""

    def look(self) -> tuple[dict[str, int], int | None] | None:
        """The number in each table and the epoch; None if nothing is new since the last look."""


class PublishedTables:
    """The tables of the newest published epoch, all of one commit of the source."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self._entries = _Entries(warehouse / FOLDER)
        self._versions: dict[str, tuple[str, int]] = {}
        self._tables: dict[str, OpenTable] = {}  # by path
        self._numbers: dict[str, int] = {}
        self._epoch = -1
        self._is_new = False

    def look(self) -> tuple[dict[str, int], int | None] | None:
        """See Source."""
        self._is_new |= self._entries.has_new()
        if not self._is_new:
            return None
        record = last_published(self._warehouse)
        if record.epoch == self._epoch:
            self._is_new = False
            return None
        wanted = {name: (table.path, table.version) for name, table in record.tables.items() if name in PLACES}
        changed = [name for name, version in wanted.items() if self._versions.get(name) != version]
        for path, version in (wanted[name] for name in changed):
            self._tables.setdefault(path, OpenTable(self._warehouse / path)).wanted = version
        self._numbers |= read_numbers({name: self._tables[wanted[name][0]] for name in changed})
        self._versions = wanted
        self._epoch = record.epoch
        self._is_new = False
        return dict(self._numbers), record.epoch


class LatestTables:
    """Tables that nobody publishes together: each at its newest version."""

    def __init__(self, folder: Path) -> None:
        self._entries = {name: _Entries(folder / name) for name in PLACES}
        self._tables = {name: OpenTable(folder / name) for name in PLACES}
        self._numbers = dict.fromkeys(PLACES, 0)
        self._new: set[str] = set()

    def look(self) -> tuple[dict[str, int], int | None] | None:
        """See Source."""
        self._new |= {name for name, entries in self._entries.items() if entries.has_new()}
        if not self._new:
            return None
        self._numbers |= read_numbers({name: self._tables[name] for name in self._new})
        self._new.clear()
        return dict(self._numbers), None


class _Entries:
    """Whether a table has a version that was not there before."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._next = 0

    def has_new(self) -> bool:
        if self._next == 0:
            self._next = newest_version(self._table) + 1
            return self._next > 0
        known = self._next
        while entry_file(self._table, self._next).exists():
            self._next += 1
        return self._next > known


class OpenTable:
    """A table that stays open; `wanted` is the version to read, None the newest."""

    def __init__(self, folder: Path) -> None:
        self.wanted: int | None = None
        self._folder = folder
        self._table: DeltaTable | None = None

    def now(self) -> DeltaTable:
        """The table at the version that is wanted."""
        if self._table is not None and (self.wanted is None or self._table.version() < self.wanted):
            self._table.update_incremental()
        if self._table is None or self.wanted not in (None, self._table.version()):
            self._table = DeltaTable(str(self._folder), version=self.wanted)
        return self._table


def read_numbers(tables: Mapping[str, OpenTable]) -> dict[str, int]:
    """The numbers in several tables, read at the same time: a reader that waits should not queue too."""
    found = in_parallel(lambda name: read_number(tables[name].now(), name), tables, len(PLACES))
    return dict(zip(tables, found, strict=True))


def read_number(table: DeltaTable, name: str) -> int:
    """The number of the last probe in a table; 0 if there is none yet."""
    place = PLACES[name]
    rows = pa.table(table.scan(columns=[place.column], predicate=place.row))[place.column].to_pylist()
    return place.number(rows[0]) if rows else 0


@dataclass(frozen=True)
class Sighting:
    """What a reader saw: when, in seconds since 1970, the number in each table, and the epoch if there is one."""

    at: float
    numbers: Mapping[str, int]
    epoch: int | None

    @property
    def in_all(self) -> int:
        """Up to this number every table had every probe."""
        return min(self.numbers.values())

    @property
    def is_torn(self) -> bool:
        """Whether half of a transaction was to be seen."""
        return len(set(self.numbers.values())) > 1


def read_sightings(out: Path) -> list[Sighting]:
    """What a reader has written, oldest first."""
    if not out.exists():
        return []
    lines = [json.loads(line) for line in out.read_text().split("\n")[:-1]]
    return [Sighting(line["at"], line["numbers"], line["epoch"]) for line in lines]


def first_with(sightings: list[Sighting], number: int) -> Sighting | None:
    """The first sighting that had this probe in every table; None if there is none yet."""
    place = bisect_left(sightings, number, key=lambda sighting: sighting.in_all)
    return sightings[place] if place < len(sightings) else None


def watch(source: Source) -> Iterator[Sighting]:
    """Look for ever; what is gone or half there at one look is read at the next."""
    while True:
        with suppress(NothingPublished, DeltaError, OSError, pa.ArrowInvalid):
            found = source.look()
            if found is not None:
                yield Sighting(time.time(), *found)
        time.sleep(_POLL_S)


@click.command()
@click.option("--warehouse", type=click.Path(path_type=Path), help="Of cdc_views.")
@click.option("--tables", type=click.Path(path_type=Path), help="A folder of tables by their names.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Where to write what is seen.")
def main(warehouse: Path | None, tables: Path | None, out: Path) -> None:
    """Look for new versions until it is ended."""
    if (warehouse is None) == (tables is None):
        raise click.UsageError("give one of --warehouse and --tables")
    source: Source = PublishedTables(warehouse) if warehouse else LatestTables(tables or Path())
    with out.open("w") as file:
        for sighting in watch(source):
            line = {"at": sighting.at, "numbers": sighting.numbers, "epoch": sighting.epoch}
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
