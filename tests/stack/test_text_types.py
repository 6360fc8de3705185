"""plan/text_types.py against a real server: for every type, whether texts are equal and ordered as values are."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest

from cdc_views.plan.text_types import TextType, text_type
from cdc_views.source.catalog import SourceColumn
from cdc_views.source.connection import Connection

# A type: values of it that look different from each other, equal ones among them. `text` is what the mirror holds.
VALUES: Final = {
    "numeric": ("1.0", "1.00", "99", "100", "-1"),
    "numeric(40,2)": ("1.0", "1.00", "99", "100", "-1"),
    "money": ("1", "1.00", "99", "100", "-1"),
    "interval": ("1 mon", "30 days", "9 days", "10 days", "24:00", "1 day"),
    "time": ("9:00", "09:00:00", "10:00:00.5", "10:00:00.45", "10:00", "24:00", "23:59:59.999999"),
    "timetz": ("10:00+02", "08:00+00", "09:00+00"),
    "uuid": ("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
             "0fffffff-9c0b-4ef8-bb6d-6bb9bd380a11", "f0eebc99-0000-0000-0000-000000000000"),
    "mood": ("low", "medium", "high"),
    "citext": ("a", "A", "b"),
    "bit(4)": ("0000", "0101", "1000", "1111"),
    "inet": ("10.0.0.9", "10.0.0.10", "10.0.0.9/32", "10.0.0.9/8", "::1", "2001:DB8::1", "2001:db8:0::1"),
    "cidr": ("10.0.0.0/8", "9.0.0.0/8", "10", "2001:db8::/32"),
    "macaddr": ("08:00:2b:01:02:03", "08002b010203", "08-00-2B-01-02-04", "f8:00:2b:01:02:03"),
    "macaddr8": ("08:00:2b:01:02:03:04:05", "08002b0102030405", "F8:00:2b:01:02:03:04:05"),
    "int4range": ("[1,4]", "[1,5)", "(0,5)", "[10,11)", "empty", "(,5)", "[9,)"),
    "int8range": ("[1,4]", "[1,5)", "[10,11)", "empty"),
    "daterange": ("[2024-01-01,2024-01-31]", "[2024-01-01,2024-02-01)", "empty", "(,)"),
    "numrange": ("[1.0,2)", "[1.00,2)", "[10,11)", "[9,11)"),
    "tsrange": ("[2024-01-01,2024-02-01)", '["2024-01-01 00:00:00","2024-02-01")', "empty", "(,2024-01-01)"),
    "tstzrange": ("[2024-01-01 00:00+00,2024-02-01 00:00+00)", '["2024-01-01 02:00:00+02","2024-02-01 00:00+00")',
                  "[10000-01-01 00:00+00,)"),
    "int4multirange": ("{[1,4],[7,8]}", "{[1,5),[7,9)}", "{[10,11)}", "{}"),
    "int8multirange": ("{[1,4]}", "{[1,5)}", "{[10,11)}", "{[9,11)}"),
    "datemultirange": ("{[2024-01-01,2024-01-31]}", "{[2024-01-01,2024-02-01)}", "{[10000-01-01,)}"),
    "tsmultirange": ("{[2024-01-01,2024-02-01)}", '{["2024-01-01 00:00","2024-02-01")}', "{[10000-01-01,)}"),
    "tstzmultirange": ("{[2024-01-01 00:00+00,2024-02-01 00:00+00)}", "{[2024-01-01 01:00+01,2024-02-01 00:00+00)}",
                       "{[10000-01-01 00:00+00,)}"),
    "jsonb": ('{"a": 1.0}', '{"a": 1.00}', '{"a":1.0}', "9", "10"),
    "ltree": ("a.b", "a-b", "a", "A.b"),
    '"char"': ("a", "b", "\\200", "\\377"),
    "xid8": ("9", "10", "010"),
    "pg_lsn": ("9/0", "10/0", "0/0A", "0/A"),
    "tid": ("(9,1)", "(10,1)", "(09,1)"),
}  # fmt: skip
AS_TEXT: Final = {
    "float4": ("0", "-0", "99", "100", "1e10", "10000000000"),
    "float8": ("0", "-0", "99", "100", "0.1", "1e-1"),
    "date": ("2024-01-01", "2024-1-1", "infinity", "0044-03-15 BC", "10000-01-01"),
    "timestamp": ("2024-01-01", "2024-01-01 00:00:00", "2024-01-01 00:00:00.5", "0044-03-15 BC", "10000-01-01"),
    "timestamptz": ("2024-01-01 00:00+00", "2024-01-01 02:00+02", "0044-03-15 00:00+00 BC", "10000-01-01 00:00+00"),
}
PRINTED: Final = {"money": "(v::numeric)", "timetz": "(v AT TIME ZONE 'UTC')"}
SETUP: Final = ("CREATE EXTENSION citext", "CREATE EXTENSION ltree",
                "CREATE TYPE mood AS ENUM ('low', 'medium', 'high')", "SET TIME ZONE 'UTC'")  # fmt: skip


def kind_of(sql_type: str, *, as_text: bool = False) -> TextType:
    name, _, size = sql_type.strip('"').partition("(")
    typmod = {"numeric": (40 << 16) + 2 + 4, "bit": 4}[name] if size else -1
    found = text_type(
        SourceColumn("c", 1, "enum" if name == "mood" else name, typmod, None, False, True, as_text=as_text)
    )
    assert found is not None
    return found


@pytest.fixture(scope="module")
def server(answering: Connection) -> Connection:
    """A server with the types of VALUES."""
    for statement in SETUP:
        answering.execute(statement)
    return answering


def pairs(server: Connection, sql_type: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Pairs of literals with their texts in a mirror, whether the values are equal, and whether the first is less."""
    printed = PRINTED.get(sql_type, "v")
    values_sql = f"SELECT l, l::{sql_type} AS v FROM unnest(%(values)s::text[]) l"
    made = f"SELECT l, v, format('%%s', {printed}) AS t FROM ({values_sql}) x"
    query = f"SELECT a.l, b.l, a.t, b.t, a.v = b.v, a.v < b.v FROM ({made}) a, ({made}) b"
    return server.execute(query, {"values": list(values)}).fetchall()


@pytest.mark.parametrize(("sql_type", "as_text"), [*product(VALUES, [False]), *product(AS_TEXT, [True])])
def test_texts_are_equal_and_ordered_where_the_table_says_so(server: Connection, sql_type: str, as_text: bool) -> None:
    kind = kind_of(sql_type, as_text=as_text)
    found = pairs(server, sql_type, (AS_TEXT if as_text else VALUES)[sql_type])
    assert kind.equal == all((left == right) == equal for _, _, left, right, equal, _ in found)
    assert kind.ordered == all((left.encode() < right.encode()) == less for _, _, left, right, _, less in found)
    for literal, _, text, *_ in found:
        assert not kind.is_canonical(literal) or text == literal
    if kind.literal:
        assert any(kind.is_canonical(text) for _, _, text, *_ in found)
