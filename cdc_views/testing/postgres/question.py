"""Runs a query in Postgres and compares the answer with a published table.

Values without a Delta type are text in mirrors and views, so Postgres prints them as text here, too. Arrow compares
first, which is fast. If it does not find both equal, an exact comparison follows, which also names rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from psycopg import sql

from cdc_views.errors import CheckFailed
from cdc_views.testing.postgres.compare import Difference, ExpectedRows, compare

Connection = psycopg.Connection[Any]

_KEY_LINE = re.compile(r"-- key: (.+)")

# Types by OID; the OIDs are the same in every server (pg_type.dat).
_INT, _BPCHAR, _TIMESTAMP, _TIMESTAMPTZ, _NUMERIC = {20, 21, 23, 26}, 1042, 1114, 1184, 1700
_TEXT: Final = {19, 25, 1043}
# Types with an exact form in Delta: for these, a published text column is a difference.
_EXACT: Final = {*_INT, 16, 17, 700, 701, 1082, _TIMESTAMP, _TIMESTAMPTZ}
# Postgres's array type, by the type of its elements.
_ARRAYS: Final = {1016: 20, 1005: 21, 1007: 23, 1028: 26, 1000: 16, 1001: 17, 1021: 700, 1022: 701, 1182: 1082,
                  1115: _TIMESTAMP, 1185: _TIMESTAMPTZ, 1003: 19, 1009: 25, 1015: 1043, 1014: _BPCHAR,
                  1231: _NUMERIC}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A query in Postgres's SQL, and the columns that identify its rows in messages."""

    query: str
    key: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Question:
        """The query of a text, whose first line may be `-- key: column, ...`."""
        named = _KEY_LINE.match(text)
        key = tuple(part.strip() for part in named[1].split(",")) if named else ()
        return cls(text.strip().rstrip(";"), key)

    def differences(self, connection: Connection, name: str, published: pa.Table) -> list[Difference]:
        """The rows of a published table that differ from Postgres. The connection's time zone is UTC.

        Raises CheckFailed if the key names a column that is not in the query's result.
        """
        columns = [_Column(*column) for column in self._columns(connection, published)]
        names = tuple(column.name for column in columns)
        if unknown := [column for column in self.key if column not in names]:
            raise CheckFailed(
                f'the query for "{name}" has no column "{unknown[0]}", which its key names',
                hint='its first line is to be "-- key: column, ..."',
            )
        if names != tuple(published.column_names):
            return compare(name, ExpectedRows(self.key, names, []), published)
        if all(column.is_quick for column in columns) and self._quickly_equal(connection, columns, published):
            return []
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(self._select([column.value for column in columns])).fetchall()
        return compare(name, ExpectedRows(self.key, names, rows), published)

    def _columns(self, connection: Connection, published: pa.Table) -> list[tuple[str, int, pa.DataType | None]]:
        found = connection.execute(self._select([sql.SQL("*")]) + sql.SQL(" LIMIT 0")).description or []
        types = dict(zip(published.column_names, published.schema.types, strict=True))
        return [(column.name, column.type_code, types.get(column.name)) for column in found]

    def _quickly_equal(self, connection: Connection, columns: Sequence[_Column], published: pa.Table) -> bool:
        query = self._select([column.text for column in columns])
        with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)) as blocks:
            data = b"".join(blocks)
        if not data or not published.num_rows:
            return not data and not published.num_rows
        try:
            wanted = _read_csv(data, published.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        return _is_same(wanted, published)

    def _select(self, columns: Sequence[sql.Composable]) -> sql.Composed:
        # On separate lines, because the query may end in a comment.
        query = sql.SQL(self.query)
        return sql.SQL("SELECT {} FROM (\n{}\n) question").format(sql.SQL(", ").join(columns), query)


def read_questions(folder: Path) -> dict[str, Question]:
    """The files `<table or view>.sql` in a folder and those below it, by name."""
    return {file.stem: Question.of(file.read_text()) for file in sorted(folder.rglob("*.sql"))}


@dataclass(frozen=True)
class _Column:
    """A column of the answer: its type in Postgres, and its published type."""

    name: str
    oid: int
    published: pa.DataType | None

    @property
    def value(self) -> sql.Composable:
        """SQL for its value, in the published form."""
        column = sql.Identifier(self.name)
        return sql.SQL("{}::{} AS {}").format(column, sql.SQL(self._cast), column) if self._cast else column

    @property
    def text(self) -> sql.Composable:
        """SQL for its value as text that Arrow can read; a list is JSON."""
        if not self._is_list:
            return self.value
        column = sql.Identifier(self.name)
        return sql.SQL("to_json({}{})::text").format(column, sql.SQL(f"::{self._cast}" if self._cast else ""))

    @property
    def is_quick(self) -> bool:
        """Whether equal text means equal values of types that are the same for a reader."""
        published, element = self._published, self._element
        if self._is_list:
            return pa.types.is_string(published) and (self._cast == "text[]" or element in _TEXT)
        return bool(
            (pa.types.is_string(published) and (self._cast == "text" or element in _TEXT))
            or (pa.types.is_integer(published) and element in _INT)
            or (pa.types.is_decimal(published) and element == _NUMERIC)
            or (pa.types.is_timestamp(published) and element in (_TIMESTAMP, _TIMESTAMPTZ))
            or (published, element) in ((pa.bool_(), 16), (pa.float32(), 700), (pa.float64(), 701), (pa.date32(), 1082))
        )

    @property
    def _cast(self) -> str:
        many, element = "[]" if self._is_list else "", self._element
        if self._published is None:
            return ""
        if pa.types.is_string(self._published) and element not in _EXACT | _TEXT:
            return "text" + many
        if pa.types.is_timestamp(self._published) and element == _TIMESTAMP:
            return "timestamptz" + many
        return ""

    @property
    def _is_list(self) -> bool:
        return self.published is not None and pa.types.is_list(self.published)

    @property
    def _published(self) -> pa.DataType | None:
        return self.published.value_type if self._is_list and self.published else self.published

    @property
    def _element(self) -> int | None:
        return _ARRAYS.get(self.oid) if self._is_list else self.oid


def _read_csv(data: bytes, schema: pa.Schema) -> pa.Table:
    texts = {field.name: pa.string() if pa.types.is_list(field.type) else field.type for field in schema}
    return pcsv.read_csv(
        pa.BufferReader(data),
        # One block, because a value may be longer than the default block size.
        read_options=pcsv.ReadOptions(column_names=schema.names, block_size=len(data) + 1),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pcsv.ConvertOptions(
            column_types=texts, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip


def _is_same(wanted: pa.Table, published: pa.Table) -> bool:
    """Whether both have the same rows, with the same multiplicity."""
    places = [str(place) for place in range(published.num_columns)]  # a query may have two columns of one name
    both = pa.concat_tables([
        pa.table([*map(_grouped, side.columns), pa.repeat(count, side.num_rows)], [*places, "count"])
        for side, count in ((wanted, 1), (published, -1))
    ])  # fmt: skip
    counts = both.group_by(places, use_threads=False).aggregate([("count", "sum")])["count_sum"]
    return pc.all(pc.equal(counts, 0)).as_py() is True


def _grouped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that Arrow can group by. It cannot group by lists, so they become JSON as Postgres writes it."""
    if not pa.types.is_list(column.type):
        return column
    lists = (None if each is None else json.dumps(each, ensure_ascii=False, separators=(",", ":"))
             for each in column.to_pylist())  # fmt: skip
    return pa.chunked_array([pa.array(lists, pa.string())])
