"""The barrier: a marker of ours that has come through the log, and with it everything committed before it."""

from __future__ import annotations

from collections.abc import Collection

from cdc_views.base.captured import CapturedSet
from cdc_views.base.names import TableName
from cdc_views.config import LogSettings
from cdc_views.errors import MarkerTimeout
from cdc_views.host.clock import Clock
from cdc_views.log.cuts.markers import ArrivedMarker, MarkerWriter, read_marker, require_pinned
from cdc_views.log.kafka.at_least_once import HINT, StoredOffsets
from cdc_views.log.kafka.record import Offsets, Record


class Barrier:
    """Waits for a marker: pass it the records of the markers' topic, and ask `passed` whether everything
    can be read.
    """

    def __init__(
        self, settings: LogSettings, writer: MarkerWriter, clock: Clock, zoned: Collection[TableName] = ()
    ) -> None:
        """`zoned` lists the tables with values that are printed in the time zone of the connector's session."""
        self._zoned = zoned
        self._settings = settings
        self._writer = writer
        self._clock = clock
        self._number = 0
        self._arrived: ArrivedMarker | None = None
        # Only without exactly-once: there a marker alone says nothing about other partitions.
        self._stored = None if settings.offsets_topic is None else StoredOffsets(settings, settings.offsets_topic)
        self.touched_s = 0.0
        """When the awaited marker was written, by `Clock.monotonic()`."""
        self.captured = CapturedSet(tables={})
        """The captured set as it was at some moment after the awaited marker was committed."""

    def touch(self) -> None:
        """Write a marker, then read the captured set: it shows everything that was changed before the marker."""
        self.touched_s = self._clock.monotonic()
        self._number = self._writer.touch()
        self.captured = self._writer.captured()

    def forget(self) -> None:
        """Forget the markers that were read: they say nothing about records that will be read from now on."""
        self._arrived = None

    def take(self, record: Record) -> None:
        """Take the next record of the markers' topic. Raises BadEvent, PrintedOtherwise."""
        require_pinned(record, self._zoned)
        self._arrived = read_marker(record, self._writer.writer) or self._arrived

    def passed(self) -> ArrivedMarker | None:
        """Return the awaited marker, or a later one, once everything that it vouches for can be read; else None."""
        arrived = self._arrived
        if arrived is None or arrived.number < self._number:
            return None
        if arrived.position is None:
            # The first transaction after the slot was created has no position; the next one has.
            self.touch()
            return None
        is_delivered = self._stored is None or (self._stored.commit() or 0) >= arrived.position
        return arrived if is_delivered else None

    def timeout(self, unended: Offsets) -> MarkerTimeout:
        """Return the error of a wait in vain; `unended` has the start of each open transaction in the
        markers' topic.
        """
        limit_s, arrived = self._settings.marker_timeout_s, self._arrived
        problem = f"marker {self._number} did not come through the log in {limit_s:.0f} s"
        hint = (
            "see the log of Connect: the connector may be starting, or catching up with the source; if that does not "
            "help, restart the connector and its tasks"
        )
        if self._stored is not None and arrived is not None and arrived.number >= self._number:
            problem = (
                f"marker {self._number} came, and in {limit_s:.0f} s Connect has not stored position "
                f'{arrived.position} in topic "{self._settings.offsets_topic}", only {self._stored.commit()}'
            )
            hint = f"{HINT}; its offset.flush.interval.ms is how often it stores"
        for each, start in unended.items():
            problem += f': partition "{each}" has a transaction from offset {start} on that is still open'
            hint = (
                f'after a crash of the brokers, end it with "kafka-transactions.sh abort --topic {each.topic} '
                f'--partition {each.partition} --start-offset {start}" (KAFKA-20734), also in other topics'
            )
        return MarkerTimeout(problem, hint=hint)

    def close(self) -> None:
        """Close the reader of the stored offsets."""
        if self._stored is not None:
            self._stored.close()
