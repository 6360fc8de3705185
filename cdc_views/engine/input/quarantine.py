"""The quarantine: events that are in no mirror, with their bytes, in the Delta table `_quarantine` of the warehouse.

An event has one of these states:
  - stopped: the engine stopped before it, and no epoch includes it;
  - bad, waiting: parked. Neither the event nor any later event of its key is in the mirror; the later ones wait here.
    The key's row in the mirror is the last good one;
  - discarded: the user gave it up. It stays until the key's row no longer depends on it: until then, an unchanged
    value that Postgres omits from an event may be a value of this event.
What is parked in an epoch is part of that epoch: the table is in the manifest, and is committed before the mirrors, so
that a committed mirror implies a committed quarantine. What the user discards, and what the engine stops at, is
committed between epochs under an attempt of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from cdc_views.engine.input.quarantine_entries import (
    NAME,
    SPEC,
    WITHOUT_BYTES,
    Entry,
    State,
    entry_of,
    keys_of,
    rows_of,
)
from cdc_views.engine.input.quarantine_step import QuarantineStep
from cdc_views.engine.tables import Tables
from cdc_views.errors import UnknownEvent
from cdc_views.errors.log_offset import LogOffset
from cdc_views.store.control import ControlLog, QuarantineDetail
from cdc_views.store.delta_log import NO_TABLE
from cdc_views.store.warehouse import Changes, Stamp


class Quarantine:
    """The quarantine of a warehouse, one of its tables if it exists. `parks`: bad events are kept there, and stop
    nothing.
    """

    def __init__(self, tables: Tables, *, parks: bool = False) -> None:
        self.parks = parks
        self._tables = tables
        self._known: tuple[int, list[Entry]] | None = None  # the last version read, without bytes
        if parks or tables.warehouse.latest_version(NAME) != NO_TABLE:
            self._create()

    def version(self) -> int | None:
        """The version that the next epoch starts from; None if there is no quarantine."""
        return self._tables.version(NAME) if self._exists else None

    def entries(self) -> list[Entry]:
        """The present entries, without values and headers."""
        version = self.version()
        return [] if version is None else self.at(version)

    def at(self, version: int) -> list[Entry]:
        """The entries of a version, without values and headers."""
        if self._known is None or self._known[0] != version:
            rows = self._tables.warehouse.rows(SPEC, version, WITHOUT_BYTES)
            self._known = version, [entry_of(row) for row in rows.to_pylist()]
        return self._known[1]

    def with_bytes(self, version: int) -> list[Entry]:
        """The entries of a version, with values and headers."""
        return [entry_of(row) for row in self._tables.warehouse.rows(SPEC, version).to_pylist()]

    def find(self, place: LogOffset) -> Entry:
        """The entry of an event, with its bytes. Raises UnknownEvent."""
        version = self.version()
        for entry in [] if version is None else self.with_bytes(version):
            if entry.place == place:
                return entry
        raise UnknownEvent(f"{place} is not in quarantine", hint='"cdc-views quarantine list" shows what is')

    def commit(self, step: QuarantineStep, done: Mapping[str, int], stamp: Stamp) -> dict[str, int]:
        """Commit the changes of an epoch, unless an earlier attempt has; returns the new version, if there is one."""
        if NAME in done:
            return {NAME: done[NAME]}
        changes = step.changes()
        if changes is None:
            return {}
        return {NAME: self._tables.warehouse.commit(SPEC, self._tables.version(NAME), changes, stamp)}

    def keep_stopped(self, control: ControlLog, entries: Sequence[Entry]) -> None:
        """Add the events at which the engine stops, except for those that an earlier start has added."""
        known = {each.place for each in self.entries()}
        if new := [replace(each, state="stopped") for each in entries if each.place not in known]:
            self._keep(control, new)

    def discard(self, control: ControlLog, place: LogOffset, request: str | None = None) -> State:
        """Mark an event as discarded; returns its earlier state. Raises UnknownEvent.

        `request` is the id of the request for it. It is recorded here only if no epoch is to follow.
        """
        entry = self.find(place)
        if entry.state != "discarded":
            self._keep(control, [replace(entry, state="discarded")], request if entry.state == "stopped" else None)
        return entry.state

    def forget_others(self, control: ControlLog, topics: Collection[str]) -> None:
        """Delete the entries of other topics: those of a generation that a reset has replaced."""
        places = [each.place for each in self.entries() if each.place.topic not in topics]
        if places:
            detail = QuarantineDetail(forgotten=len(places))
            self._commit_between_epochs(control, Changes(keys_of(places), rows_of([])), control.last_epoch, detail)

    @property
    def _exists(self) -> bool:
        return NAME in self._tables.specs

    def _create(self) -> None:
        if not self._exists:
            self._tables.add(SPEC)

    def _keep(self, control: ControlLog, entries: Sequence[Entry], request: str | None = None) -> None:
        self._create()
        published = control.last_published
        events = tuple((*each.place, each.state) for each in entries)
        detail = QuarantineDetail.given(events=events, request=request)
        epoch = published.epoch if published is not None else 0
        self._commit_between_epochs(control, Changes(None, rows_of(entries)), epoch, detail)

    def _commit_between_epochs(
        self, control: ControlLog, changes: Changes, epoch: int, detail: QuarantineDetail
    ) -> None:
        """Commit under an attempt of its own, which the control log records first."""
        tables = self._tables
        record = control.append(
            kind="quarantine",
            epoch=epoch,
            attempt=control.new_attempt(),
            generation=tables.generation,
            detail=detail.json_fields(),
        )
        stamp = Stamp(record.epoch, record.attempt, str(tables.position or "0/0"))
        tables.stand_at({NAME: tables.warehouse.commit(SPEC, tables.version(NAME), changes, stamp)})
