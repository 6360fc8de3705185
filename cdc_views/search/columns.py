"""Conditions on the columns of documents, and the order by which an answer is sorted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.base.exact_value import exact_scalar
from cdc_views.base.python_values import form_of, scalar_of_text
from cdc_views.errors import BadSearch

_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_OPERATOR: Final = re.compile(r"<=|>=|!=|=|<|>")
_FORM: Final = "wanted column=value; also !=, <, <=, > and >=. Put a blank before a value that begins so"

FilterValues = Mapping[str, object] | Iterable[tuple[str, str, object]]
"""Values by column, which must be equal, or conditions such as ("created_at", ">=", time)."""


@dataclass(frozen=True)
class Condition:
    """A column of the documents compared with a value. NULL meets no condition, but `= None`."""

    column: str
    operator: str
    value: object

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `column=value` and the like, whose value is text. Raises BadSearch."""
        found = _OPERATOR.search(text)
        column, value = (text[: found.start()].strip(), text[found.end() :]) if found else ("", "")
        if found is None or not column or value.startswith(("=", "<", ">")):  # == and <> are none of ours
            raise BadSearch(f'filter "{text}" is no condition', hint=_FORM)
        return cls(column, found[0], value.strip())

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows meet the condition. Raises BadSearch."""
        column = rows.column(self.column)
        if self.value is None and self.operator in ("=", "!="):
            is_null = pc.is_null(column)
            return is_null if self.operator == "=" else pc.invert(is_null)
        return pc.fill_null(_COMPARED[self.operator](column, self._typed(column.type)), False)

    def _typed(self, kind: pa.DataType) -> pa.Scalar:
        """The value as the column stores it: a text is read as the column's type."""
        try:
            if isinstance(self.value, str) and not pa.types.is_string(kind):
                return scalar_of_text(self.value, kind)
            return exact_scalar(self.value, kind)
        except ValueError:
            raise BadSearch(
                f'the value for column "{self.column}" cannot be read as {kind}', hint=form_of(kind)
            ) from None


@dataclass(frozen=True)
class SortKey:
    """A column to sort by."""

    column: str
    is_descending: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `column` or `-column`, which sorts descending."""
        return cls(text.removeprefix("-"), text.startswith("-"))


def conditions_of(given: FilterValues | None) -> tuple[Condition, ...]:
    """The conditions of a filter. Raises BadSearch."""
    if isinstance(given, Mapping):
        return tuple(Condition(column, "=", value) for column, value in given.items())
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise _not_a_condition(given)
    return tuple(map(_condition, given or ()))


def keys_of(given: str | Iterable[str] | None) -> tuple[SortKey, ...]:
    """The columns to sort by. Raises BadSearch."""
    if given is None:
        return ()
    columns = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for each in columns:
        if not isinstance(each, str):
            raise BadSearch(f"found {each!r} to sort by, wanted a column", hint='write sort="likes" or sort="-likes"')
    return tuple(map(SortKey.parse, columns))


def _condition(given: object) -> Condition:
    if not isinstance(given, list | tuple) or len(given) != 3 or not isinstance(given[1], str):
        raise _not_a_condition(given)
    if given[1] not in _COMPARED:
        raise BadSearch(f'unknown comparison "{given[1]}"', hint=f"wanted one of {' '.join(_COMPARED)}")
    return Condition(*given)


def _not_a_condition(given: object) -> BadSearch:
    return BadSearch(
        f"found {given!r} in a filter, wanted column, comparison and value",
        hint='write filter={"author": "ada"} or filter=[("likes", ">=", 10)]',
    )


def require_columns(schema: pa.Schema, names: Iterable[str]) -> None:
    """Raise BadSearch for a column that the documents do not have, or that cannot be compared."""
    for name in names:
        if name not in schema.names:
            raise BadSearch(f'unknown column "{name}"', hint=f"the documents have {', '.join(schema.names)}")
        if pa.types.is_nested(schema.field(name).type):
            raise BadSearch(
                f'column "{name}" is of type {schema.field(name).type}, which cannot be compared',
                hint="select what it is compared by as a column of its own in the view",
            )


def in_order(rows: pa.Table, keys: Sequence[SortKey], last: Sequence[tuple[str, str]]) -> pa.Array:
    """The numbers of the rows in their order: NULL last, and rows that tie by the columns `last`."""
    order = [(key.column, "descending" if key.is_descending else "ascending") for key in keys]
    return pc.sort_indices(rows, sort_keys=[*order, *last])
