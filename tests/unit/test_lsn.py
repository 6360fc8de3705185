"""LSNs as Postgres prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_views.base.lsn import Lsn
from cdc_views.errors import BadLsn


def test_parse_reads_what_postgres_prints() -> None:
    assert Lsn.parse("16/B374D848") == 0x16_B374D848
    assert str(Lsn(0x16_B374D848)) == "16/B374D848"


@given(st.integers(0, 2**64 - 1))
def test_print_and_parse_are_inverse(number: int) -> None:
    assert Lsn.parse(str(Lsn(number))) == number


@pytest.mark.parametrize(
    "text", ["", "16", "x/y", "/", "-1/0", "0x1/0", "1/1/1", "1/ 1", "123456789/0", "0/123456789", "1/١"]
)
def test_parse_of_something_else_says_what_an_lsn_is(text: str) -> None:
    with pytest.raises(BadLsn, match="wanted the form X/Y"):
        Lsn.parse(text)
