"""Arrow schemas as Delta schemas, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from cdc_views.errors import UnsupportedType, WrongFeatures
from cdc_views.store.delta_log.entries import put_entry
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.delta_log.schema import TableSpec, delta_schema, statistics_columns
from cdc_views.store.delta_log.versions import creation


def spec(*fields: pa.Field, key: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec("public.orders", "mirrors/public/orders/1", pa.schema(list(fields)), key)


EVERY_TYPE = pa.schema(
    [
        pa.field("i8", pa.int64(), nullable=False),
        ("i4", pa.int32()),
        ("i2", pa.int16()),
        ("b", pa.bool_()),
        ("f4", pa.float32()),
        ("f8", pa.float64()),
        ("s", pa.string()),
        ("x", pa.binary()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("n", pa.decimal128(38, 10)),
        ("a", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("st", pa.struct([("p", pa.int32()), ("q", pa.list_(pa.date32()))])),
    ]
)


def test_delta_schema_of_every_type_is_what_delta_rs_makes_of_it() -> None:
    ours = json.loads(delta_schema(TableSpec("t", "t", EVERY_TYPE, ())))
    assert ours == json.loads(Schema.from_arrow(EVERY_TYPE).to_json())


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ns", tz="UTC"), pa.uint64(), pa.time64("us"), pa.decimal256(50, 2)]
)
def test_delta_schema_of_a_type_without_exact_form_names_the_column(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match=r'table "public\.orders": column "odd" has type'):
        delta_schema(spec(pa.field("odd", kind)))


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_delta_schema_of_a_name_that_delta_refuses_names_the_column(character: str) -> None:
    with pytest.raises(UnsupportedType, match=r'(?s)column "a.b"'):
        delta_schema(spec(pa.field(f"a{character}b", pa.int64())))


def test_delta_schema_of_names_that_differ_by_case_only_names_both() -> None:
    with pytest.raises(UnsupportedType, match='columns "Id" and "ID" differ by case only'):
        delta_schema(spec(pa.field("Id", pa.int64()), pa.field("ID", pa.int64())))


def test_statistics_of_a_key_are_kept_where_delta_can() -> None:
    table = spec(pa.field("id", pa.int64()), pa.field("x", pa.binary()), pa.field("v", pa.string()), key=("id", "x"))
    assert statistics_columns(table) == ["id"]


def test_creation_has_exactly_the_wanted_features(tmp_path: Path) -> None:
    put_entry(tmp_path, 0, creation(TableSpec("t", "t", EVERY_TYPE, ("i8",))))
    found = DeltaTable(str(tmp_path)).protocol()
    assert (found.min_reader_version, found.min_writer_version) == (3, 7)
    assert set(found.reader_features or ()) == {"deletionVectors"}
    assert set(found.writer_features or ()) == {"deletionVectors", "invariants", "appendOnly"}


def test_creation_is_read_back_by_delta_rs_with_the_same_schema(tmp_path: Path) -> None:
    put_entry(tmp_path, 0, creation(TableSpec("t", "t", EVERY_TYPE, ("i8",))))
    assert json.loads(DeltaTable(str(tmp_path)).schema().to_json()) == json.loads(
        Schema.from_arrow(EVERY_TYPE).to_json()
    )


def test_check_features_of_a_table_made_by_others_names_what_is_too_much(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), EVERY_TYPE, configuration={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(WrongFeatures, match='table "t": found protocol reader 1 writer 4'):
        check_features(DeltaTable(tmp_path), "t")
