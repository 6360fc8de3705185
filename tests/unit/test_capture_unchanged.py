"""The placeholder of an unchanged value in all its forms, and that no mirror gets one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from cdc_views.capture.unchanged import forms, forms_of, require_no_placeholder
from cdc_views.errors import UnresolvedToast
from tests.unit.capture_records import PLACEHOLDER, table

FORMS = forms_of(PLACEHOLDER)
DAYS = [date(1970, 1, 1) + timedelta(days=number) for number in FORMS.numbers]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (PLACEHOLDER, pa.string()),
        (f'{{"a": "{PLACEHOLDER}"}}', pa.string()),
        (PLACEHOLDER.encode(), pa.binary()),
        ([None, PLACEHOLDER], pa.list_(pa.string())),
        ([PLACEHOLDER.encode()], pa.list_(pa.binary())),
        (FORMS.uuids, pa.list_(pa.string())),
        (FORMS.numbers, pa.list_(pa.int32())),
        (FORMS.numbers, pa.list_(pa.int64())),
        (DAYS, pa.list_(pa.date32())),
    ],
)
def test_rows_with_the_placeholder_are_refused_by_table_and_column(value: Any, kind: pa.DataType) -> None:
    rows = pa.table({"id": [1, 2, 3], "x": pa.array([None, value, None], kind)})
    with pytest.raises(UnresolvedToast, match=r'"public\.t": column "x" would hold') as stop:
        require_no_placeholder(table(), rows)
    assert (stop.value.table, stop.value.column) == ("public.t", "x")
    assert PLACEHOLDER not in str(stop.value)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["__debezium_unavailable_value", None, ""], pa.string()),
        ([PLACEHOLDER[:20], PLACEHOLDER[20:]], pa.string()),  # beside each other in memory
        ([], pa.string()),
        ([FORMS.numbers[:-1], FORMS.numbers[1:], None, []], pa.list_(pa.int32())),
        ([FORMS.numbers[:1] * 1000], pa.list_(pa.int64())),
        ([1.5, None], pa.float64()),
    ],
)
def test_rows_without_the_placeholder_are_good(values: list[Any], kind: pa.DataType) -> None:
    require_no_placeholder(table(), pa.table({"x": pa.array(values, kind)}))


def test_rows_are_looked_at_without_those_that_a_slice_hides() -> None:
    require_no_placeholder(table(), pa.table({"x": pa.array([PLACEHOLDER, "a", "b"]).slice(1)}))


def test_table_without_a_placeholder_is_not_decoded() -> None:
    with pytest.raises(ValueError, match="does not have the placeholder"):
        forms(replace(table(), placeholder=None))
