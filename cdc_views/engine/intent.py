"""What an attempt at an epoch will do, decided and recorded before anything is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.kafka.record import Offsets
from cdc_views.store.control import ShadowTable, TableVersion
from cdc_views.store.warehouse import Stamp


@dataclass(frozen=True)
class Swap:
    """How an epoch that publishes shadow tables differs from others.

    The log of the swapped mirrors is read again from `start`. `request` is the id of the request for it, `replaced`
    the tables that readers saw before.
    """

    kind: Literal["swap", "rollback"]
    start: Offsets
    request: str
    replaced: Mapping[str, ShadowTable]


@dataclass(frozen=True)
class Retry:
    """Parked events are applied again: those of the key of the event at `place`, or all of them (None).

    `request` is the id of the request for it; None in a test.
    """

    place: LogOffset | None
    request: str | None = None


@dataclass(frozen=True)
class Intent:
    """What this attempt will do. After a crash, recovery repeats exactly this.

    `base` has the versions that the epoch starts from, `done` those that an earlier attempt at the same epoch has
    committed. `quarantine` is the version of the quarantine that it starts from (None: there is none). `swap` is set
    if the epoch publishes shadow tables, `retry` if it applies parked events again.
    """

    epoch: int
    attempt: int
    cut: Cut
    base: dict[str, TableVersion]
    done: dict[str, int] = field(default_factory=dict)
    swap: Swap | None = None
    quarantine: int | None = None
    retry: Retry | None = None

    @property
    def stamp(self) -> Stamp:
        """What every commit of this attempt carries."""
        return Stamp(self.epoch, self.attempt, str(self.cut.position))


class CutAgain(Exception):
    """The attempt must be abandoned, and its epoch attempted with another cut (None: a new one)."""

    def __init__(self, reason: str, cut: Cut | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cut = cut
