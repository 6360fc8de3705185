"""Do the published tables and views equal what Postgres says?

Postgres is asked by hand-written SQL, one file a table or view (`postgres/<name>.sql`, whose first line
names the key), all in one snapshot. The published versions are read by delta-rs, which shares no code with
the engine. Every column of every row is compared, as multisets. Nobody may write to Postgres meanwhile.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import psycopg
import pyarrow as pa

from cdc_views.errors import CheckFailed
from cdc_views.store.reading import read_table
from cdc_views.views.definition import HIDDEN

POSTGRES_SQL: Final = Path(__file__).with_name("postgres")
SHOWN_PER_TABLE: Final = 5

_KEY_LINE = re.compile(r"-- key: ([a-z_]+(?:, [a-z_]+)*)$")

Row = tuple[Any, ...]
Read = Callable[[Path, str, int], pa.Table]


class Published(Protocol):
    """A line of the manifest: its folder below the warehouse's root, the Delta version, and how it is."""

    @property
    def path(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True)
class Answer:
    """What Postgres says of a table or view."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Difference:
    """One row, or a table as a whole, that is not as Postgres says.

    Of a row: Postgres has it (`missing`), Postgres does not have it (`extra`), or `columns` differ (`different`).
    Of a table: `columns` have other names or types (`columns`), it is not published (`unpublished`), it is
    published as failed (`failed`), or no file asks Postgres about it (`unasked`).
    """

    table: str
    kind: Literal["missing", "extra", "different", "columns", "unpublished", "failed", "unasked"]
    key: Row = ()
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"{self.kind} ({', '.join(map(str, self.key))}){named}" if self.key else self.kind + named


def check(dsn: str, root: Path, tables: Mapping[str, Published], sql_folder: Path = POSTGRES_SQL) -> list[Difference]:
    """Compare every table and view that `sql_folder` has a file for, and no others, with Postgres."""
    return differences(root, tables, postgres_answers(dsn, sql_folder))


def require_equal(dsn: str, root: Path, tables: Mapping[str, Published], sql_folder: Path = POSTGRES_SQL) -> None:
    """Raise CheckFailed, naming each table and the first keys that differ, unless all is equal."""
    found = check(dsn, root, tables, sql_folder)
    if found:
        raise CheckFailed(describe(found), hint="Postgres must be idle and the engine caught up when this is asked")


def describe(found: Iterable[Difference]) -> str:
    """What differs, a line per table: how many rows, and the first few keys of each kind."""
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


def differences(
    root: Path, tables: Mapping[str, Published], answers: Iterable[tuple[str, Answer]], read: Read = read_table
) -> list[Difference]:
    """Compare the published versions with the answers; a table on one side only is a difference."""
    found: list[Difference] = []
    asked = set()
    for name, answer in answers:
        asked.add(name)
        table = tables.get(name)
        if table is None:
            found.append(Difference(name, "unpublished"))
        elif table.status == "failed":
            found.append(Difference(name, "failed"))
        else:
            found += compare(name, answer, read(root, table.path, table.version))
    return found + [Difference(name, "unasked") for name in tables if name not in asked]


def postgres_answers(dsn: str, sql_folder: Path = POSTGRES_SQL) -> Iterator[tuple[str, Answer]]:
    """Run every file of the folder in one snapshot."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute("SET LOCAL timezone TO 'UTC'")
        for file in sorted(sql_folder.glob("*.sql")):
            text = file.read_text()
            with connection.cursor(binary=True) as cursor:
                cursor.execute(text)
                columns = tuple(column.name for column in cursor.description or ())
                yield file.stem, Answer(_key(text, file), columns, cursor.fetchall())


def _key(text: str, file: Path) -> tuple[str, ...]:
    named = _KEY_LINE.match(text.partition("\n")[0])
    if named is None:
        raise CheckFailed(f'"{file.name}" does not name its key', hint='its first line is to be "-- key: column, ..."')
    return tuple(named[1].split(", "))


def compare(name: str, answer: Answer, published: pa.Table) -> list[Difference]:
    """The rows by which a published table differs from Postgres's answer; hidden columns are left out."""
    published = published.select([name for name in published.column_names if not name.startswith(HIDDEN)])
    if tuple(published.column_names) != answer.columns:
        odd = set(published.column_names) ^ set(answer.columns)
        return [Difference(name, "columns", columns=tuple(sorted(odd)) or answer.columns)]
    wanted_columns = [_canonical(list(column)) for column in zip(*answer.rows, strict=True)]
    found_columns = [_canonical(column.to_pylist()) for column in published.columns]
    wanted, found = Counter(zip(*wanted_columns, strict=True)), Counter(zip(*found_columns, strict=True))
    if odd_types := _other_types(answer.columns, wanted_columns, found_columns):
        return [Difference(name, "columns", columns=odd_types)]
    if wanted == found:  # much quicker than the two subtractions
        return []
    return _pair(name, answer, list((wanted - found).elements()), list((found - wanted).elements()))


def _canonical(column: list[Any]) -> list[Any]:
    # Equal decimals, and equal moments of two time zones, are equal and hash alike in Python as they are.
    if isinstance(next((value for value in column if value is not None), None), list):
        return [tuple(value) if value is not None else None for value in column]
    return column


def _other_types(names: tuple[str, ...], wanted: list[list[Any]], found: list[list[Any]]) -> tuple[str, ...]:
    # Python takes 1, True and Decimal(1) for equal; a reader of the table does not.
    return tuple(
        name
        for name, ours, theirs in zip(names, wanted, found, strict=False)
        if (one := _types(ours)) and (other := _types(theirs)) and one != other
    )


def _types(column: list[Any]) -> set[type]:
    return set(map(type, column)) - {type(None)}


def _pair(name: str, answer: Answer, wanted: list[Row], found: list[Row]) -> list[Difference]:
    """Put the unequal rows of both sides together by key."""
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
