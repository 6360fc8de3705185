"""Builds views in a thread while the engine publishes epochs.

A view is filled from the epoch that was the last one when its turn came. It then follows the epochs published since, as
long as that gets faster. Between two epochs the engine lets it join: the changes since are few by then.

Where these changes do not suffice, the view would have to be computed in full to join, and would hold up the epochs. So
it is filled again by the thread, a few times. After that it joins at that price, or it might never do so.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.engine.building.build import Build, CannotBuild
from cdc_views.engine.building.groups import groups_to_build
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import NotByChanges, ViewRunner
from cdc_views.store.control import ControlRecord

# A view that follows within this time may join.
_QUICK_S: Final = 1.0
_GAIN: Final = 0.8
_MOST_FILLS: Final = 3
_LOOK_EVERY_S: Final = 1.0
_END_LIMIT_S: Final = 60
_CANCEL_EVERY_S: Final = 0.5
_WAITING: Final = "waiting for its turn"

_LOGGER: Final = logging.getLogger(__name__)


class Beside:
    """The views of an engine that are built beside its epochs. All methods are for the thread of the epochs."""

    def __init__(self, spark: SparkSession, tables: Tables, views: ViewRunner) -> None:
        self._spark = spark
        self._tables = tables
        self._views = views
        self._tag = f"cdc-views-beside-{uuid4()}"
        self._builds: dict[int, Build] = {}  # by number; those that have not joined yet
        self._turns = SimpleQueue[int | None]()  # numbers of builds; None ends the thread
        self._ended: dict[int, CannotBuild | None] = {}  # by the number of the build
        self._doing: dict[str, str] = {}
        self._error: BaseException | None = None
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="building", daemon=True)
        self._looked_at_s = 0.0

    def begin(self, takeover: ControlRecord) -> None:
        """Take the views that are worth it out of the epochs, and start to build them. No attempt may be under way."""
        tables, views = self._tables, self._views
        for number, group in enumerate(groups_to_build(tables, views)):
            for view in (view for level in group for view in level):
                # An earlier engine, or its thread if that was not ended in time, may still write to the table it built.
                tables.renew(view.definition.name)
            self._builds[number] = Build(self._spark, tables, group, takeover)
        for build in self._builds.values():
            views.leave_out(build.names)
            for name in build.names:
                if not tables.is_internal(name):
                    tables.building[name] = _WAITING
                tables.remove(name)
        if self._builds:
            assert tables.published is not None
            tables.built_since = tables.published.published_at
            tables.built = frozenset(spec.path for build in self._builds.values() for spec in build.specs.values())
            for number in self._builds:
                self._turns.put(number)
            _LOGGER.info("building beside the epochs: %s", ", ".join(sorted(tables.building)))
            faults.point("building.after_begin")
            self._thread.start()

    def join(self) -> None:
        """Let the views that are ready join. Raises what has ended the thread: Fenced, DiskFull, DriverLost."""
        if not self._tables.building:
            return  # each build has a view of the user
        if self._error is not None:
            raise self._error
        for number in sorted(self._ended):
            self._take_back(number, self._ended.pop(number))
        if not self._tables.building:
            self._turns.put(None)
            self._tables.built_since, self._tables.built = None, frozenset()
        self._say_progress()

    def stop(self) -> None:
        """End the thread; the next engine starts over with what is not finished."""
        self._has_ended.set()
        self._turns.put(None)
        end_s = time.monotonic() + _END_LIMIT_S
        while self._thread.is_alive() and time.monotonic() < end_s:
            with suppress(Py4JError, OSError):
                self._spark.sparkContext.cancelJobsWithTag(self._tag)  # it may go on with another strategy
            self._thread.join(_CANCEL_EVERY_S)

    def _run(self) -> None:
        try:
            while (number := self._turns.get()) is not None:
                try:
                    self._build(self._builds[number])
                    ended = None
                except CannotBuild as reason:
                    ended = reason
                if self._has_ended.is_set():
                    return
                self._ended[number] = ended
        except BaseException as error:
            self._error = error

    def _build(self, build: Build) -> None:
        """Fill the tables of a build, and follow the epochs until it has nearly reached them."""
        before_s = float("inf")
        while not self._has_ended.is_set():
            epoch = self._tables.published
            assert epoch is not None
            if build.at is not None and build.at.seq == epoch.seq:
                return
            doing = "filling from" if build.at is None else "following to"
            self._doing |= dict.fromkeys(build.names, f"{doing} epoch {epoch.epoch}")
            is_first, began = build.at is None, time.monotonic()
            build.bring_to(epoch, self._tag)
            took_s = time.monotonic() - began
            # What every epoch computes in full gets no nearer by following.
            if took_s < _QUICK_S or not build.is_by_changes or (not is_first and took_s > _GAIN * before_s):
                return
            before_s = took_s

    def _take_back(self, number: int, reason: CannotBuild | None) -> None:
        """Let the views join at the last epoch, or fill them again; if neither works, the next epoch computes them."""
        assert self._tables.published is not None
        build = self._builds[number]
        try:
            if reason is not None:
                raise reason
            # What every epoch computes in full does not hold up this one for longer.
            build.bring_to(self._tables.published, by_changes=build.is_by_changes and build.fills < _MOST_FILLS)
        except NotByChanges as problem:
            _LOGGER.info("filling %s again beside the epochs: %s", _listed(build), problem)
            build.start_over()
            self._turns.put(number)
            return
        except CannotBuild as problem:
            self._tables.take_back(build.specs.values())
            _LOGGER.warning("not built beside the epochs, so the next one computes %s: %s", _listed(build), problem)
        else:
            assert build.at is not None
            faults.point("building.before_join")
            self._tables.adopt(build.specs.values(), build.at)
            _LOGGER.info("joined after epoch %s: %s", build.at.epoch, _listed(build))
        del self._builds[number]
        for name in build.names:
            self._tables.building.pop(name, None)
        self._views.admit(build.names)

    def _say_progress(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_at_s < _LOOK_EVERY_S:
            return
        self._looked_at_s = now_s
        tasks = self._tasks()
        for name in self._tables.building:
            if name in self._doing:
                self._tables.building[name] = f"{self._doing[name]}{tasks}"

    def _tasks(self) -> str:
        """How many tasks of Spark's current stages are done."""
        context: Any = self._spark.sparkContext
        with suppress(Py4JError, OSError):
            tracker = context._jsc.sc().statusTracker()
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [info.get() for info in infos if info.isDefined()]
            if found:
                return f", {sum(i.numCompletedTasks() for i in found)} of {sum(i.numTasks() for i in found)} tasks done"
        return ""


def _listed(build: Build) -> str:
    return ", ".join(f'"{name}"' for name in sorted(build.names))
