"""How much work Spark did for a group of its jobs, as Spark itself counted it.

Asked for after the fact, and only by who wants to know: an epoch pays for the group's name alone. Spark
remembers its last thousand jobs and queries.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

_ROWS: Final = "number of output rows"
_FILES: Final = "number of files read"


@dataclass(frozen=True)
class SparkWork:
    """Jobs that ran, and rows and files of tables that their scans read; Delta's own log is not counted."""

    jobs: int
    rows_read: int
    files_read: int


@contextmanager
def job_group(session: SparkSession, description: str) -> Iterator[str]:
    """Give the jobs that this thread starts in the block a group of their own; yields its name."""
    context, group = session.sparkContext, f"cdc-views {uuid.uuid4()}"
    context.setJobGroup(group, description)
    try:
        yield group
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def spark_work(session: SparkSession, group: str) -> SparkWork:
    """What the jobs of a group did; they have ended."""
    context: Any = session.sparkContext._jsc.sc()
    # Events reach the store of states through queues.
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
    """Rows and files that each scan of files read, in one query."""
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
    # Printed for people: "1,234".
    return int(str(value.get()).replace(",", "")) if value.isDefined() else 0
