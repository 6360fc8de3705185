"""Watches the services of a project as soon as somebody asks for its status, for a process that only reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import capture_of
from cdc_views.errors import BadConfig, CdcViewsError
from cdc_views.serve.watch.status import Status, read_status
from cdc_views.serve.watch.watch import Watch
from cdc_views.store.control import read_control

# Several pages that look at the same time get the same answer.
_KEPT_S: Final = 1.0
# A reset, or a stack that was started again, has other addresses.
_SETTINGS_S: Final = 10.0


class ProjectWatch:
    """The status of a project. For one thread; `close` ends the looks at the services."""

    def __init__(self, warehouse: Path, settings: Callable[[], Settings] | None) -> None:
        """`settings` reads those of the project. Without them, only the warehouse is known."""
        self._warehouse = warehouse
        self._settings = settings
        self._looks = ExitStack()
        self._watch: Watch | None = None
        self._status: Status | None = None
        self._read_at = 0.0
        self._looked_until = 0.0

    def status(self) -> Status:
        """What `cdc-views status` shows; at most a second old. Raises NothingPublished."""
        if self._status is None or time.monotonic() - self._read_at > _KEPT_S:
            watch, problem = self._watching()
            self._status = read_status(self._warehouse, watch, problem)
            self._read_at = time.monotonic()
        return self._status

    def close(self) -> None:
        """End the looks."""
        self._looks.close()
        self._watch = None

    def _watching(self) -> tuple[Watch | None, CdcViewsError | None]:
        """The watch over the current capture, or why there is none: a reader may have only the warehouse."""
        if self._settings is None:
            return None, BadConfig("the settings of the source are not known here")
        if self._watch is not None and time.monotonic() < self._looked_until:
            return self._watch, None
        try:
            base, records = self._settings(), read_control(self._warehouse)
            settings = capture_of(base, records).capture.settings(base)
        except CdcViewsError as error:
            return None, error
        if self._watch is None or self._watch.settings != settings:
            self._looks.close()
            self._watch = self._looks.enter_context(Watch(settings, records))
        self._looked_until = time.monotonic() + _SETTINGS_S
        return self._watch, None
