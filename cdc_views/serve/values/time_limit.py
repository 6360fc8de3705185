"""How long a read may take. It is checked between the steps of the read, none of which it interrupts."""

from __future__ import annotations

from time import monotonic

from cdc_views.errors import QueryTooLong


class TimeLimit:
    """The limit of one read, which begins now; None is no limit."""

    def __init__(self, seconds: float | None, what: str, hint: str) -> None:
        """`what` is the read, for the error."""
        self._seconds, self._what, self._hint = seconds, what, hint
        self._began_at = monotonic()

    def check(self) -> None:
        """Raise QueryTooLong if the time is over."""
        if self._seconds is not None and monotonic() - self._began_at > self._seconds:
            raise QueryTooLong(
                f"{self._what} has taken more than {self._seconds:g} s, which is the limit", hint=self._hint
            )
