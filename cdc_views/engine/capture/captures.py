"""The captures of a project, and which of them is current.

A capture is a replication slot, the topics below a prefix and a connector: what one generation of the source comes
through. The settings name the first one; every reset makes another, with its number at the end of each name. Which is
current is in the control log, in its last record of kind `reset`; without one it is the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from cdc_views.config import LogSettings, Settings
from cdc_views.errors import BadConfig, ResetUnfinished
from cdc_views.names import TableName
from cdc_views.service_schema import SERVICE_TABLES
from cdc_views.store.control.control_log import PUBLISHING, ControlRecord, last_reset, last_takeover, read_control

SOURCE: Final = "source"  # in the detail of a takeover: what the mirrors were made from (generation.py)
VIEWS: Final = "views"  # in the detail of a takeover: the hash of each view's text
CAPTURE: Final = "capture"  # in the detail of a takeover: the number of the capture that the writer reads

_MOST_OF_SLOT: Final = 63
_MOST_OF_CONNECTOR: Final = 200
_MOST_OF_TOPIC: Final = 249


@dataclass(frozen=True)
class Capture:
    """The names of one capture, and the tables that it captures, as `schema.table`."""

    number: int
    slot: str
    topic_prefix: str
    connector: str
    tables: tuple[str, ...]

    @classmethod
    def numbered(cls, base: Settings, number: int) -> Self:
        """The capture of this number of a project. Raises BadConfig where a name is too long."""
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

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> Self:
        """Read what a record has."""
        return cls(**{**fields, "tables": tuple(fields["tables"])})

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
    """What a record of kind `reset` says: the capture that is current from it on, and those still to be removed.

    `facts` are those of the source when the capture was begun. `is_done`: its first epoch was published, and the
    removal of the others was tried.
    """

    capture: Capture
    left: tuple[Capture, ...]
    facts: Mapping[str, Any]
    is_done: bool = False

    def detail(self) -> dict[str, Any]:
        """The reset as the detail of its record."""
        return asdict(self)

    @classmethod
    def parse(cls, detail: Mapping[str, Any]) -> Self:
        """Read the detail of a record."""
        left = tuple(map(Capture.parse, detail["left"]))
        return cls(Capture.parse(detail["capture"]), left, detail["facts"], detail["is_done"])


@dataclass(frozen=True)
class CurrentCapture:
    """The capture that is current, as the control log has it.

    `known` is the last takeover of an engine that read it; None if there was none yet. `is_published`: readers see an
    epoch of it.
    """

    capture: Capture
    reset: Reset | None
    known: ControlRecord | None
    is_published: bool

    @property
    def is_unfinished(self) -> bool:
        """Whether it comes of a reset that has not ended."""
        return self.reset is not None and not self.reset.is_done

    @property
    def left(self) -> tuple[Capture, ...]:
        """Earlier captures that are still to be removed."""
        return self.reset.left if self.reset is not None else ()


def current_capture(base: Settings) -> CurrentCapture:
    """Which capture of the project is current; `base` are its settings as the user gave them."""
    return capture_of(base, read_control(base.warehouse))


def capture_of(base: Settings, records: Sequence[ControlRecord]) -> CurrentCapture:
    """The same, of the records of a control log."""
    reset, known = reset_of(records), known_takeover(records)
    number = reset.capture.number if reset is not None else 1
    return CurrentCapture(Capture.numbered(base, number), reset, known, _is_published(records, known))


def reset_of(records: Sequence[ControlRecord]) -> Reset | None:
    """The last reset; None if there was none."""
    record = last_reset(records)
    return Reset.parse(record.detail) if record is not None else None


def known_takeover(records: Sequence[ControlRecord]) -> ControlRecord | None:
    """The last takeover of an engine that read the current capture: it says what the mirrors were made from."""
    takeover, reset = last_takeover(records), reset_of(records)
    if takeover is None or SOURCE not in takeover.detail:
        return None
    return takeover if takeover.detail.get(CAPTURE, 1) == (reset.capture.number if reset is not None else 1) else None


def current_settings(base: Settings) -> Settings:
    """The project's settings with the names of the current capture."""
    return current_capture(base).capture.settings(base)


def require_no_reset(warehouse: Path) -> None:
    """Raise ResetUnfinished if a reset has begun and nothing of it is published yet."""
    records = read_control(warehouse)
    reset = reset_of(records)
    if reset is not None and not _is_published(records, known_takeover(records)):
        raise ResetUnfinished(
            f"a reset has begun, and no epoch of capture {reset.capture.number} is published yet",
            hint='"cdc-views reset" continues it',
        )


def all_captures(current: CurrentCapture) -> list[Capture]:
    """Every capture that may exist, the current one last, with all tables that are known of it.

    By the names that it was made with: the settings may say others since.
    """
    here = current.reset.capture if current.reset is not None else current.capture
    tables = dict.fromkeys([*here.tables, *current.capture.tables])
    if current.known is not None:
        tables |= dict.fromkeys(current.known.detail[SOURCE]["tables"])
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
