"""How much work Spark did for a group of jobs, by Spark's own counters.

The counters are read afterwards and only on demand: an epoch only pays for naming the group. Spark remembers its last
thousand jobs and queries.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

BESIDE: Final = "beside"
"""The pool of jobs that give way to those of the epochs (fair_scheduler.xml)."""

_ROWS: Final = "number of output rows"
_FILES: Final = "number of files read"


@dataclass(frozen=True)
class SparkWork:
    """The jobs that ran, and the rows and files of tables that they read. Reads of Delta's log are not counted."""

    jobs: int
    rows_read: int
    files_read: int


@contextmanager
def job_group(session: SparkSession, description: str, tag: str | None = None) -> Iterator[str]:
    """Put the jobs that this thread starts in the block into a group of their own; yields the group's name.

    With a tag, they are in the pool of work that gives way to the epochs, and can be cancelled by it.
    """
    context, group = session.sparkContext, f"cdc-views {uuid.uuid4()}"
    context.setJobGroup(group, description)
    if tag is not None:
        context.addJobTag(tag)
        context.setLocalProperty("spark.scheduler.pool", BESIDE)
    try:
        yield group
    finally:
        if tag is not None:
            context.removeJobTag(tag)
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def spark_work(session: SparkSession, group: str) -> SparkWork:
    """The work of a group of jobs. The jobs must have ended."""
    context: Any = session.sparkContext._jsc.sc()
    # Events reach the status store through queues.
    context.listenerBus().waitUntilEmpty()
    jobs = list(session.sparkContext.statusTracker().getJobIdsForGroup(group))
    queries = {_query_of(context, job) for job in jobs} - {None}
    states = session._jsparkSession.sharedState().statusStore()
    scans = [scan for query in queries for scan in _scans(states, query)]
    return SparkWork(len(jobs), sum(rows for rows, _ in scans), sum(files for _, files in scans))


def _query_of(context: Any, job: int) -> int | None:
    query = context.statusStore().jobWithAssociatedSql(job)._2()
    return int(query.get()) if query.isDefined() else None


def _scans(states: Any, query: int | None) -> Iterator[tuple[int, int]]:
    """The rows and files that each file scan of a query read."""
    values = states.executionMetrics(query)
    nodes = states.planGraph(query).allNodes()
    for node in (nodes.apply(number) for number in range(nodes.size())):
        metrics = node.metrics()
        found = {metric.name(): metric.accumulatorId() for metric in
                 (metrics.apply(number) for number in range(metrics.size()))}  # fmt: skip
        if _FILES in found and "_delta_log" not in node.desc():
            yield _value(values, found[_ROWS]), _value(values, found[_FILES])


def _value(values: Any, accumulator: int) -> int:
    value = values.get(accumulator)
    # Formatted for people: "1,234".
    return int(str(value.get()).replace(",", "")) if value.isDefined() else 0
