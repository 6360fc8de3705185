"""Fingerprints and the index over them: what is found is what a dictionary of Python finds."""

from __future__ import annotations

import errno
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_views.store.index import key_index, parts
from cdc_views.store.index.hashing import Fingerprints, fingerprints, has_fingerprints
from cdc_views.store.index.key_index import BYTES_PER_ROW, KeyIndex
from tests.samples import SEEDS

TEXTS = ["", "a", "ab", "a\0", "abcdefgh", "abcdefghi", "é" * 100, "x" * 256, "x" * 257, "x" * 300 + "y", "x" * 301]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63), None],
    pa.int8(): [0, 1, -1, 127, None],
    pa.bool_(): [True, False, None],
    pa.date32(): [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None],
    pa.timestamp("us", tz="UTC"): [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None],
    pa.decimal128(38, 2): [Decimal("0.00"), Decimal("-1.00"), Decimal("1.00"), Decimal(2) ** 90, None],
    pa.decimal128(3, 1): [Decimal("0.0"), Decimal("99.9"), Decimal("-99.9"), None],
    pa.int16(): [0, -1, None],
    pa.int32(): [0, -1, 2**31 - 1, None],
    pa.float32(): [0.0, 1.5, -1.5, math.inf, math.nan, None],
    pa.float64(): [0.0, 1.5, -1.5, math.inf, math.nan, None],
    pa.string(): [*TEXTS, None],
    pa.binary(): [*(text.encode() for text in TEXTS), None],
}


def halves(keys: Fingerprints) -> list[tuple[int, int]]:
    low = np.zeros(len(keys.high), np.uint64) if keys.low is None else keys.low
    return list(zip(keys.high.tolist(), low.tolist(), strict=True))


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("beside", [False, True])
def test_different_values_have_different_fingerprints_and_equal_ones_the_same(kind: pa.DataType, beside: bool) -> None:
    values = pa.array(VALUES[kind] * 2, kind)
    table = pa.table({"key": values, **({"other": pa.array([7] * len(values))} if beside else {})})
    found = halves(fingerprints(table))
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    assert len(set(found)) == len(VALUES[kind])


def test_columns_of_a_composite_key_are_told_apart() -> None:
    rows = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), (None, "ab"), ("ab", None), (None, None), ("", "")]
    table = pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names=["x", "y"])
    assert len(set(halves(fingerprints(table)))) == len(rows)


def test_zeros_are_one_value_and_so_are_all_that_are_not_a_number() -> None:
    other_nan = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    found = halves(fingerprints(pa.table({"x": pa.array([0.0, -0.0, math.nan, -math.nan, other_nan])})))
    assert (len(set(found[:2])), len(set(found[2:])), len(set(found))) == (1, 1, 2)


def test_slices_chunks_and_nulls_over_values_change_no_fingerprint() -> None:
    texts = pa.array(["left out", "a", None, "longer than eight", "right out"])
    over_values = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(b"\7" * 24)])
    table = pa.table({"t": texts.slice(1, 3), "n": over_values})
    plain = pa.table({"t": ["a", None, "longer than eight"], "n": pa.array(over_values.to_pylist(), pa.int64())})
    chunked = pa.concat_tables([plain.slice(0, 1), plain.slice(1)])
    assert halves(fingerprints(table)) == halves(fingerprints(plain)) == halves(fingerprints(chunked))


@pytest.mark.parametrize("inner", [pa.int64(), pa.string(), pa.list_(pa.int64())], ids=str)
def test_lists_have_one_fingerprint_where_they_are_equal(inner: pa.DataType) -> None:
    inners = [[1], [], [1, 2], None] if pa.types.is_list(inner) else VALUES[inner][:4]
    lists = [None, [], [None], [None, None], *([a] for a in inners[:3]), *([a, b] for a in inners for b in inners[:3])]
    values = pa.array([*lists, *lists], pa.list_(inner))
    chunked = pa.chunked_array([values.slice(0, 5), values.slice(5)])
    found = halves(fingerprints(pa.table({"key": chunked})))
    assert found[: len(lists)] == found[len(lists) :]
    assert len(set(found)) == len(lists)


def test_structures_have_one_fingerprint_where_they_are_equal() -> None:
    rows = [None, *({"a": a, "b": b} for a in (None, 1, 2) for b in (None, "", "x"))]
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    found = halves(fingerprints(pa.table({"key": pa.array(rows * 2, kind)})))
    assert found[: len(rows)] == found[len(rows) :]
    assert len(set(found)) == len(rows)


def test_maps_have_no_fingerprints() -> None:
    assert not has_fingerprints(pa.map_(pa.string(), pa.int64()))
    assert not has_fingerprints(pa.list_(pa.map_(pa.string(), pa.int64())))


def test_order_of_whole_numbers_is_the_order_of_their_fingerprints() -> None:
    found = fingerprints(pa.table({"n": [-(2**63), -5, 0, 7, 2**63 - 1]}))
    assert found.low is None
    assert found.high.tolist() == sorted(found.high.tolist())


KEYS: list[Callable[[random.Random], tuple[Any, ...]]] = [
    lambda chance: (chance.choice([None, *range(40)]),),
    lambda chance: (chance.choice([None, "", *map(str, range(40))]),),
    lambda chance: (chance.choice([None, *range(8)]), chance.choice([None, "", "a", "b" * 9])),
]
SCHEMAS = [
    pa.schema([("a", pa.int64())]),
    pa.schema([("a", pa.string())]),
    pa.schema([("a", pa.int64()), ("b", pa.string())]),
]


@pytest.mark.parametrize(("on_disk", "is_long"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("shape", range(len(KEYS)))
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3 * SEEDS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_index_finds_what_a_dictionary_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: int, on_disk: bool, is_long: bool, seed: int
) -> None:
    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 5)
    if is_long:
        monkeypatch.setattr(key_index, "_LEAST_SHARDED", 50)
    chance, index, files, schema = random.Random(seed), KeyIndex(), dict[str, list[tuple[Any, ...]]](), SCHEMAS[shape]
    disk = 0

    def table(rows: list[tuple[Any, ...]]) -> pa.Table:
        return pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)

    for step in range(40):
        if on_disk and step == 5:
            index.move_to_disk(tmp_path)
        disk = max(disk, index.disk_bytes)
        if files and chance.random() < 0.4:
            for path in chance.sample(sorted(files), chance.randint(1, len(files))):
                del files[path]
            index.drop_others(files)
        rows = [KEYS[shape](chance) for _ in range(chance.choice([0, 1, 3, 30]))]
        assert index.missing([f"f{step}"]) == [f"f{step}"]
        files[f"f{step}"] = rows
        index.add(f"f{step}", fingerprints(table(rows)))
        wanted = [KEYS[shape](chance) for _ in range(chance.choice([0, 1, 9]))]
        found = [
            (path, int(row), int(number))
            for path, each in index.find(fingerprints(table(wanted)))
            for row, number in zip(each.rows, each.wanted, strict=True)
        ]
        assert sorted(found) == sorted(
            (path, row, number)
            for path, stored in files.items()
            for row, key in enumerate(stored)
            for number, asked in enumerate(wanted)
            if key == asked
        )
    assert (disk > 0) == on_disk
    index.drop_others({})
    assert index.memory_bytes == index.disk_bytes == 0


def test_index_of_many_small_files_has_few_parts_and_does_not_grow_when_they_go() -> None:
    index = KeyIndex()
    for number in range(1000):
        index.add(str(number), fingerprints(pa.table({"n": [number, -number]})))
    full = index.memory_bytes
    assert len(list(index._parts())) < 12
    index.drop_others({str(number): None for number in range(0, 1000, 4)})
    assert index.memory_bytes < full / 2


@pytest.mark.parametrize("on_disk", [False, True])
def test_index_of_a_table_whose_files_come_and_go_numbers_only_those_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    monkeypatch.setattr(key_index, "_SPARE_FILES", 8)
    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 3)
    monkeypatch.setattr(key_index, "_LEAST_SHARDED", 6)
    index, files = KeyIndex(), dict[str, None]()
    if on_disk:
        index.move_to_disk(tmp_path)
    for number in range(500):
        # One that stays, several of which some rows are still in a part, and the newest.
        files = dict.fromkeys([*files][:1] + [*files][-3:]) | {str(number): None}
        index.drop_others(files)
        index.add(str(number), fingerprints(pa.table({"n": [-1, number % 7]})))
        assert sorted(path for path, _ in index.find(fingerprints(pa.table({"n": [-1]})))) == sorted(files)
    assert len(index._paths) <= len(index._is_live) < 64


def test_index_on_a_full_disk_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 1)
    monkeypatch.setattr(parts, "mapped", is_full)
    index = KeyIndex()
    index.add("f", fingerprints(pa.table({"n": [3, 1, 2]})))
    index.move_to_disk(tmp_path)
    assert [each.rows.tolist() for _, each in index.find(fingerprints(pa.table({"n": [1]})))] == [[1]]
    assert (index.disk_bytes, index.memory_bytes) == (0, 3 * 12)


def test_trimmed_index_has_no_row_of_a_file_that_has_gone() -> None:
    index, texts = KeyIndex(), [str(number) for number in range(10)]
    for path in "abc":
        index.add(path, fingerprints(pa.table({"x": texts})))
    index.drop_others({"a": None, "c": None})
    assert index.memory_bytes == 30 * BYTES_PER_ROW
    index.trim()
    assert index.memory_bytes == 20 * BYTES_PER_ROW
    found = {path: each.rows.tolist() for path, each in index.find(fingerprints(pa.table({"x": ["7"]})))}
    assert found == {"a": [7], "c": [7]}


@pytest.mark.parametrize("values", [[3, 1, 3, 3, 1], ["b", "a", "b"], [None, None, 1]])
def test_distinct_fingerprints_are_those_of_the_distinct_keys(values: list[Any]) -> None:
    found = fingerprints(pa.table({"key": values})).distinct()
    wanted = fingerprints(pa.table({"key": pa.array(values).unique()}))

    def pairs(of: Fingerprints) -> list[tuple[int, int]]:
        low = np.zeros(len(of.high), np.uint64) if of.low is None else of.low
        return sorted(zip(of.high.tolist(), low.tolist(), strict=True))

    assert pairs(found) == pairs(wanted)
