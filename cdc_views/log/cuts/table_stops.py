"""Which tables a cut stops, and before which position it must end because of them.

A cut ends before the first DDL or TRUNCATE that cannot be applied to a mirror (ddl.py). The next cut stops the table,
and goes on without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.service_schema import DDL, TRUNCATES
from cdc_views.base.stopped import StoppedTable
from cdc_views.errors import CdcViewsError
from cdc_views.log.cuts.barrier import Barrier
from cdc_views.log.cuts.buffer import CutBuffer
from cdc_views.log.cuts.ddl import DdlCheck, DdlResult, Stop
from cdc_views.log.cuts.markers import ArrivedMarker


class TableStops:
    """The stopped tables of the cut that is being made, and the captured set as it was at the last cut."""

    def __init__(
        self,
        publication: str,
        mirrored: Collection[TableName],
        captured: CapturedSet | None,
        changed: Mapping[TableName, CdcViewsError],
        *,
        barrier: Barrier,
        buffer: CutBuffer,
    ) -> None:
        """See `Log` for the arguments; `captured` is None before the first cut."""
        self._barrier = barrier
        self._buffer = buffer
        self._publication = publication
        self._mirrored = frozenset(mirrored)
        self._changed = dict(changed)
        self._stopped: dict[TableName, StoppedTable] | None = None
        self.captured = captured

    @property
    def stopped(self) -> dict[TableName, StoppedTable]:
        """The tables that the cut omits, with the reason."""
        return dict(self._stopped or {})

    def begin(self, stopped: Mapping[TableName, StoppedTable] | None) -> None:
        """Begin a cut that omits these tables; with None, a table that has to stop raises its error."""
        self._stopped = None if stopped is None else dict(stopped)

    def stop(self, found: Stop, position: Lsn | None) -> None:
        """Omit the table of `found` from the cut after `position`.

        Raises its error if tables must not be omitted, before the first published cut, and for the last table.
        """
        if self._stopped is None or position is None or self._mirrored <= {*self._stopped, found.table}:
            raise found.error
        self._stopped[found.table] = StoppedTable.by(found.error, max(position, found.position or position))

    def first_ahead(self, marker: ArrivedMarker, position: Lsn | None) -> Stop | None:
        """Return the first stop with something to cut between `position` and it; stop the tables of earlier ones."""
        assert marker.position is not None
        while (found := self.check(marker.position)[1].stop) is not None:
            at = found.position
            is_ahead = at is not None and (position is None or at > position)
            if at is not None and is_ahead and (self._buffer.bulk or not self._buffer.is_empty_below(at)):
                return found
            self.stop(found, position)
        return None

    def changed_since_start(self) -> Stop | None:
        """Return the stop of a table that is not what its mirror was made of, where no record of the log says why."""
        left = (table for table in self._changed if table not in self.stopped)
        return next((Stop(table, None, None, self._changed[table]) for table in left), None)

    def unexplained(self, marker: ArrivedMarker) -> Stop | None:
        """Return the stop of a table that differs from what the recorded changes before a marker have left."""
        assert marker.position is not None
        check, result = self.check(marker.position)
        return check.unexplained(result)

    def check(self, position: Lsn) -> tuple[DdlCheck, DdlResult]:
        """Apply the records of DDL and TRUNCATE below a position to the captured set of the last cut."""
        tables = self._mirrored - self.stopped.keys()
        check = DdlCheck(self._publication, tables, self.captured, self._barrier.captured)
        return check, check.apply(self._buffer.of(DDL), self._buffer.of(TRUNCATES), position)
