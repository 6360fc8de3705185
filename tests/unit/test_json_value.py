"""Values of rows as JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cdc_views.serve.values.json_value import json_value


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("0E-10"), "0.0000000000"),
        (Decimal("-1E-18"), "-0.000000000000000001"),
        (Decimal("1.50"), "1.50"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (b"\x00\xff", "00ff"),
        ({"a": [Decimal("0.0000000"), None, True]}, {"a": ["0.0000000", None, True]}),
    ],
)
def test_value_is_what_json_can_represent(value: Any, wanted: Any) -> None:
    assert json_value(value) == wanted
