"""The captures of a project, and which of them is current.

A capture is a replication slot, the topics with a common prefix, and a connector: one generation of the source arrives
through it. The settings name the first capture. Every reset creates another one, whose names end with its number. The
last record of kind `reset` in the control log names the current capture; without such a record it is the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SERVICE_TABLES
from cdc_views.config import LogSettings, Settings
from cdc_views.errors import BadConfig, ResetUnfinished
from cdc_views.store.control import (
    PUBLISHING,
    CaptureNames,
    ControlRecord,
    ResetDetail,
    TakeoverDetail,
    last_reset,
    last_takeover,
    read_control,
)

_MOST_OF_SLOT: Final = 63
_MOST_OF_CONNECTOR: Final = 200
_MOST_OF_TOPIC: Final = 249


@dataclass(frozen=True)
class Capture(CaptureNames):
    """The names of one capture, and its tables."""

    @classmethod
    def of(cls, names: CaptureNames) -> Self:
        """The capture that a record names."""
        return cls(names.number, names.slot, names.topic_prefix, names.connector, names.tables)

    @classmethod
    def numbered(cls, base: Settings, number: int) -> Self:
        """The capture of a project with this number. Raises BadConfig if a name is too long."""
        tables = tuple(map(str, base.source.tables))
        if number == 1:
            return cls(1, base.source.slot, base.log.topic_prefix, base.log.connector, tables)
        made = cls(
            number,
            f"{base.source.slot}_{number}",
            f"{base.log.topic_prefix}.{number}",
            f"{base.log.connector}-{number}",
            tables,
        )
        _require_short("source.slot", made.slot, _MOST_OF_SLOT)
        _require_short("log.connector", made.connector, _MOST_OF_CONNECTOR)
        for table in (*tables, *map(str, SERVICE_TABLES)):
            _require_short("log.topic_prefix", f"{made.topic_prefix}.{table}", _MOST_OF_TOPIC)
        return made

    def settings(self, base: Settings) -> Settings:
        """The project's settings with the names of this capture."""
        source = base.source.model_copy(update={"slot": self.slot})
        names = {"topic_prefix": self.topic_prefix, "connector": self.connector}
        return base.model_copy(update={"source": source, "log": base.log.model_copy(update=names)})

    def log(self, base: Settings) -> LogSettings:
        """The log's settings with the names of this capture."""
        return self.settings(base).log

    @property
    def table_names(self) -> list[TableName]:
        """The captured tables."""
        return [TableName.parse(table) for table in self.tables]


@dataclass(frozen=True)
class Reset:
    """A reset: its fields are those of ResetDetail."""

    capture: Capture
    left: tuple[Capture, ...]
    facts: Mapping[str, Any]
    is_done: bool = False

    def detail(self) -> dict[str, Any]:
        """The reset as the detail of its record."""
        detail = ResetDetail(capture=self.capture, left=self.left, facts=self.facts, is_done=self.is_done)
        return detail.json_fields()

    @classmethod
    def read(cls, record: ControlRecord) -> Self:
        """The reset of a record."""
        detail = ResetDetail.read(record)
        left = tuple(map(Capture.of, detail.left))
        return cls(Capture.of(detail.capture), left, detail.facts, detail.is_done)


@dataclass(frozen=True)
class CurrentCapture:
    """The current capture, by the control log.

    `known` is the last takeover of an engine that read this capture; None before the first one. `is_published` means
    that readers see an epoch of this capture.
    """

    capture: Capture
    reset: Reset | None
    known: ControlRecord | None
    is_published: bool

    @property
    def is_unfinished(self) -> bool:
        """Whether the reset that created it has not finished."""
        return self.reset is not None and not self.reset.is_done

    @property
    def left(self) -> tuple[Capture, ...]:
        """Earlier captures that are still to be removed."""
        return self.reset.left if self.reset is not None else ()


def current_capture(base: Settings) -> CurrentCapture:
    """The current capture of a project; `base` are the settings as the user gave them."""
    return capture_of(base, read_control(base.warehouse))


def capture_of(base: Settings, records: Sequence[ControlRecord]) -> CurrentCapture:
    """The current capture by these records of the control log."""
    reset, known = reset_of(records), known_takeover(records)
    number = reset.capture.number if reset is not None else 1
    return CurrentCapture(Capture.numbered(base, number), reset, known, _is_published(records, known))


def reset_of(records: Sequence[ControlRecord]) -> Reset | None:
    """The last reset; None if there was none."""
    record = last_reset(records)
    return Reset.read(record) if record is not None else None


def known_takeover(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The last takeover of an engine that read the current capture; it says what the mirrors were created from."""
    takeover, reset = last_takeover(records), reset_of(records)
    detail = None if takeover is None else TakeoverDetail.read(takeover)
    if detail is None or detail.source is None:
        return None
    return takeover if detail.capture == (reset.capture.number if reset is not None else 1) else None


def facts_of(takeover: ControlRecord) -> Mapping[str, Any]:
    """The facts of the generation that the mirrors of a known takeover were created from (generation.py)."""
    facts = TakeoverDetail.read(takeover).source
    assert facts is not None
    return facts


def current_settings(base: Settings) -> Settings:
    """The project's settings with the names of the current capture."""
    return current_capture(base).capture.settings(base)


def require_no_reset(warehouse: Path) -> None:
    """Raise ResetUnfinished if a reset has started and has not published an epoch yet."""
    records = read_control(warehouse)
    reset = reset_of(records)
    if reset is not None and not _is_published(records, known_takeover(records)):
        raise ResetUnfinished(
            f"a reset has begun, and no epoch of capture {reset.capture.number} is published yet",
            hint='"cdc-views reset" continues it',
        )


def all_captures(current: CurrentCapture) -> list[Capture]:
    """Every capture that may exist, the current one last and with all tables that are known for it.

    The names are those that a capture was created with: the settings may have changed since.
    """
    here = current.reset.capture if current.reset is not None else current.capture
    tables = dict.fromkeys([*here.tables, *current.capture.tables])
    if current.known is not None:
        tables |= dict.fromkeys(facts_of(current.known)["tables"])
    return [*current.left, replace(here, tables=tuple(tables))]


def _is_published(records: Sequence[ControlRecord], known: ControlRecord | None) -> bool:
    published = next((each for each in reversed(records) if each.kind in PUBLISHING), None)
    return published is not None and known is not None and published.generation == known.generation


def _require_short(setting: str, name: str, most: int) -> None:
    if len(name) > most:
        raise BadConfig(
            f'"{name}" has {len(name)} characters, wanted at most {most}',
            hint=f"a reset adds its number to {setting}, which must be shorter for that",
        )
