"""Taking over the warehouse: from whatever the last writer left to a state that an epoch can start from.

1. A takeover record: from here on, the old writer finds the version of its next record taken.
2. A fence on every table, which is an empty version: from here on, the old writer's commits fail. If a later engine
   has already committed its own fence, this engine is the old writer.
3. Every version above the manifest's must have an attempt of ours. Otherwise somebody else wrote it. The table of an
   internal view, which can be computed again, is then replaced by a new one.
4. An epoch that was intended and not published is finished under a new attempt. If its part of the log can no longer be
   read as it was, it is rolled back and abandoned. Views with rows of any other attempt are rolled back.

A crash in any of these steps leaves a state from which the same steps start again. After a loss of power, an intended
epoch is also rolled back if not everything that it committed is on the disk (store/delta_log/torn.py).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from cdc_views import faults
from cdc_views.engine.epoch.abandon import abandon, commits_since, committed_by
from cdc_views.engine.epoch.records import is_repeatable, read_intent
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.input.quarantine_entries import NAME as QUARANTINE
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.internal_views import renew_internal_table
from cdc_views.errors import ForeignCommit, LogGap, OffsetCompacted, TableUnavailable
from cdc_views.store.control import ControlLog, ControlRecord, known_attempts, last_takeover
from cdc_views.store.delta_log import RESTORE, TableCommit
from cdc_views.store.warehouse import Stamp

TORN: Final = "not all that was committed had come to the disk"
UNREADABLE: Final = "the intended part of the log can no longer be read as it was"


def take_over(control: ControlLog, tables: Tables, detail: dict[str, object]) -> ControlRecord:
    """Steps 1 to 3; returns the record of the takeover.

    Raises Fenced if another writer was faster, ForeignCommit for a version that is not ours.
    """
    published = control.published_in(tables.generation)
    takeover = control.take_over(generation=tables.generation, detail=detail)
    faults.point("takeover.after_record")
    if published is not None:
        tables.advance(published)
        _require_published_versions(tables, published)
    stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position or "0/0"))
    for name, spec in tables.specs.items():
        control.require_writer()  # after another engine has taken over, the entries removed here would be its own
        known = published.tables[name].version if published is not None and tables.is_published(name) else 0
        tables.warehouse.remove_torn_entries(spec.path, known)
    for name, spec in tables.specs.items():
        tables.stand_at({name: tables.warehouse.fence(spec.path, stamp, tables.version(name))})
    faults.point("takeover.after_fence")
    refuse_foreign_commits(control, tables)
    return takeover


def _require_published_versions(tables: Tables, published: ControlRecord) -> None:
    """Raise TableUnavailable for a table that was removed: it was just created again, empty.

    That of an internal view is renewed.
    """
    for name, spec in tables.specs.items():
        if not tables.is_published(name):
            continue
        found, wanted = tables.warehouse.latest_version(spec.path), published.tables[name].version
        if found < wanted:
            if tables.is_internal(name):
                renew_internal_table(tables, name)
                continue
            raise TableUnavailable(
                f'table "{name}" ends at version {found}, wanted at least the published {wanted}',
                hint=f'the folder "{spec.path}" was removed or damaged: rebuild the table with --swap',
            )


def refuse_foreign_commits(control: ControlLog, tables: Tables) -> None:
    """Raise ForeignCommit unless the control log knows the attempt of every version above the published one.

    A version that changes rows needs an attempt since the published record; upkeep may have any earlier one. An
    internal view with another version, or without all of its files, is renewed.
    """
    for name, spec in tables.specs.items():
        if tables.is_internal(name):
            is_whole = tables.warehouse.is_whole(spec.path, tables.version(name))
            if not is_whole or _foreign_commit(name, control, tables) is not None:
                renew_internal_table(tables, name)
        elif (commit := _foreign_commit(name, control, tables)) is not None:
            above, epoch = _published_version(name, tables), tables.published.epoch if tables.published else 0
            raise ForeignCommit(
                f'table "{name}" has version {commit.version}, which this system did not write; '
                f"wanted {above} and the versions since epoch {epoch}",
                hint=f'see DESCRIBE HISTORY of "{spec.path}"; '
                f"RESTORE it to version {above} once it is clear who writes there",
            )


def _foreign_commit(name: str, control: ControlLog, tables: Tables) -> TableCommit | None:
    """The first version of a table that somebody else wrote; None if there is none."""
    published = tables.published
    ever = known_attempts(control.records)
    recent = {record.attempt for record in control.records if published is None or record.seq > published.seq}
    # A view that was dropped and declared again has all its versions.
    known: Container[int] = recent if tables.is_published(name) else ever
    for commit in tables.warehouse.history.commits_above(tables.specs[name].path, _published_version(name, tables)):
        attempts = known if commit.changes_content else ever
        if commit.stamp is None or commit.stamp.attempt not in attempts:
            return commit
    return None


def _published_version(name: str, tables: Tables) -> int:
    """The version of a table in the last epoch; if it is not in there, 0, which creates the table."""
    if tables.published is None or not tables.is_published(name):
        return 0
    return tables.published.tables[name].version


def recover(writer: EpochWriter) -> ControlRecord | None:
    """Step 4: finish or abandon the epoch that was intended and not published; None if nothing was published."""
    tables, control = writer.tables, writer.control
    record = control.open_intent
    if record is None or record.generation != tables.generation:
        _restore_views(control, tables, ())
        if record is not None:
            forsake(control, record)
        return None
    old = read_intent(record)
    # The fence is above what was committed, and has the same content.
    done = {name: tables.version(name) for name in committed_by(old, tables)}
    _restore_views(control, tables, done)
    if not is_repeatable(record) or tables.shadows:
        abandon(tables, control, old, done, "its request is made again, and nothing is published before that")
        return None
    torn = {name for name in done if not tables.warehouse.has_all_files(old.base[name].path, old.base[name].version)}
    if torn:
        abandon(tables, control, old, done, TORN, torn)
        return None
    if any(_was_restored(name, old, tables) for name in done):
        abandon(tables, control, old, done, UNREADABLE)
        return None
    try:
        writer.log.require_repeatable(old.cut)
        return _finish(writer, old, done)
    except (LogGap, OffsetCompacted):
        abandon(tables, control, old, done, UNREADABLE)
        return None


def _restore_views(control: ControlLog, tables: Tables, done: Container[str]) -> None:
    """Restore the published rows of every view that has those of an attempt which no recovery knows any more.

    The file of such a view was away when that attempt was finished or abandoned, and is back, before an epoch was
    published without the view. `done` are the tables that the open intent has committed.
    """
    takeover = last_takeover(control.records)
    assert takeover is not None
    stamp = Stamp(takeover.epoch, takeover.attempt, str(tables.position or "0/0"))
    for name, spec in tables.specs.items():
        if name in tables.sources or name == QUARANTINE or name in done or not tables.is_published(name):
            continue
        good = _published_version(name, tables)
        changes = [each for each in tables.warehouse.history.commits_above(spec.path, good) if each.changes_content]
        if changes and changes[-1].operation != RESTORE:
            base = tables.version(name)
            tables.stand_at({name: tables.warehouse.restore(spec.path, good, stamp, base)})


def forsake(control: ControlLog, intent: ControlRecord) -> None:
    """Record that an epoch of a generation that a reset replaced will never be published. Nobody reads its tables."""
    control.append(
        kind="abandon",
        epoch=intent.epoch,
        attempt=control.new_attempt(),
        generation=intent.generation,
        position=intent.position,
        complete_to=intent.complete_to,
        committed_at=intent.committed_at,
        detail={"reason": "a reset has replaced its generation"},
    )


def _was_restored(name: str, intent: Intent, tables: Tables) -> bool:
    """Whether a rollback of the attempt was begun: then it must be completed, whatever the log holds today."""
    return any(commit.operation == RESTORE for commit in commits_since(name, intent, tables))


def _finish(writer: EpochWriter, old: Intent, done: dict[str, int]) -> ControlRecord:
    # If the attempt has committed its part of the quarantine, the entries it started from are in an earlier version.
    start = old.quarantine if QUARANTINE in done else None
    intent = writer.intend(old.cut, done=done, epoch=old.epoch, quarantine=start)
    faults.point("recovery.after_intent")
    return writer.finish(intent)
