"""Compares published tables with expected answers, exactly: every column of every row, as multisets.

delta-rs reads the published versions. It shares no code with the engine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.store.reading import read_table

SHOWN_PER_TABLE: Final = 5

Row = tuple[Any, ...]
Read = Callable[[Path, str, int], pa.Table]


class Published(Protocol):
    """An entry of the manifest: the folder below the warehouse's root, the Delta version, and the status."""

    @property
    def path(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True)
class ExpectedRows:
    """The expected content of a table or view. `key` identifies rows in messages, and may be empty."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Difference:
    """A row, or a whole table, that differs from Postgres.

    A row: only Postgres has it (`missing`), Postgres does not have it (`extra`), or `columns` differ (`different`).
    A table: `columns` have other names or types (`columns`), it is not published (`unpublished`), it is published as
    failed (`failed`), or there is no query for it (`unasked`).
    """

    table: str
    kind: Literal["missing", "extra", "different", "columns", "unpublished", "failed", "unasked"]
    key: Row = ()
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"{self.kind} ({', '.join(map(str, self.key))}){named}" if self.key else self.kind + named


def read_published(root: Path, table: Published, read: Read = read_table) -> pa.Table:
    """The rows of a published version, without hidden columns. Raises TableUnavailable."""
    rows = read(root, table.path, table.version)
    return rows.select([name for name in rows.column_names if not name.startswith(HIDDEN)])


def differences(
    tables: Mapping[str, Published], asked: Iterable[str], judge: Callable[[list[str]], Mapping[str, list[Difference]]]
) -> list[Difference]:
    """What `judge` finds in the tables with a query. A table on one side only is a difference, too."""
    found: list[Difference] = []
    names, readable = list(asked), []
    for name in names:
        if name not in tables:
            found.append(Difference(name, "unpublished"))
        elif tables[name].status in ("failed", "stopped", "building"):
            found.append(Difference(name, "failed"))
        else:
            readable.append(name)
    judged = judge(readable)
    found += [difference for name in readable for difference in judged[name]]
    # Tables of the engine itself, such as `_quarantine`. The name of a mirror contains a dot.
    ours = [name for name in tables if name.startswith("_") and "." not in name]
    return found + [Difference(name, "unasked") for name in tables if name not in names and name not in ours]


def describe(found: Iterable[Difference]) -> str:
    """The differences, one line per table: the number of rows, and the first few keys of each kind."""
    by_table: dict[str, list[Difference]] = defaultdict(list)
    for difference in found:
        by_table[difference.table].append(difference)
    lines = [_describe_table(table, rows) for table, rows in sorted(by_table.items())]
    return f"{len(lines)} tables or views do not equal Postgres\n" + "\n".join(lines)


def _describe_table(table: str, found: Sequence[Difference]) -> str:
    counts = Counter(difference.kind for difference in found)
    shown = [str(row) for kind in counts for row in [r for r in found if r.kind == kind][:SHOWN_PER_TABLE]]
    totals = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f'  "{table}": {totals}: {"; ".join(shown)}'


def compare(name: str, answer: ExpectedRows, published: pa.Table) -> list[Difference]:
    """The rows in which a published table, without its hidden columns, differs from the answer."""
    if tuple(published.column_names) != answer.columns:
        odd = set(published.column_names) ^ set(answer.columns)
        return [Difference(name, "columns", columns=tuple(sorted(odd)) or answer.columns)]
    wanted_columns = [_canonical(list(column)) for column in zip(*answer.rows, strict=True)]
    found_columns = [_canonical(column.to_pylist()) for column in published.columns]
    wanted, found = Counter(zip(*wanted_columns, strict=True)), Counter(zip(*found_columns, strict=True))
    if odd_types := _other_types(answer.columns, wanted_columns, found_columns):
        return [Difference(name, "columns", columns=odd_types)]
    if wanted == found:  # much faster than the two subtractions
        return []
    return _pair(name, answer, list((wanted - found).elements()), list((found - wanted).elements()))


def _canonical(column: list[Any]) -> list[Any]:
    # Equal decimals, and equal times in two time zones, are equal and have the same hash in Python.
    if isinstance(next((value for value in column if value is not None), None), list):
        return [tuple(value) if value is not None else None for value in column]
    return column


def _other_types(names: tuple[str, ...], wanted: list[list[Any]], found: list[list[Any]]) -> tuple[str, ...]:
    # 1, True and Decimal(1) are equal in Python, but not for a reader of the table.
    return tuple(
        name
        for name, ours, theirs in zip(names, wanted, found, strict=False)
        if (one := _types(ours)) and (other := _types(theirs)) and one != other
    )


def _types(column: list[Any]) -> set[type]:
    return set(map(type, column)) - {type(None)}


def _pair(name: str, answer: ExpectedRows, wanted: list[Row], found: list[Row]) -> list[Difference]:
    """Pair the unequal rows of both sides by key."""
    places = [answer.columns.index(column) for column in answer.key]
    theirs: dict[Row, list[Row]] = defaultdict(list)
    for row in found:
        theirs[tuple(row[place] for place in places)].append(row)
    result = []
    for row in wanted:
        key = tuple(row[place] for place in places)
        if theirs[key]:
            other = theirs[key].pop()
            odd = tuple(c for c, ours, its in zip(answer.columns, row, other, strict=True) if ours != its)
            result.append(Difference(name, "different", key, odd))
        else:
            result.append(Difference(name, "missing", key))
    return result + [Difference(name, "extra", key) for key, rows in theirs.items() for _ in rows]
