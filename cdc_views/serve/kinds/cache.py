"""Rows of a cache by key, for a process that reads many: hot rows stay in memory.

A row in memory is right because it is dropped when it changes, never because it is young. Before a read of a later
epoch, the rows that its version of the table changes are dropped; their number follows the changes, not the table. A
cache that is followed leaves that to a thread: reads of another version than that of the hot rows go to the files.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Final, Literal, Self, Unpack

import orjson

from cdc_views.base.lsn import Lsn
from cdc_views.base.python_values import python_rows
from cdc_views.errors import CdcViewsError
from cdc_views.serve.epochs.follower import EpochFollower
from cdc_views.serve.epochs.moment import LATEST, Moment, MomentArguments, choose
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.kinds.hot_rows import HotRows, Row
from cdc_views.serve.table_reader import TableReader
from cdc_views.serve.values.keys import Key
from cdc_views.store.control import KnownRecords
from cdc_views.store.reading import StoredTables
from cdc_views.views.kinds.cache import CacheKind

_LOG: Final = logging.getLogger(__name__)

DEFAULT_MEMORY_MB: Final = 64
"""The memory for hot rows of a cache, unless its reader says."""

# An epoch that has changed more rows, and more than ten times as many as are hot, drops all hot rows.
_LEAST_CHANGED: Final = 1_000
_MOST_CHANGED: Final = 50_000
_MOST_READ_AGAIN: Final = 1_000  # hot rows that an epoch has changed
# A cache that was not read for this number of epochs is no longer followed, until it is read again.
_MOST_UNREAD: Final = 100

_Name = tuple[object, ...]


@dataclass(frozen=True)
class CachedRow:
    """What a cache has for a key at one epoch.

    `state` is "hit" or "miss". A miss is certain: at this epoch the view has no row with the key. `row` is None then.
    """

    state: Literal["hit", "miss"]
    row: Row | None
    epoch: int
    position: Lsn
    committed_at: datetime
    _key: tuple[str, ...] = field(repr=False)

    @property
    def document(self) -> object:
        """The row without its key: by column, or the value alone if there is only one column beside the key."""
        if self.row is None:
            return None
        rest = {name: value for name, value in self.row.items() if name not in self._key}
        return next(iter(rest.values())) if len(rest) == 1 else rest

    @cached_property
    def etag(self) -> str | None:
        """An entity tag of HTTP: the same as long as the row is, in all epochs and processes. None for a miss."""
        if self.row is None:
            return None
        return f'"{hashlib.sha256(orjson.dumps(_canonical(self.row))).hexdigest()[:32]}"'


@dataclass(frozen=True)
class _Place:
    """A version of a table. `identity` is that of its log entry."""

    path: str
    version: int
    identity: tuple[int, int] | None


class CacheReader:
    """A view of kind `cache`, to read many rows from. For several threads.

    `with` it, or after `follow`, a thread takes over each epoch soon after it is published: drops the hot rows that it
    has changed, and reads them again. A read without a moment then answers from the last epoch that was taken over.
    """

    def __init__(
        self,
        epochs: EpochFollower,
        known: KnownRecords,
        stored: StoredTables,
        name: str,
        memory_mb: int = DEFAULT_MEMORY_MB,
    ) -> None:
        """Hot rows take at most `memory_mb` of memory; with 0 none are kept."""
        self.name = name
        self._epochs = epochs
        self._known = known
        self._stored = stored
        self._hot = HotRows(memory_mb << 20)
        self._place: _Place | None = None  # the version whose rows are hot
        self._epoch = -1
        self._follows = False
        self._taken: PublishedEpoch | None = None  # what a read without a moment answers from
        self._least = -1  # the latest epoch that a read has chosen: later reads do not go back
        self._unread = 0  # epochs since the last read
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """See `follow`."""
        self.follow()
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def follow(self) -> None:
        """Take over each epoch as it is published, until `close`."""
        with self._lock:
            if not self._follows:
                self._follows = True
                self._epochs.add(self._take_over)

    def close(self) -> None:
        """Follow the epochs no longer. The cache can still be read."""
        with self._lock:
            if self._follows:
                self._follows, self._taken = False, None
                self._epochs.remove(self._take_over)

    def get(self, *key: object, **moment: Unpack[MomentArguments]) -> CachedRow:
        """What the cache has for a key, whose values are in the order of the option `key`.

        Raises ViewBeingBuilt while no epoch has the view, UnknownView, ViewFailed, WrongKind, BadKey, and what
        `WarehouseReader.epoch` raises.
        """
        return self.get_many([key], **moment)[0]

    def get_many(self, keys: Iterable[object], **moment: Unpack[MomentArguments]) -> list[CachedRow]:
        """What the cache has for each of these keys, in their order, all at one epoch.

        A key of several columns is a tuple or a list; one of a single column may also be its value. Raises as `get`.
        """
        return self.at(self._chosen(Moment(**moment)), keys)

    def at(self, epoch: PublishedEpoch, keys: Iterable[object]) -> list[CachedRow]:
        """The same at an epoch."""
        table = self.table(epoch)
        wanted = [list(each) if isinstance(each, list | tuple) else [each] for each in keys]
        found = self._rows(epoch, table, wanted)
        facts = (epoch.number, epoch.position, epoch.committed_at, table.key)
        return [CachedRow("miss" if row is None else "hit", row, *facts) for row in found]

    def table(self, epoch: PublishedEpoch) -> TableReader:
        """The view as it is in an epoch. Raises ViewBeingBuilt, UnknownView, ViewFailed, WrongKind."""
        table = TableReader(epoch, self.name, self._stored)
        hint = "declare the view WITH (kind = 'cache', key = ...), or read it by \"get\""
        table.require_kind(CacheKind.name, hint)
        return table

    def _chosen(self, moment: Moment) -> PublishedEpoch:
        taken = self._taken
        if moment == LATEST and taken is not None and taken.number >= self._least:
            return taken
        epoch = choose(self._known.root, moment, self._known)
        if moment.at is None:
            with self._lock:
                self._least = max(self._least, epoch.number)
        return epoch

    def _rows(self, epoch: PublishedEpoch, table: TableReader, wanted: Sequence[Sequence[object]]) -> list[Row | None]:
        place, key = self._place_of(table), self._key_of(table)
        names = [key.of_row(row) for row in python_rows(key.rows(wanted))]
        with self._lock:
            self._unread = 0
            is_hot = place == self._place if self._follows else self._is_hot_at(place, epoch, key)
            known = {name: self._hot.get(name) for name in names if is_hot and name in self._hot}
        missing = [number for number, name in enumerate(names) if name not in known]
        found: dict[_Name, Row | None] = dict(known)
        if missing:
            rows = table.get_many([wanted[number] for number in missing])
            found |= {names[number]: row for number, row in zip(missing, rows, strict=True)}
            with self._lock:
                if self._place == place:  # no other thread has brought the hot rows to a later epoch
                    for number in missing:
                        self._hot.put(names[number], found[names[number]])
        return [copy.deepcopy(found[name]) for name in names]  # a caller may change what it gets

    def _place_of(self, table: TableReader) -> _Place:
        path, version = table.relative_path, table.version
        return _Place(path, version, self._stored.identity(path, version))

    def _key_of(self, table: TableReader) -> Key:
        return Key.of(self.name, self._stored.describe(table.relative_path))

    def _is_hot_at(self, place: _Place, epoch: PublishedEpoch, key: Key) -> bool:
        """Bring the hot rows to the version of an epoch. False for an epoch before that of the hot rows."""
        if place == self._place:
            self._epoch = max(self._epoch, epoch.number)
            return True
        if epoch.number <= self._epoch:
            return False
        self._drop(self._changed(place, key) if len(self._hot) else {})
        self._place, self._epoch = place, epoch.number
        return True

    def _take_over(self, epoch: PublishedEpoch | None) -> None:
        """Bring the hot rows to a new epoch before anybody reads it. None: the log is gone, or another one.

        What is wrong with an epoch, the next read finds, which then chooses the epoch itself.
        """
        self._unread += 1
        taken = None
        if epoch is not None and self._unread <= _MOST_UNREAD:
            try:
                self._bring_to(epoch)
                taken = epoch
            except CdcViewsError:
                pass
            except Exception:  # a fault of ours: the thread is that of all caches of the reader
                _LOG.warning('epoch %d of cache "%s" cannot be taken over', epoch.number, self.name, exc_info=True)
        with self._lock:
            if epoch is None:
                self._least = -1
            if taken is None:
                self._hot.clear()
                self._place, self._epoch = None, -1
            if self._follows:
                self._taken = taken

    def _bring_to(self, epoch: PublishedEpoch) -> None:
        """Bring the hot rows to the version of an epoch. No read waits for it."""
        table = self.table(epoch)
        place, key = self._place_of(table), self._key_of(table)
        with self._lock:
            base, is_hot = self._place, len(self._hot) > 0
        if place == base:
            return
        changed = self._changed(place, key) if is_hot else None
        with self._lock:
            hot = [name for name in changed or () if name in self._hot]
        # One row that is not hot brings the index up to the epoch.
        again = hot[:_MOST_READ_AGAIN] or list(changed or ())[:1]
        rows = table.get_many([changed[name] for name in again]) if changed else []
        with self._lock:
            if self._place != base:
                return  # closed meanwhile, and moved to an epoch by a read
            self._drop(changed)
            for name, row in zip(again, rows, strict=True):
                self._hot.put(name, row)
            self._place, self._epoch = place, epoch.number

    def _drop(self, changed: Iterable[_Name] | None) -> None:
        if changed is None:
            self._hot.clear()
        else:
            self._hot.drop(changed)

    def _changed(self, place: _Place, key: Key) -> dict[_Name, Sequence[object]] | None:
        """The keys whose rows were written between the version of the hot rows and another.

        None if they are not known, or too many.
        """
        base = self._place
        if base is None or base.path != place.path:
            return None  # rebuilt, swapped or redefined
        if base.identity is None or base.identity != self._stored.identity(base.path, base.version):
            return None  # created again, or no longer retained
        names = [each.name for each in key.fields]
        written = self._stored.written(place.path, base.version, place.version, names)
        most = min(max(_LEAST_CHANGED, 10 * len(self._hot)), _MOST_CHANGED)
        if written is None or written.old.num_rows + written.new.num_rows > most:
            return None
        rows = (row for part in (written.old, written.new) for row in python_rows(part))
        return {key.of_row(row): [row[name] for name in names] for row in rows}


def _canonical(value: object) -> object:
    """A value of JSON that differs for different values of a row; not from one machine to another, as repr() may."""
    if isinstance(value, Mapping):
        return [[name, _canonical(each)] for name, each in value.items()]
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, datetime | date):
        return ["time", value.isoformat()]
    return value if value is None or isinstance(value, str | int) else ["number", str(value)]
