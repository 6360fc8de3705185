"""What the user gave: settings, views, SQL, replays, requests; and what must be there before a start."""

from __future__ import annotations

from cdc_views.errors.base import BadInput, EventError


class BadConfig(BadInput):
    """A setting is unknown, has the wrong type or value, or refers to a missing secret."""


class BadLsn(BadInput):
    """A text that is not an LSN."""


class BadWarehouse(BadInput):
    """A URL that readers cannot open as a warehouse."""


class BadView(BadInput):
    """A view file that cannot be used; the message begins with `file:line:column`. Also a missing folder of views."""


class UnsupportedView(BadView):
    """A view whose result depends on more than its tables, or has no exact form in Delta."""


class StrictViewIsFull(BadView):
    """A view that is declared strict, and that no strategy but FULL can maintain."""


class ViewCycle(BadView):
    """Views that read each other in a cycle."""


class BadQuery(BadInput):
    """A query that is refused: its SQL, a column that a table lacks, or two tables that it cannot tell apart."""


class QueryTooLong(BadInput):
    """A query that takes longer than the server allows."""


class ResultTooLarge(BadInput):
    """An answer that is larger, or a query that needs more memory, than the server allows."""


class BadMoment(BadInput):
    """The moment at which to read is not one: no time zone, a negative limit, or two moments at once."""


class BadKey(BadInput):
    """A key that does not fit the table: another number of values, another type, or a view without a key."""


class BadToken(BadInput):
    """What was given to resume changes from is no token, or that of another table or warehouse."""


class BadPage(BadInput):
    """A page that does not exist: less than one entry, or a cursor that is none, or that of another view or owner."""


class WrongKind(BadInput):
    """A view of another kind than the read is for."""


class BadSearch(BadInput):
    """A search query, a filter or a sort that cannot be answered."""


class PreflightFailed(BadInput):
    """Findings of `check` that prevent a start."""


class NotConfirmed(BadInput):
    """A command that asks before it changes something has no terminal to ask at, and `--yes` was not given."""


class UnsupportedType(EventError, BadInput):
    """A column whose values have no exact form in Delta."""


class BadReplay(BadInput):
    """A replay from a point that does not exist, or that would leave a gap."""


class NotSelfContained(BadReplay):
    """The log of a table alone does not contain everything that the table holds."""


class UnknownTable(BadInput):
    """A source table that does not exist."""


class UnknownEvent(BadInput):
    """No event with this topic, partition and offset is in quarantine."""


class BadRequest(BadInput):
    """The running engine cannot read a request, for example one of another version."""


class JavaMissing(BadInput):
    """Java is missing or too old."""


class SourceUnreachable(BadInput):
    """Postgres does not answer, or refuses the connection."""


class UnknownView(BadInput):
    """A table or view that the published epoch does not have."""
