"""Columns of a view that cannot be published: their names, and types that not every reader of Delta knows."""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as T

from cdc_views.base.names import HIDDEN
from cdc_views.errors import BadView, UnsupportedView
from cdc_views.views.definition import ViewDefinition

# Types that Delta does not store, types that need a table feature that some reader lacks, and types without equality.
_REFUSED: Final = {
    T.MapType: "wrap it in map_entries() or to_json()",
    T.VariantType: "cast it to string",
    T.TimestampNTZType: "cast it to timestamp",
    T.DayTimeIntervalType: "cast it to string",
    T.YearMonthIntervalType: "cast it to string",
    T.NullType: "cast it to the type that it should have",
}
# Delta refuses them unless column mapping is on.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")


def check_columns(view: ViewDefinition, schema: T.StructType) -> None:
    """Check the columns of a view's result. Raises BadView for a name, UnsupportedView for a type."""
    place = view.place()
    names = [field.name.lower() for field in schema.fields]
    for field in schema.fields:
        if names.count(field.name.lower()) > 1:
            raise BadView(f'{place}: column "{field.name}" appears twice', hint="name the columns apart with AS")
        if set(field.name) & _NOT_IN_NAMES:
            raise BadView(
                f'{place}: column "{field.name}" has a character that Delta does not allow in a name',
                hint="give it another name with AS",
            )
        if field.name.lower().startswith(HIDDEN):
            raise BadView(
                f'{place}: column "{field.name}" begins with "{HIDDEN}", which is reserved for hidden columns'
            )
        if refused := _refused(field.dataType):
            raise UnsupportedView(
                f'{place}: column "{field.name}" has type {refused.simpleString()}', hint=_REFUSED[type(refused)]
            )


def _refused(type_: T.DataType) -> T.DataType | None:
    """The first refused type in a type."""
    if type(type_) in _REFUSED:
        return type_
    if isinstance(type_, T.ArrayType):
        return _refused(type_.elementType)
    if isinstance(type_, T.StructType):
        return next((inner for field in type_.fields if (inner := _refused(field.dataType))), None)
    return None
