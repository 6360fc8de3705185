"""Checks, before a run starts, all that it needs from Postgres, Kafka, Connect and the warehouse."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cdc_views.base.names import TableName
from cdc_views.config import Settings
from cdc_views.engine.capture.broken import LASTING, require_unbroken
from cdc_views.engine.capture.captures import facts_of, known_takeover
from cdc_views.engine.capture.declared import Declared, declare
from cdc_views.engine.capture.generation import require_same_source, require_same_tables
from cdc_views.engine.capture.mirrored import read_mirrored
from cdc_views.engine.capture.self_contained import check_self_contained
from cdc_views.engine.capture.start import confirmed_flush, require_slot
from cdc_views.errors import (
    RESET,
    BadConfig,
    BadView,
    LogDiscontinuity,
    NotRunning,
    PreflightFailed,
    SchemaChanged,
    SourceUnreachable,
    UnknownTable,
    UnsupportedType,
)
from cdc_views.findings import Finding, remedies, summary
from cdc_views.log.preflight import check_log
from cdc_views.source.catalog import read_tables
from cdc_views.source.checks.fixes import OnFix, fix_source, fixable
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import Connection, connect
from cdc_views.store.control import ControlRecord, read_control
from cdc_views.store.delta_log import require_column_names


def findings(settings: Settings) -> list[Finding]:
    """What is missing or unwise, errors first; if there are no errors, also which tables have a self-contained log."""
    found = _judge(settings)
    if not any(finding.severity == "error" for finding in found):
        with connect(settings.source.dsn.get_secret_value()) as connection:
            mirrored = read_mirrored(settings, connection, _records(settings))
        found += check_self_contained(settings, [each for each in mirrored.sources if each.name not in mirrored.held])
    return sorted(found, key=lambda finding: ("error", "warning", "info").index(finding.severity))


def _judge(settings: Settings, *, values: bool = False) -> list[Finding]:
    """Everything that would make a start fail."""
    return [*_check_history(settings), *_requirements(settings, values=values), *_check_declared(settings)]


def _requirements(settings: Settings, *, values: bool = False) -> list[Finding]:
    """What a run needs: all that a start checks, except for the view files."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        held = _held(settings, connection)
        gone = frozenset(name for name in held if not _exists(connection, name))
    found = [
        *check_source(settings, held, values=values),
        *_check_names(settings, held),
        *_check_warehouse(settings.warehouse),
        *check_log(settings, confirmed_flush(settings)),
    ]
    if held:  # a reset needs all tables, and starts from what "check --fix" leaves
        of_held = [each for each in check_source(settings, gone) if each not in found]
        found += [replace(each, severity="warning") for each in of_held]
    return found


def _check_history(settings: Settings) -> Iterator[Finding]:
    """The remembered errors of the log's history, because of which a start fails."""
    subject = f'warehouse "{settings.warehouse}"'
    try:
        require_unbroken(settings.warehouse)
    except LASTING as error:
        yield Finding("error", subject, error.message, error.hint or RESET)


def _check_warehouse(warehouse: Path) -> Iterator[Finding]:
    """Check that the warehouse can be written to, without writing to it."""
    subject = f'warehouse "{warehouse}"'
    there = next(folder for folder in (warehouse, *warehouse.parents) if os.path.lexists(folder))
    if not there.is_dir():
        yield Finding("error", subject, f'"{there}" is not a folder', "choose another folder as warehouse")
    elif not os.access(there, os.W_OK | os.X_OK):
        yield Finding("error", subject, f'"{there}" cannot be written to', "change its owner or its rights")


def _check_declared(settings: Settings) -> Iterator[Finding]:
    """Check the view files, and that the tables are those that the warehouse was created from."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        try:
            declared = declare(settings, connection, _records(settings))
            require_known_tables(settings, declared)
        except UnknownTable:
            return  # check_source has a finding for it
        except BadView as error:
            yield Finding("error", f'views in "{settings.views}"', error.message, error.hint or "correct the file")
        except (BadConfig, UnsupportedType, SchemaChanged, LogDiscontinuity) as error:
            yield Finding("error", f'tables of "{settings.warehouse}"', error.message, error.hint or "")
        else:
            yield from _of_stopped(declared)
            yield from _of_views_folder(settings.views, declared)
            for name, refusal in declared.refused.items():
                yield Finding("error", f'view "{name}"', refusal.message, refusal.hint or "correct the file")


def _of_stopped(declared: Declared) -> Iterator[Finding]:
    """Warnings for tables that are stopped or that the next epoch will stop; other tables continue in a run."""
    for name, stopped in declared.stopped.items():
        problem = f"is stopped at position {stopped.position}, with the views that read it: {stopped.message}"
        yield Finding("warning", f'table "{name}"', problem, stopped.hint or RESET)
    for name, error in declared.changed.items():
        yield Finding("warning", f'table "{name}"', f"{error.message}; a run stops it", error.hint or RESET)


def _of_views_folder(folder: Path, declared: Declared) -> Iterator[Finding]:
    """What is not wrong if the user has removed a view file or keeps mirrors alone, but may be a wrong path."""
    for name in declared.removed:
        problem = f'is in the last epoch, but "{folder}" has no file for it; a run removes it'
        yield Finding("warning", f'view "{name}"', problem, "put the file back to keep the view")
    if not folder.exists():
        remedy = 'correct the setting "views" if you have views'
        yield Finding("info", f'views in "{folder}"', "there is no such folder: only mirrors are kept", remedy)


def _records(settings: Settings) -> list[ControlRecord]:
    return read_control(settings.warehouse) if settings.warehouse.is_dir() else []


def _held(settings: Settings, connection: Connection) -> frozenset[TableName]:
    """The tables that a start no longer looks up in the catalog."""
    try:
        return read_mirrored(settings, connection, _records(settings)).held
    except (UnknownTable, UnsupportedType):
        return frozenset()  # check_source has a finding for it


def _exists(connection: Connection, name: TableName) -> bool:
    try:
        read_tables(connection, [name])
    except UnknownTable:
        return False
    return True


def _check_names(settings: Settings, held: Collection[TableName]) -> Iterator[Finding]:
    """Columns whose names a mirror cannot have."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        for name in (each for each in settings.source.tables if each not in held):
            try:
                table = read_tables(connection, [name], settings.source.columns)[name]
                require_column_names(str(name), [column.name for column in table.columns])
            except UnknownTable:
                continue  # check_source has a finding for it
            except UnsupportedType as error:
                subject = f'table "{name}"'
                problem = error.message.removeprefix(f"{subject}: ")
                yield Finding("error", subject, problem, error.hint or "rename the column")


def fix(
    settings: Settings,
    on_fix: OnFix = lambda finding, failure: None,
    judge_views: Callable[[], Iterable[Finding]] = tuple,
    confirm: Callable[[Sequence[Finding]], None] = lambda fixable: None,
) -> None:
    """Run the SQL of the findings that have one; `on_fix` is called after each.

    `judge_views` returns what Spark's analysis finds wrong with the views; it is called if everything else is good.
    `confirm` is called before anything is written, with the findings whose SQL is about to run; it may raise.
    Raises PreflightFailed, before anything is written, if a finding remains that this SQL does not fix.
    """
    found = _judge(settings, values=True)
    blocking = [finding for finding in found if finding.blocking]
    blocking = blocking or [finding for finding in judge_views() if finding.severity == "error"]
    if blocking:
        raise PreflightFailed(summary(blocking), hint=f"{remedies(blocking)}; nothing was written to the source")
    if to_fix := fixable(found):
        confirm(to_fix)
        fix_source(settings, to_fix, on_fix)


def require_known_tables(settings: Settings, declared: Declared) -> None:
    """Check that the source and its tables are those that the warehouse was created from, as a start does.

    Raises LogDiscontinuity, SchemaChanged, BadConfig.
    """
    known = known_takeover(_records(settings))
    if known is not None:
        require_same_source(facts_of(known), declared.identity, settings.source.slot)
        require_same_tables(facts_of(known), declared.sources)


def require_ready(settings: Settings) -> None:
    """Raise PreflightFailed with every error that `check` finds, and SlotChanged and LogDiscontinuity by themselves."""
    require_unbroken(settings.warehouse)
    require_met(settings)


def require_met(settings: Settings) -> None:
    """Do as `require_ready`, but ignore remembered errors of the log's history."""
    errors = [finding for finding in _requirements(settings) if finding.severity == "error"]
    if errors:
        with suppress(NotRunning, SourceUnreachable):
            if _records(settings):
                require_slot(
                    settings
                )  # by the next start the connector may have moved on, which would hide the problem
        raise PreflightFailed(
            summary(errors), hint=f'{remedies(errors)} ("cdc-views check --fix" fixes what can be fixed)'
        )
