"""The values of a key, as a table stores them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import pyarrow as pa

from cdc_views.base.exact_value import exact_scalar
from cdc_views.base.names import HIDDEN
from cdc_views.base.python_values import form_of, python_value, scalar_of_text
from cdc_views.errors import BadKey, KeyNotRecorded
from cdc_views.store.reading import StoredTable


@dataclass(frozen=True)
class Key:
    """The key of a mirror or view: its columns and their types."""

    table: str
    fields: tuple[pa.Field, ...]

    @classmethod
    def of(cls, name: str, table: StoredTable) -> Self:
        """The key of a table. Raises BadKey if it has none, KeyNotRecorded."""
        if table.key is None:
            raise KeyNotRecorded(
                f'the table of "{name}" was created by an earlier version of cdc_views, without its key',
                hint=f'"cdc-views rebuild {name} --from earliest --swap" creates it again',
            )
        if any(column.startswith(HIDDEN) for column in table.key):
            raise BadKey(
                f'view "{name}" has no key: it may have equal rows',
                hint='read it by a query; "cdc-views explain" shows the keys of views',
            )
        return cls(name, tuple(table.schema.field(column) for column in table.key))

    def rows(self, given: Iterable[Sequence[object]]) -> pa.Table:
        """The given keys as rows of the key's columns, as the table stores them. Raises BadKey."""
        rows = []
        for values in given:
            self._require_all(values)
            rows.append([self._value(field, value) for field, value in zip(self.fields, values, strict=True)])
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(self.fields)]
        # The number of rows is known without columns, too: of a table with at most one row.
        table = pa.table(columns, schema=pa.schema(self.fields))
        return table if columns else pa.table({"_": [None] * len(rows)}).select([])

    def of_row(self, row: Mapping[str, object]) -> tuple[object, ...]:
        """The key of a row, so that equal keys are equal: NaN is, too."""
        return tuple(_comparable(row[field.name]) for field in self.fields)

    def parse(self, texts: Sequence[str | None]) -> list[object]:
        """The values that texts stand for; None is NULL. Raises BadKey."""
        self._require_all(texts)
        return [self._parsed(field, text) for field, text in zip(self.fields, texts, strict=True)]

    def _require_all(self, given: Sequence[object]) -> None:
        if len(given) != len(self.fields):
            columns = ", ".join(f"{field.name} {field.type}" for field in self.fields)
            raise BadKey(
                f'the key of "{self.table}" has {len(self.fields)} columns, found {len(given)} values',
                hint=f"columns of the key: {columns or 'none, since there is at most one row'}",
            )

    def _value(self, field: pa.Field, value: object) -> pa.Scalar:
        kind = field.type
        if pa.types.is_nested(kind):
            raise BadKey(
                f'key column "{field.name}" of "{self.table}" is of type {kind}, which cannot be looked up',
                hint="read it by a query",
            )
        try:
            return exact_scalar(value, kind)
        except ValueError:
            raise self._wrong_type(field, value) from None

    def _parsed(self, field: pa.Field, text: str | None) -> object:
        try:
            value: object = python_value(scalar_of_text(text, field.type))
        except ValueError:
            raise BadKey(
                f'a value for key column "{field.name}" of "{self.table}" cannot be read as {field.type}',
                hint=form_of(field.type),
            ) from None
        return value

    def _wrong_type(self, field: pa.Field, value: object) -> BadKey:
        what = "datetime" if isinstance(value, datetime) else type(value).__name__
        return BadKey(
            f'key column "{field.name}" of "{self.table}": found a value of type {what}, wanted {field.type}',
            hint=form_of(field.type),
        )


def _comparable(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
