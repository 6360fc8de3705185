"""The changes of a view or mirror, epoch by epoch, each exactly once; readers resume from a token.

A token names the version of the table up to which its reader has the rows. The changes of the next epoch are the
difference between that version and the one that the epoch has published. Where there is no such difference, the reader
gets a snapshot: it must begin again with all rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import pyarrow as pa

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import HIDDEN
from cdc_views.base.python_values import python_rows
from cdc_views.errors import BadToken
from cdc_views.host.waiting import wait_until
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.table_reader import TableReader
from cdc_views.serve.values.opaque import facts_of, opaque
from cdc_views.store.control import KnownLog, KnownRecords, TableVersion
from cdc_views.store.reading import StoredTables, TableDifference

NOW: Final = "now"
"""Instead of a token: only the changes from now on."""

_POLL_S: Final = 0.1
# A reader of a table that never changes gets a new token this often, before its last one is no longer retained.
PROGRESS_S: Final = 60.0

Row: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Place:
    """The rows that a reader has: a version of a table, of an epoch.

    `log` identifies the warehouse, `identity` the table: a view that is removed and comes back has its old path.
    """

    table: str
    log: str
    epoch: int
    path: str
    version: int
    identity: str

    def token(self) -> str:
        """The place as a text without blanks, which only `parse` understands."""
        return opaque(list(vars(self).values()))

    @classmethod
    def parse(cls, token: str, table: str, log: str) -> Self:
        """Parse a token of this table and warehouse. Raises BadToken."""
        try:
            fields = facts_of(token)
            place = cls(*fields)
            if [type(field) for field in fields] != [str, str, int, str, int, str]:
                raise TypeError(token)
        except (ValueError, TypeError):
            raise BadToken("the token is not one of ours", hint="give the token of the last item, unchanged") from None
        if (place.table, place.log) != (table, log):
            other = "another warehouse" if place.table == table else f'"{place.table}"'
            raise BadToken(f'the token is of {other}, wanted one of "{table}"', hint="begin without a token")
        return place


@dataclass(frozen=True)
class RowChange:
    """One changed row: `new` is None for a delete, `old` for an insert."""

    kind: Literal["insert", "update", "delete"]
    old: Row | None
    new: Row | None


@dataclass(frozen=True)
class EpochChanges:
    """What an epoch has changed in a table; nothing, if the item only moves the token.

    `updated` are the new rows of keys that were there before, `replaced` their old rows, in the same order. Rows of a
    view without a key are never updated: equal rows are inserted or deleted as often as their number changes. The rows
    of each part are in no particular order.
    """

    name: str
    epoch: int
    position: Lsn
    committed_at: datetime
    token: str
    inserted: pa.Table
    updated: pa.Table
    replaced: pa.Table
    deleted: pa.Table

    def __len__(self) -> int:
        """The number of changed rows."""
        return int(self.inserted.num_rows + self.updated.num_rows + self.deleted.num_rows)

    def __bool__(self) -> bool:
        """An item without changes is there, too: it has a token."""
        return True

    def rows(self) -> Iterator[RowChange]:
        """The changed rows one by one: deletes, updates, inserts. Their values are those of TableReader.get."""
        for old in python_rows(self.deleted):
            yield RowChange("delete", old, None)
        for old, new in zip(python_rows(self.replaced), python_rows(self.updated), strict=True):
            yield RowChange("update", old, new)
        for new in python_rows(self.inserted):
            yield RowChange("insert", None, new)


@dataclass(frozen=True)
class TableSnapshot:
    """All rows of a table at an epoch: whoever keeps a copy replaces it. `reason` is None for the first item."""

    name: str
    epoch: int
    position: Lsn
    committed_at: datetime
    token: str
    table: TableReader
    reason: str | None


ChangeItem: TypeAlias = EpochChanges | TableSnapshot


def changes(
    root: Path, stored: StoredTables, name: str, since: str | None = None, *, follow: bool = False
) -> Iterator[ChangeItem]:
    """The changes after `since`, epoch by epoch; see WarehouseReader.changes."""
    return _items(ChangeFeed(stored, name, since, KnownRecords(root)), follow)  # "now" is the time of this call


def _items(feed: ChangeFeed, follow: bool) -> Iterator[ChangeItem]:
    last: tuple[int, float] | None = None  # epoch and time of the last item
    while True:
        for item in feed.take():
            last = item.epoch, time.monotonic()
            yield item
        if last is None or (last[0] < feed.epoch and (not follow or time.monotonic() - last[1] > PROGRESS_S)):
            last = feed.epoch, time.monotonic()
            yield feed.progress()
        if not follow:
            return
        feed.wait()


class ChangeFeed:
    """The changes of one table; it knows up to where its reader has them."""

    def __init__(self, stored: StoredTables, name: str, since: str | None, known: KnownRecords) -> None:
        """Raises BadToken, NothingPublished, and what `PublishedEpoch.table` raises."""
        self._known = known
        self._root = root = known.root
        self._stored = stored
        self._name = name
        self._epoch = self._latest()
        self._log = KnownLog(root)
        self._place: Place | None = None
        if since == NOW:
            self._place = self._place_of(self._epoch, self._epoch.table(name))
        elif since is not None:
            self._place = Place.parse(since, name, self._log.id)
            self._require_not_later(self._place)

    @property
    def epoch(self) -> int:
        """The epoch up to which `take` has looked."""
        return self._epoch.number

    def take(self) -> Iterator[ChangeItem]:
        """The items of everything that is published by now.

        After the items of the epochs in which the table could still be read, raises what `PublishedEpoch.table` raises.
        """
        place = self._place
        if place is None:
            yield self._snapshot(self._latest(), None)
            return
        if self._log.is_another():
            yield self._snapshot(self._latest(), "the warehouse was created again")
            return
        later = [PublishedEpoch(self._root, record) for record in self._known.after(place.epoch)]
        for epoch in later:
            table = epoch.readable.get(self._name)
            if table is None:
                continue  # its rows are those of an earlier epoch
            found = self._changes(place, epoch, table)
            if isinstance(found, str):
                yield self._snapshot(later[-1], found)
                return
            self._epoch, self._place = epoch, replace(place, epoch=epoch.number, version=table.version)
            place = self._place
            if found is not None and len(item := self._item(found)):
                yield item
        if later:
            self._epoch = later[-1]
        self._epoch.table(self._name)

    def progress(self) -> EpochChanges:
        """An item without changes, of the last epoch."""
        schema = TableReader(self._epoch, self._name, self._stored).schema
        nothing = schema.empty_table()
        return self._item(TableDifference(nothing, nothing, nothing, nothing))

    def wait(self) -> None:
        """Wait for a later epoch, for a limited time."""
        wait_until(lambda: self._known.last().epoch != self.epoch, PROGRESS_S, _POLL_S)

    def _latest(self) -> PublishedEpoch:
        return PublishedEpoch.latest(self._root, known=self._known)

    def _changes(self, place: Place, epoch: PublishedEpoch, table: TableVersion) -> TableDifference | str | None:
        """What the epoch has changed, if anything; or the reason why this is not known."""
        if table.path != place.path:
            return f"the table was rebuilt, reset or redefined: epoch {epoch.number} has it in another folder"
        described = self._stored.describe_current(table.path)
        if described.identity != place.identity:
            return f"the table was removed and made again since epoch {place.epoch}"
        if table.version == place.version:
            return None
        columns = [name for name in described.schema.names if not name.startswith(HIDDEN)]
        has_key = described.key is not None and set(described.key) <= set(columns)
        key = described.key if has_key else None
        if self._stored.is_one_epoch(table.path, place.version, table.version, epoch.number):
            found = self._stored.difference(table.path, place.version, table.version, columns, key)
            if found is not None:
                return found
        return f"the changes from epoch {place.epoch} to epoch {epoch.number} are no longer retained, or are too many"

    def _snapshot(self, epoch: PublishedEpoch, reason: str | None) -> TableSnapshot:
        table = TableReader(epoch, self._name, self._stored)
        self._epoch, self._place = epoch, self._place_of(epoch, epoch.table(self._name))
        return TableSnapshot(self._name, **self._moment(), table=table, reason=reason)

    def _item(self, found: TableDifference) -> EpochChanges:
        return EpochChanges(self._name, **self._moment(), **vars(found))

    def _moment(self) -> dict[str, Any]:
        epoch, place = self._epoch, self._place
        assert place is not None
        token = replace(place, epoch=epoch.number).token()
        return {"epoch": epoch.number, "position": epoch.position, "committed_at": epoch.committed_at, "token": token}

    def _place_of(self, epoch: PublishedEpoch, table: TableVersion) -> Place:
        identity = self._stored.describe_current(table.path).identity
        return Place(self._name, self._log.id, epoch.number, table.path, table.version, identity)

    def _require_not_later(self, place: Place) -> None:
        if place.epoch > self.epoch:
            raise BadToken(
                f"the token is of epoch {place.epoch}, and the last published one is epoch {self.epoch}",
                hint="the warehouse was restored from an earlier state of it: begin without a token",
            )
