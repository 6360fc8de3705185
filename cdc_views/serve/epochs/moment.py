"""Which epoch to read: by default the last published one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypedDict

from cdc_views.base.lsn import Lsn
from cdc_views.errors import BadMoment, EpochNotRetained, EpochTooOld, NotPublishedYet
from cdc_views.host.waiting import wait_until
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.store.control import ControlRecord, KnownRecords
from cdc_views.store.reading import has_version

DEFAULT_TIMEOUT_S: Final = 10.0
"""How long a read waits for a position, unless it says."""

_POLL_S: Final = 0.05
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_TEXTS_OF_AT: Final = 'write them as "17", "0/16B3748" or "2026-11-26T08:00:00Z"'
_VALUES_OF_AT: Final = 'give 17, "0/16B3748" or a datetime with a time zone'
_ENGINE: Final = '"cdc-views status" shows whether the engine runs'
_RETENTION: Final = "upkeep.keep_hours and upkeep.keep_epochs say for how long epochs can be read"


class MomentArguments(TypedDict, total=False):
    """The arguments of a read that say at which moment: those of Moment."""

    at: int | Lsn | datetime | str | None
    at_least: str | Lsn | None
    timeout_s: float | None
    max_age: float | timedelta | None


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The moment at which to read. Without arguments it is that of the last published epoch.

    `at`: the number of an epoch; or a time (with a time zone) or a position (`X/Y`, as Postgres prints an LSN), which
    mean the last epoch up to there. `at_least`: a position; the read waits, for at most `timeout_s` seconds (10 by
    default), until an epoch has everything that was committed up to there. Without a position, it waits that long for
    the first epoch (0 by default). `max_age`: for how long the source may have gone on since; a number means seconds.
    """

    at: int | Lsn | datetime | str | None = None
    at_least: str | Lsn | None = None
    timeout_s: float | None = None
    max_age: float | timedelta | None = None

    def __post_init__(self) -> None:
        """Check the arguments. Raises BadMoment, BadLsn."""
        for name in ("at", "at_least"):  # an Lsn is an int, and would be taken as the number of an epoch
            if isinstance(position := getattr(self, name), Lsn):
                object.__setattr__(self, name, str(position))
        if not isinstance(self.at_least, str | None):
            raise BadMoment(
                f"at_least is of type {type(self.at_least).__name__}, wanted a position",
                hint='write it as Postgres prints it, as in "0/16B3748"',
            )
        if self.at is not None and (self.at_least, self.timeout_s, self.max_age) != (None, None, None):
            raise BadMoment("a read has both at and another moment", hint="an epoch of the past needs no further limit")
        if isinstance(self.at, bool) or not isinstance(self.at, int | datetime | str | None):
            raise BadMoment(
                f"at is of type {type(self.at).__name__}, wanted an epoch, a time or a position", hint=_VALUES_OF_AT
            )
        if isinstance(self.at, datetime) and self.at.tzinfo is None:
            raise BadMoment("the time to read at has no time zone", hint='add one, as in "2026-11-26T08:00:00+00:00"')
        for name, limit_s in (("timeout_s", self.timeout_s), ("max_age", self.max_age_s)):
            if limit_s is not None and not limit_s >= 0:
                raise BadMoment(f"{name} is {limit_s:g}, wanted at least 0", hint="omit it, or give 0 or more")
        for position in (self.at, self.at_least):
            if isinstance(position, str):
                Lsn.parse(position)

    @property
    def max_age_s(self) -> float | None:
        """The same in seconds."""
        return self.max_age.total_seconds() if isinstance(self.max_age, timedelta) else self.max_age

    @staticmethod
    def parse_at(text: str) -> int | datetime | str:
        """Parse the number of an epoch, a position, or a time in ISO 8601. Raises BadMoment."""
        if _NUMBER.fullmatch(text):
            return int(text)
        if "/" in text:
            return text
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise BadMoment(
                f'"{text}" is no epoch, position or time',
                hint=_TEXTS_OF_AT,
            ) from None


LATEST: Final = Moment()


def choose(root: Path, moment: Moment = LATEST, known: KnownRecords | None = None) -> PublishedEpoch:
    """Return the epoch of a moment. `known` is what a reader that lives long knows of the control log.

    Raises NothingPublished, NotPublishedYet, EpochTooOld, EpochNotRetained, WarehouseUnusable.
    """
    known = KnownRecords(root) if known is None else known
    if moment.at is not None:
        return _at(known, moment.at)
    if moment.at_least is None:
        epoch = _latest(known, moment.timeout_s or 0)
    else:
        timeout_s = DEFAULT_TIMEOUT_S if moment.timeout_s is None else moment.timeout_s
        epoch = _at_least(known, Lsn.parse(str(moment.at_least)), timeout_s)
    if moment.max_age_s is not None and (age_s := epoch.age_s) > moment.max_age_s:
        raise EpochTooOld(
            f"epoch {epoch.number} is {age_s:.1f} s old, wanted at most {moment.max_age_s:g} s",
            hint=_ENGINE,
            age_s=age_s,
        )
    return epoch


def _latest(known: KnownRecords, wait_s: float = 0) -> PublishedEpoch:
    return PublishedEpoch.latest(known.root, wait_s, known)


def _at_least(known: KnownRecords, position: Lsn, timeout_s: float) -> PublishedEpoch:
    """Wait for an epoch that has everything that was committed up to a position."""

    def found() -> PublishedEpoch | None:
        epoch = _latest(known, timeout_s)
        return epoch if epoch.record.holds(position) else None

    epoch = wait_until(found, timeout_s, _POLL_S)
    if epoch is not None:
        return epoch
    raise not_reached(_latest(known), position, timeout_s)


def not_reached(last: PublishedEpoch, position: Lsn, timeout_s: float) -> NotPublishedYet:
    """The error for a position that the last epoch does not hold after waiting for it."""
    behind_bytes = position - last.complete_to
    return NotPublishedYet(
        f"position {position} is not published after {timeout_s:g} s: epoch {last.number} holds everything up to "
        f"{last.complete_to}, which is {behind_bytes} bytes of the WAL behind, and is {last.age_s:.1f} s old",
        hint=f"wait longer; {_ENGINE}",
        behind_bytes=behind_bytes,
    )


def _at(known: KnownRecords, at: int | datetime | str) -> PublishedEpoch:
    root, published = known.root, known.published()
    last = published[-1]
    if isinstance(at, datetime):
        return _last_up_to(root, published, at, f"time {at.isoformat()}")
    if isinstance(at, str):
        # Positions of other generations are of another history.
        of_history = [record for record in published if record.generation == last.generation]
        return _last_up_to(root, of_history, Lsn.parse(at), f"position {at}")
    if at > last.epoch:
        raise NotPublishedYet(f"epoch {at} is not published yet: the last one is epoch {last.epoch}", hint=_ENGINE)
    found = next((record for record in reversed(published) if record.epoch == at), None)
    return _readable(root, published, found, f"epoch {at}")


def _last_up_to(root: Path, published: Sequence[ControlRecord], moment: datetime | Lsn, wanted: str) -> PublishedEpoch:
    """The last epoch up to a moment, once it is known that no later one is up to there."""
    last = PublishedEpoch(root, published[-1])
    if not _is_known(last, moment):
        raise NotPublishedYet(
            f"{wanted} is not published yet: epoch {last.number} is at {last.position}, {last.age_s:.1f} s old",
            hint=_ENGINE,
        )
    found = next((record for record in reversed(published) if _is_up_to(record, moment)), None)
    return _readable(root, published, found, wanted)


def _is_up_to(record: ControlRecord, moment: datetime | Lsn) -> bool:
    if isinstance(moment, datetime):
        return record.committed_at is not None and record.committed_at <= moment
    return record.position is not None and record.position <= moment


def _is_known(last: PublishedEpoch, moment: datetime | Lsn) -> bool:
    """Whether everything that was committed up to a moment is published."""
    return last.committed_at >= moment if isinstance(moment, datetime) else last.record.holds(moment)


def _readable(
    root: Path, published: Sequence[ControlRecord], found: ControlRecord | None, wanted: str
) -> PublishedEpoch:
    """The epoch of a record. Raises EpochNotRetained if there is none, or if its tables can no longer be read."""
    if found is not None and _has_tables(root, found):
        return PublishedEpoch(root, found)
    # The newest one can be read, and upkeep removes the oldest first.
    oldest = published[bisect_left(published[:-1], True, key=lambda record: _has_tables(root, record))]
    raise EpochNotRetained(
        f"{wanted} was never published, or is no longer retained: the oldest epoch that can be read is {oldest.epoch}, "
        f"at {oldest.position} of {oldest.committed_at}",
        hint=_RETENTION,
        oldest=oldest.epoch,
    )


def _has_tables(root: Path, record: ControlRecord) -> bool:
    tables = PublishedEpoch(root, record).readable.values()
    return all(has_version(root, table.path, table.version) for table in tables)
