"""The log lines of published epochs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cdc_views.cli.progress import close_bars
from cdc_views.store.control import ControlRecord, PublishedDetail

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Trouble:
    """Why a table is not well; `error` is the name of an error, if there is one."""

    message: str
    error: str | None = None


class EpochReport:
    """Logs each published epoch, and a warning for each table that is no longer well since the epoch before it."""

    def __init__(self) -> None:
        self._known: dict[str, _Trouble] = {}

    def __call__(self, record: ControlRecord) -> None:
        """Log the epoch, and what has changed about tables that are not well."""
        close_bars()
        detail = PublishedDetail.read(record)
        changes, stage_ms = sum(detail.changes.values()), dict(detail.stage_ms)
        spent = ", ".join(f"{stage} {ms} ms" for stage, ms in stage_ms.items())
        fields = {"epoch": record.epoch, "position": str(record.position), "changes": changes, "stage_ms": stage_ms}
        line = f"epoch {record.epoch} at {record.position}: {changes} changes ({spent})"
        _LOGGER.info(line, extra={"fields": fields})
        self._report_tables(record, dict(_troubles(record, detail)))

    def _report_tables(self, record: ControlRecord, troubles: dict[str, _Trouble]) -> None:
        for table, trouble in troubles.items():
            if self._known.get(table) != trouble:
                fields = {"epoch": record.epoch, "table": table} | ({"error": trouble.error} if trouble.error else {})
                _LOGGER.warning(trouble.message, extra={"fields": fields})
        for table in self._known.keys() - troubles.keys():
            fields = {"epoch": record.epoch, "table": table}
            _LOGGER.info('"%s" is well again', table, extra={"fields": fields})
        self._known = troubles


def _troubles(record: ControlRecord, detail: PublishedDetail) -> Iterator[tuple[str, _Trouble]]:
    """What is wrong with each table that is not well. An internal view may fail: the view above is computed in full."""
    for table, stopped in detail.stopped.items():
        yield table, _Trouble(f'table "{table}" is stopped: {stopped.error}: {stopped.message}', stopped.error)
    for table, keys in detail.parked.items():
        yield table, _Trouble(f'table "{table}" has {keys} parked keys: see "cdc-views quarantine list"')
    for view, failure in detail.failures.items():
        if view in record.mirrors_and_views:
            yield view, _Trouble(f'view "{view}" has failed: {failure}', "ViewFailed")
