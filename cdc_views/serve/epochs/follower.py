"""Follows the published epochs in a thread, for a reader that prepares each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cdc_views.errors import CdcViewsError
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.store.control import ControlRecord, KnownRecords

_POLL_S: Final = 0.02


class EpochFollower:
    """Hands over each new last epoch, and None when there is none, or when the log is another one."""

    def __init__(self, known: KnownRecords, take_over: Callable[[PublishedEpoch | None], None]) -> None:
        self._known = known
        self._take_over = take_over
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epochs of a reader", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """False once it is closed, and if its thread has met a fault."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Hand over no more epochs."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        last: ControlRecord | None = None
        while not self._ended.wait(_POLL_S):
            record = self._last()
            if record is last:
                continue
            if record is None or (last is not None and record.epoch <= last.epoch):
                self._take_over(None)
            if record is not None:
                self._take_over(PublishedEpoch(self._known.root, record))
            last = record

    def _last(self) -> ControlRecord | None:
        try:
            return self._known.last()
        except CdcViewsError:  # which the next reader finds
            return None
