"""The barrier: a marker of ours that came through the log, with all that was committed before it."""

from __future__ import annotations

from collections.abc import Collection

from cdc_views.captured import CapturedSet
from cdc_views.clock import Clock
from cdc_views.config import LogSettings
from cdc_views.errors import MarkerTimeout
from cdc_views.log.at_least_once import HINT, StoredOffsets
from cdc_views.log.markers import ArrivedMarker, MarkerWriter, read_marker, require_pinned
from cdc_views.log.record import Offsets, Record
from cdc_views.names import TableName


class Barrier:
    """Give it the records of the markers' topic; `passed` says when everything before a marker can be read."""

    def __init__(
        self, settings: LogSettings, writer: MarkerWriter, clock: Clock, zoned: Collection[TableName] = ()
    ) -> None:
        """Tables in `zoned` have values that are printed in the time zone of the connector's session."""
        self._zoned = zoned
        self._settings = settings
        self._writer = writer
        self._clock = clock
        self._number = 0
        self._arrived: ArrivedMarker | None = None
        # Only without exactly-once: there a marker alone says nothing of other partitions.
        self._stored = None if settings.offsets_topic is None else StoredOffsets(settings, settings.offsets_topic)
        self.touched_s = 0.0
        """When the marker that is awaited was written, by `Clock.monotonic()`."""
        self.captured = CapturedSet(tables={})
        """The captured set as it was at some moment after that marker was committed."""

    def touch(self) -> None:
        """Write a marker, then look at the captured set: what was changed before the marker can be seen by then."""
        self.touched_s = self._clock.monotonic()
        self._number = self._writer.touch()
        self.captured = self._writer.captured()

    def forget(self) -> None:
        """What came so far says nothing of what will be read from now on."""
        self._arrived = None

    def take(self, record: Record) -> None:
        """Take the next record of the markers' topic. Raises BadEvent, PrintedOtherwise."""
        require_pinned(record, self._zoned)
        self._arrived = read_marker(record, self._writer.writer) or self._arrived

    def passed(self) -> ArrivedMarker | None:
        """Give the marker, or a later one, once it has come and all that it vouches for can be read."""
        arrived = self._arrived
        if arrived is None or arrived.number < self._number:
            return None
        if arrived.position is None:
            # The first transaction after the slot was made; the next one has a position.
            self.touch()
            return None
        is_delivered = self._stored is None or (self._stored.commit() or 0) >= arrived.position
        return arrived if is_delivered else None

    def timeout(self, unended: Offsets) -> MarkerTimeout:
        """Make the error of a wait in vain; `unended`: from where on transactions in the markers' topic do not end."""
        limit_s, arrived = self._settings.marker_timeout_s, self._arrived
        problem = f"marker {self._number} did not come through the log in {limit_s:.0f} s"
        hint = (
            "see the log of Connect; the connector may be starting, or catching up with the source; if nothing helps, "
            "restart it with its tasks"
        )
        if self._stored is not None and arrived is not None and arrived.number >= self._number:
            problem = (
                f"marker {self._number} came, and in {limit_s:.0f} s Connect has not stored position "
                f'{arrived.position} in topic "{self._settings.offsets_topic}", only {self._stored.commit()}'
            )
            hint = f"{HINT}; its offset.flush.interval.ms is how often it stores"
        for each, start in unended.items():
            problem += f': partition "{each}" has a transaction from offset {start} on that nobody has ended'
            hint = (
                f'after a crash of the brokers "kafka-transactions.sh abort --topic {each.topic} --partition '
                f'{each.partition} --start-offset {start}" ends it (KAFKA-20734), also in other topics'
            )
        return MarkerTimeout(problem, hint=hint)

    def close(self) -> None:
        """Let go of what reads the stored offsets."""
        if self._stored is not None:
            self._stored.close()
