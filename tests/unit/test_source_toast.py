"""Which types and type modifiers rule out that a value is stored out of line."""

from __future__ import annotations

import pytest

from cdc_views.source.toast import ServerFormat
from cdc_views.testing.memory.values import numeric_typmod

UTF8 = ServerFormat(character_bytes=4, alignment=8)
LATIN1 = ServerFormat(character_bytes=1, alignment=8)
UTF8_32_BIT = ServerFormat(character_bytes=4, alignment=4)


@pytest.mark.parametrize(
    ("type_name", "typmod", "servers"),
    [
        ("varchar", 5 + 4, [UTF8, LATIN1]),
        ("varchar", 4 + 4, [UTF8, LATIN1, UTF8_32_BIT]),
        ("varchar", 6 + 4, [LATIN1]),
        ("bpchar", 23 + 4, [LATIN1]),
        ("bpchar", 24 + 4, []),
        ("varchar", -1, []),
        ("bpchar", -1, []),
        ("text", -1, []),
        ("bytea", -1, []),
        ("numeric", -1, []),
        ("numeric", numeric_typmod(5, 2), [UTF8, LATIN1, UTF8_32_BIT]),
        ("numeric", numeric_typmod(30, 2), [UTF8, LATIN1, UTF8_32_BIT]),
        ("numeric", numeric_typmod(38, 10), [UTF8, LATIN1]),
        ("numeric", numeric_typmod(40, 20), [UTF8, LATIN1]),
        ("numeric", numeric_typmod(41, 20), []),
        ("numeric", numeric_typmod(41, 0), []),
        ("numeric", numeric_typmod(3, -200), [UTF8, LATIN1, UTF8_32_BIT]),
        ("numeric", numeric_typmod(2, 4), [UTF8, LATIN1, UTF8_32_BIT]),
        ("bit", 1, [UTF8, LATIN1, UTF8_32_BIT]),
        ("bit", 152, [UTF8, LATIN1]),
        ("bit", 153, []),
        ("inet", -1, [UTF8, LATIN1, UTF8_32_BIT]),
        ("int8range", -1, [UTF8, LATIN1]),
        ("numrange", -1, []),
        ("floatrange", -1, []),
    ],
)
def test_type_rules_out_values_out_of_line(type_name: str, typmod: int, servers: list[ServerFormat]) -> None:
    assert [each for each in (UTF8, LATIN1, UTF8_32_BIT) if not each.may_move(type_name, typmod)] == servers
