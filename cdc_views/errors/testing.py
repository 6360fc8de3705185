"""The test harness, the comparison with Postgres, and the WAL oracle."""

from __future__ import annotations

from cdc_views.errors.base import BadInput, CdcViewsError


class BadTable(BadInput):
    """A statement from which the test harness cannot create a table."""


class BadChange(BadInput):
    """A change that the tables of the test harness refuse, as Postgres would."""


class BadValue(BadChange):
    """A value that is not of its column's type, or does not fit it."""


class DuplicateKey(BadChange):
    """A row whose key another row has."""


class NoSuchRow(BadChange):
    """A row to update or delete that does not exist, or is not the only one."""


class NullNotAllowed(BadChange):
    """NULL in a column that is NOT NULL."""


class FaultNotReached(CdcViewsError):
    """A test's crash that did not happen: its point was not reached."""


class UnequalRows(CdcViewsError, AssertionError):
    """Rows that are not those of a view's SQL; the message shows them."""


class CheckFailed(CdcViewsError):
    """Tables or views that do not equal Postgres."""


class OracleError(CdcViewsError):
    """The WAL oracle of cdc_views.testing cannot say what Postgres held."""


class UnsupportedTable(OracleError):
    """A table that cannot be replayed: its changes do not name their row, or its types cannot be created again."""


class PositionUnknown(OracleError):
    """A position before the oracle's beginning, before its current one, or not yet in the WAL."""


class ReplayFailed(OracleError):
    """The WAL does not fit the rows to which it is applied, or cannot be read."""
