"""Makes the source print values as the mirror has them, under the session settings of cdc_views/base/rendering.py."""

from __future__ import annotations

from typing import Final

from psycopg import sql

from cdc_views.source.catalog import SourceColumn

# Types whose text in a mirror differs from the text that Postgres prints (docs/types.md).
_FORMS_OF_TYPES: Final = {
    "money": "{0}::numeric",
    # A value in UTC stays as it is, since a conversion would turn 24:00 into 00:00.
    "timetz": "CASE WHEN extract(timezone FROM {0}) = 0 THEN {0} ELSE {0} AT TIME ZONE 'UTC' END",
    "hstore": "{0}::json",  # works in whatever schema the extension is
    # Removes the padding.
    "bpchar": "{0}::text",
}

TextRow = tuple[str | None, ...]


def printed(column: SourceColumn) -> sql.Composable:
    """Return the SQL expression whose text is the mirror's value."""
    name = sql.Identifier(column.name)
    if column.element is None:
        return sql.SQL(_FORMS_OF_TYPES.get(column.type_name, "{0}")).format(name)
    form = _FORMS_OF_TYPES.get(column.element)
    if form is None:
        return name
    each = sql.SQL("ARRAY(SELECT {} FROM unnest({}) WITH ORDINALITY AS e(x, n) ORDER BY n)").format(
        sql.SQL(form).format(sql.Identifier("x")), name
    )
    # NULL must not become an empty array. An array keeps more than one dimension, so that the parser refuses it.
    return sql.SQL("CASE WHEN array_ndims({0}) > 1 THEN ARRAY[{1}] WHEN {0} IS NOT NULL THEN {1} END").format(
        name, each
    )
