"""Names of tables and columns: what is read as them, and that each is written in one way that is read as itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_views.base.names import ColumnName, TableName

PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
ODD_PARTS = PARTS | st.text('".a ', min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("orders", "public", "orders"),
        ("sales.orders", "sales", "orders"),
        ("Order Items", "public", "Order Items"),
        (" sales. orders ", " sales", " orders "),
        ('Ta-ble x "q" ünï', "public", 'Ta-ble x "q" ünï'),
        ('"my.schema"."my.table"', "my.schema", "my.table"),
        ('"my.schema".orders', "my.schema", "orders"),
        ('"say ""hi""."', "public", 'say "hi".'),
        ("a/b,c'd", "public", "a/b,c'd"),
    ],
)
def test_table_is_read_with_quotes_where_it_has_dots(text: str, schema: str, table: str) -> None:
    assert TableName.parse(text) == TableName(schema, table)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a.b.c", '"a', '"a"b', '""', '"a".b.c', 'a."b'])
def test_text_that_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a table is"):
        TableName.parse(text)


@pytest.mark.parametrize("text", ["", "a", "a.b.c.d", '"a.b"', "a..b", 'a."b'])
def test_text_that_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a column is"):
        ColumnName.parse(text)


@given(ODD_PARTS, ODD_PARTS, ODD_PARTS)
def test_every_name_is_read_as_it_is_written(schema: str, table: str, column: str) -> None:
    name = TableName(schema, table)
    assert TableName.parse(str(name)) == name
    assert ColumnName.parse(str(ColumnName(name, column))) == ColumnName(name, column)


def test_names_without_dots_are_written_as_they_are() -> None:
    assert str(TableName("My Schema", 'Ta-ble x "q" ünï')) == 'My Schema.Ta-ble x "q" ünï'
    assert str(ColumnName(TableName("a.b", "c"), "d.e")) == '"a.b".c."d.e"'
