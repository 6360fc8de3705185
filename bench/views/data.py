"""The contents of the base tables, and changes of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from random import Random
from typing import Any, Final

import duckdb
import pyarrow as pa

from bench.views.tables import MACROS, TABLES
from cdc_views.demo.data import SCHEMA_FILE
from cdc_views.source.catalog import SourceTable
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_source import SourceChange

Row = dict[str, Any]

_PIECE_ROWS: Final = 200_000
_CREATE: Final = re.compile(r"^CREATE TABLE .*?^\);", re.MULTILINE | re.DOTALL)


def demo_tables() -> dict[str, SourceTable]:
    """The measured tables of the demo as its source has them, with REPLICA IDENTITY FULL for all."""
    created = _CREATE.findall(SCHEMA_FILE.read_text())
    full = [f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in TABLES]
    sources = [table.source for table in read_tables([*created, *full])]
    return {source.name.table: source for source in sources if source.name.table in TABLES}


class Data:
    """The rows of all tables: those at the beginning, and the present ones after changes.

    A row is named by its number. `size` has the number of rows of each table at the beginning.
    """

    def __init__(self, rows: int, sources: Mapping[str, SourceTable], schemas: Mapping[str, pa.Schema]) -> None:
        """`rows` is the number of rows in all tables together."""
        self.size = {name: max(1, rows * table.share // 1000) for name, table in TABLES.items()}
        self._sources = sources
        self._schemas = schemas
        self._random = Random(1)
        self._touched: dict[str, dict[int, Row | None]] = {name: {} for name in TABLES}
        self._inserted = Counter[str]()
        self._turns = cycle(TABLES)
        self._maker = duckdb.connect()
        self._maker.execute(MACROS)

    def close(self) -> None:
        """Free the memory of DuckDB."""
        self._maker.close()

    def base(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table at the beginning, in batches."""
        size = self.size[table]
        for first in range(0, size, _PIECE_ROWS):
            yield self._made(table, f"range({first}, {min(size, first + _PIECE_ROWS)}) numbers(n)")

    def changes(self, count: int) -> list[SourceChange]:
        """Changes of different rows, spread evenly over the tables: 70 % updates, 20 % inserts, 10 % deletes.

        The tables take turns, also from one call to the next. Fewer changes than `count` if a table has too few rows.
        """
        counts = Counter(islice(self._turns, count))
        return [change for table, number in counts.items() for change in self._changes_of(table, number)]

    def _changes_of(self, table: str, count: int) -> Iterator[SourceChange]:
        numbers = self._random.sample(range(self.size[table]), min(count, self.size[table]))
        kinds = self._random.choices(("update", "insert", "delete"), (7, 2, 1), k=len(numbers))
        numbers = [number if kind != "insert" else self._next(table)
                   for number, kind in zip(numbers, kinds, strict=True)]  # fmt: skip
        donors = [self._random.randrange(self.size[table]) for _ in numbers]
        touched = self._touched[table]
        made = self._rows(table, {*donors, *(number for number in numbers if touched.get(number) is None)})
        for number, kind, donor in zip(numbers, kinds, donors, strict=True):
            old = None if kind == "insert" else touched.get(number, made.get(number))
            if old is None:  # an insert, or a row that was deleted earlier
                new: Row | None = made[number]
            else:
                updated = {name: made[donor][name] for name in TABLES[table].updated}
                new = None if kind == "delete" else old | updated
            touched[number] = new
            yield SourceChange(self._sources[table], old, new)

    def _next(self, table: str) -> int:
        self._inserted[table] += 1
        return self.size[table] + self._inserted[table] - 1

    def _rows(self, table: str, numbers: Iterable[int]) -> dict[int, Row]:
        """The rows of these numbers as they are at the beginning, or when they are inserted."""
        wanted: Sequence[int] = sorted(numbers)
        self._maker.register("wanted", pa.table({"n": pa.array(wanted, pa.int64())}))
        made = self._made(table, "wanted ORDER BY n")
        return dict(zip(wanted, made.to_pylist(), strict=True))

    def _made(self, table: str, numbers: str) -> pa.Table:
        values = TABLES[table].values.format(**self.size)
        return self._maker.sql(f"SELECT {values} FROM {numbers}").to_arrow_table().cast(self._schemas[table])
