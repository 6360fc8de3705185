"""Follows the published epochs in a thread, for readers that prepare each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from cdc_views.errors import CdcViewsError
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.store.control import ControlRecord, KnownRecords

TakeOver: TypeAlias = Callable[[PublishedEpoch | None], None]

_POLL_S: Final = 0.02


class EpochFollower:
    """Hands each new last epoch to all that follow it, in one thread, which runs as long as there are any.

    Each gets the last epoch first, and None when there is none, or when the log is another one. They must not raise.
    """

    def __init__(self, known: KnownRecords) -> None:
        self._known = known
        self._last_given: dict[TakeOver, ControlRecord | None] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def add(self, take_over: TakeOver) -> None:
        """Hand over epochs to this function from now on."""
        with self._lock:
            is_first = not self._last_given
            self._last_given[take_over] = None
            if is_first:
                self._ended = threading.Event()
                threading.Thread(target=self._run, args=(self._ended,), name="epochs", daemon=True).start()

    def remove(self, take_over: TakeOver) -> None:
        """Hand over no more epochs to this function; it may still run."""
        with self._lock:
            self._last_given.pop(take_over, None)
            if not self._last_given:
                self._ended.set()

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(_POLL_S):
            record = self._last()
            with self._lock:
                given = list(self._last_given.items())
            for take_over, last in given:
                self._give(take_over, last, record)

    def _last(self) -> ControlRecord | None:
        try:
            return self._known.last()
        except CdcViewsError:  # which the next reader finds
            return None

    def _give(self, take_over: TakeOver, last: ControlRecord | None, record: ControlRecord | None) -> None:
        if record is last:
            return
        if record is None or (last is not None and record.epoch <= last.epoch):
            take_over(None)
        if record is not None:
            take_over(PublishedEpoch(self._known.root, record))
        with self._lock:
            if take_over in self._last_given:
                self._last_given[take_over] = record
