"""Everything that a run needs from Postgres, Kafka and Connect, looked at before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from cdc_views.config import Settings
from cdc_views.engine.broken import LASTING, require_unbroken
from cdc_views.engine.capture import confirmed_flush, require_slot
from cdc_views.engine.self_contained import check_self_contained
from cdc_views.errors import NotRunning, PreflightFailed, SourceUnreachable, UnknownTable, UnsupportedType
from cdc_views.findings import Finding
from cdc_views.log.preflight import check_log
from cdc_views.source.catalog import read_tables
from cdc_views.source.connection import connect
from cdc_views.source.fixes import OnFix, fix_source
from cdc_views.source.preflight import check_source
from cdc_views.store.control import read_control
from cdc_views.store.schema import require_column_names


def findings(settings: Settings) -> list[Finding]:
    """What is missing or unwise, errors first; then of which tables the log is self-contained."""
    found = [*_check_history(settings), *_requirements(settings)]
    if not any(finding.severity == "error" for finding in found):
        with connect(settings.source.dsn.get_secret_value()) as connection:
            tables = read_tables(connection, settings.source.tables)
        found += check_self_contained(settings, list(tables.values()))
    return sorted(found, key=lambda finding: ("error", "warning", "info").index(finding.severity))


def _requirements(settings: Settings) -> list[Finding]:
    """What a run needs: all that a start looks at."""
    return [*check_source(settings), *_check_names(settings), *check_log(settings, confirmed_flush(settings))]


def _check_history(settings: Settings) -> Iterator[Finding]:
    try:
        require_unbroken(settings.warehouse)
    except LASTING as error:
        yield Finding("error", f'warehouse "{settings.warehouse}"', error.message, error.hint or "begin anew")


def _check_names(settings: Settings) -> Iterator[Finding]:
    """Columns whose names a mirror cannot have."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        for name in settings.source.tables:
            try:
                table = read_tables(connection, [name])[name]
                require_column_names(str(name), [column.name for column in table.columns])
            except UnknownTable:
                continue  # check_source has said so
            except UnsupportedType as error:
                subject = f'table "{name}"'
                problem = error.message.removeprefix(f"{subject}: ")
                yield Finding("error", subject, problem, error.hint or "rename the column")


def fix(settings: Settings, on_fix: OnFix = lambda finding, failure: None) -> None:
    """Run the SQL of the findings that have one; `on_fix` is given each. Raises PreflightFailed."""
    fix_source(settings, check_source(settings), on_fix)


def require_ready(settings: Settings) -> None:
    """Raises PreflightFailed with every error that `check` finds; SlotChanged and LogDiscontinuity by their names."""
    require_unbroken(settings.warehouse)
    errors = [finding for finding in _requirements(settings) if finding.severity == "error"]
    if errors:
        with suppress(NotRunning, SourceUnreachable):
            if read_control(settings.warehouse):
                require_slot(settings)  # the connector may have moved on by the next start, and nothing would be seen
        raise PreflightFailed(
            "; ".join(f"{finding.subject}: {finding.problem}" for finding in errors),
            hint="; ".join(dict.fromkeys(finding.remedy for finding in errors))
            + ' ("cdc-views check --fix" does what can be done)',
        )
