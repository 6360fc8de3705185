"""What a value holds: text that stands for a value of another Postgres type, alone or inside arrays and structs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cdc_views.plan.text_types import TextType, text_type
from cdc_views.source.catalog import SourceTable


@dataclass(frozen=True)
class Text:
    """Text of a column whose Postgres type is not a text type. `is_element`: the column is an array of them."""

    type: TextType
    column: str
    table: str
    is_element: bool = False


@dataclass(frozen=True)
class Elements:
    """An array whose elements have this tag."""

    of: Tag


@dataclass(frozen=True)
class Fields:
    """A struct: the tag of each field in order, None for a field without one."""

    tags: tuple[Tag | None, ...]


Tag = Text | Elements | Fields
TextColumns = Mapping[str, Tag]  # by column name


def text_columns(table: SourceTable, schema: pa.Schema) -> dict[str, Tag]:
    """The columns of a mirror that are text, or arrays of text, but have another type in Postgres.

    `schema` is the Arrow schema of the mirror.
    """
    found: dict[str, Tag] = {}
    for column in table.columns:
        arrow = schema.field(column.name).type
        is_array = pa.types.is_list(arrow)
        if not pa.types.is_string(arrow.value_type if is_array else arrow):
            continue
        type_ = text_type(column)
        if type_ is not None:
            text = Text(type_, column.name, str(table.name), is_array)
            found[column.name] = Elements(text) if is_array else text
    return found


def texts_of(tag: Tag | None) -> Iterator[Text]:
    """All texts that a value holds, from left to right."""
    match tag:
        case Text():
            yield tag
        case Elements(of):
            yield from texts_of(of)
        case Fields(tags):
            for inner in tags:
                yield from texts_of(inner)


def first_text(tag: Tag) -> Text:
    """The first text that a value holds; error messages name it."""
    return next(texts_of(tag))


def kind_of(tag: Tag | None) -> object:
    """The shape and the type names, which two values must share to be comparable."""
    match tag:
        case Text():
            return tag.type.name
        case Elements(of):
            return "array", kind_of(of)
        case Fields(tags):
            return tuple(map(kind_of, tags))
    return None
