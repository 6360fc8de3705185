"""How much a query may take: time, memory, and the size of its answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import duckdb
import pyarrow as pa

from cdc_views.errors import QueryTooLong, ResultTooLarge
from cdc_views.serve.values.answer_size import within

_SMALLER: Final = "select fewer columns or rows, or aggregate them"
_AGAIN_S: Final = 0.1


@dataclass(frozen=True)
class QueryLimits:
    """The limits of one query; None is no limit. `most_bytes` is the size of the answer (values/answer_size.py)."""

    seconds: float | None = None
    memory_mb: int | None = None
    rows: int | None = None
    most_bytes: int | None = None

    def options(self) -> dict[str, str]:
        """The settings of DuckDB for these limits."""
        # A query that may not use more memory may not use the disk in its place.
        return {} if self.memory_mb is None else {"memory_limit": f"{self.memory_mb}MiB", "temp_directory": ""}

    @contextmanager
    def timed(self, database: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Interrupt what the connection does after the limit. Raises QueryTooLong in place of DuckDB's error."""
        if self.seconds is None:
            yield
            return
        limit_s, is_over, is_done = self.seconds, threading.Event(), threading.Event()

        def watch() -> None:
            if not is_done.wait(limit_s):
                is_over.set()
                database.interrupt()
                while not is_done.wait(_AGAIN_S):  # between two statements, an interrupt has no effect
                    database.interrupt()

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        except Exception as error:
            if is_over.is_set():
                raise self.too_long() from error
            raise
        finally:
            is_done.set()
            watching.join()

    def take(self, batches: pa.RecordBatchReader) -> pa.Table:
        """All rows. Raises ResultTooLarge as soon as they are more than the limits allow."""
        taken, rows = [], 0
        for batch in within(batches, self.most_bytes, _SMALLER):
            rows += batch.num_rows
            if self.rows is not None and rows > self.rows:
                raise ResultTooLarge(f"the answer has more than {self.rows} rows, which is the limit", hint=_SMALLER)
            taken.append(batch)
        return pa.Table.from_batches(taken, batches.schema)

    def too_long(self) -> QueryTooLong:
        """The error of a query that takes longer."""
        return QueryTooLong(
            f"the query has taken {self.seconds:g} s, which is the limit",
            hint="read fewer rows or join fewer tables, or keep the result as a view",
        )

    def out_of_memory(self) -> ResultTooLarge:
        """The error of a query that takes more memory, or more than there is."""
        limit = "there is" if self.memory_mb is None else f"{self.memory_mb} MiB, which is the limit"
        return ResultTooLarge(
            f"the query needs more memory than {limit}", hint="read fewer rows, or keep the result as a view"
        )


NO_LIMITS: Final = QueryLimits()
