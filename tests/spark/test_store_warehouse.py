"""Tables through Spark: one version per commit, exactly on top of the named one, and nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from cdc_views.errors import Fenced, ForeignCommit, UnsupportedType, WrongFeatures
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("balance", pa.decimal128(12, 2))])
ACCOUNTS = TableSpec("public.accounts", "mirrors/public/accounts/1", SCHEMA, ("id", "part"))
KEYS = pa.schema([SCHEMA.field("id"), SCHEMA.field("part")])
TOTAL = TableSpec("bank_total", "views/bank_total/1", pa.schema([("total", pa.int64())]), ())

Row = tuple[int | None, str | None, int | None]


def rows(*values: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], SCHEMA)


def keys(*values: tuple[int | None, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(KEYS.names, value, strict=True)) for value in values], KEYS)


def stamp(attempt: int) -> Stamp:
    return Stamp(attempt, attempt, "0/16")


def content(table: pa.Table) -> list[Row]:
    values = [
        (row["id"], row["part"], None if row["balance"] is None else int(row["balance"])) for row in table.to_pylist()
    ]
    return sorted(values, key=str)


@pytest.fixture
def accounts(warehouse: Warehouse) -> Warehouse:
    """Version 1: two rows."""
    warehouse.create(ACCOUNTS)
    warehouse.commit(ACCOUNTS, 0, Changes(None, rows((1, "a", 10), (2, None, 20)), all_new=True), stamp(1))
    return warehouse


def test_commit_of_new_rows_appends_them(accounts: Warehouse, tmp_path: Path) -> None:
    assert content(read_table(tmp_path, ACCOUNTS.path, 1)) == [(1, "a", 10), (2, None, 20)]


def test_commit_of_changes_inserts_updates_and_deletes(accounts: Warehouse, tmp_path: Path) -> None:
    version = accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a")), rows((2, None, 21), (3, "c", 30))), stamp(2))
    assert (version, content(read_table(tmp_path, ACCOUNTS.path, 2))) == (2, [(2, None, 21), (3, "c", 30)])


def test_commit_of_a_delete_finds_null_keys(accounts: Warehouse, tmp_path: Path) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((2, None)), rows()), stamp(2))
    assert content(read_table(tmp_path, ACCOUNTS.path, 2)) == [(1, "a", 10)]


def test_commit_of_a_delete_of_an_absent_key_is_still_a_version(accounts: Warehouse) -> None:
    assert accounts.commit(ACCOUNTS, 1, Changes(keys((9, "z")), rows()), stamp(2)) == 2
    assert accounts.history.stamp_of(ACCOUNTS.path, 2) == stamp(2)


def test_commit_of_a_row_and_a_delete_of_one_key_keeps_the_row(accounts: Warehouse, tmp_path: Path) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a"), (2, None)), rows((1, "a", 11))), stamp(2))
    assert content(read_table(tmp_path, ACCOUNTS.path, 2)) == [(1, "a", 11)]


def test_commit_of_data_frames_equals_that_of_arrow(accounts: Warehouse, spark: SparkSession, tmp_path: Path) -> None:
    new, gone = spark.createDataFrame(rows((2, None, 21), (3, "c", 30))), spark.createDataFrame(keys((1, "a")))
    accounts.commit(ACCOUNTS, 1, Changes(gone, new), stamp(2))
    assert content(read_table(tmp_path, ACCOUNTS.path, 2)) == [(2, None, 21), (3, "c", 30)]


def test_commit_of_a_table_without_key_replaces_its_row(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.create(TOTAL)
    for base, total in enumerate([5, 6]):
        warehouse.commit(TOTAL, base, Changes(None, pa.table({"total": [total]})), stamp(base + 1))
    warehouse.commit(TOTAL, 2, Changes(pa.table({"total": [6]}).select([]), TOTAL.schema.empty_table()), stamp(3))
    assert [read_table(tmp_path, TOTAL.path, version)["total"].to_pylist() for version in (1, 2, 3)] == [[5], [6], []]


def test_commit_on_another_base_names_found_and_wanted_version(accounts: Warehouse) -> None:
    with pytest.raises(ForeignCommit, match=r'table "public\.accounts": found version 1, wanted version 0') as caught:
        accounts.commit(ACCOUNTS, 0, Changes(None, rows((4, "d", 1))), stamp(2))
    assert caught.value.hint


def test_commit_after_a_foreign_append_stops(accounts: Warehouse, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / ACCOUNTS.path), rows((7, "x", 7)), mode="append")
    with pytest.raises(ForeignCommit, match="found version 2, wanted version 1"):
        accounts.commit(ACCOUNTS, 1, Changes(None, rows((4, "d", 1))), stamp(2))


def test_commit_with_a_used_attempt_is_not_taken_for_done(accounts: Warehouse) -> None:
    with pytest.raises(Fenced, match="version 2 was not written: found transaction 1"):
        accounts.commit(ACCOUNTS, 1, Changes(None, rows((4, "d", 1))), stamp(1))


def test_commit_from_two_threads_does_not_mix_their_stamps(warehouse: Warehouse) -> None:
    specs = [TableSpec(name, f"mirrors/public/{name}/1", SCHEMA, ("id", "part")) for name in ("left", "right")]

    def run(spec: TableSpec, first: int) -> None:
        warehouse.create(spec)
        for base in range(3):
            warehouse.commit(spec, base, Changes(keys((9, "z")), rows((1, "a", base))), stamp(first + base))

    threads = [InheritableThread(target=run, args=(spec, first)) for spec, first in zip(specs, (100, 200), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [[warehouse.history.stamp_of(spec.path, version) for version in (1, 2, 3)] for spec in specs]
    assert found == [[stamp(first + base) for base in range(3)] for first in (100, 200)]


def test_lookup_gives_the_stored_rows_of_the_keys_at_a_version(accounts: Warehouse) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a")), rows((2, None, 21))), stamp(2))
    wanted = keys((1, "a"), (2, None), (8, None))
    assert content(accounts.lookup(ACCOUNTS, 1, wanted)) == [(1, "a", 10), (2, None, 20)]
    assert content(accounts.lookup(ACCOUNTS, 2, wanted)) == [(2, None, 21)]


def test_lookup_gives_the_schema_of_the_table(accounts: Warehouse) -> None:
    assert accounts.lookup(ACCOUNTS, 1, keys((1, "a"))).schema == SCHEMA


def test_frame_of_an_older_version_has_its_rows(accounts: Warehouse) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a")), rows()), stamp(2))
    assert [accounts.frame(ACCOUNTS.path, version).count() for version in (1, 2)] == [2, 1]


def test_restore_brings_back_the_content_as_a_new_stamped_version(accounts: Warehouse, tmp_path: Path) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a")), rows((2, None, 21))), stamp(2))
    assert accounts.restore(ACCOUNTS.path, 1, stamp(3)) == 3
    assert content(read_table(tmp_path, ACCOUNTS.path, 3)) == [(1, "a", 10), (2, None, 20)]
    assert accounts.history.stamp_of(ACCOUNTS.path, 3) == stamp(3)


def test_restore_of_the_newest_version_is_a_new_stamped_version(accounts: Warehouse, tmp_path: Path) -> None:
    assert accounts.restore(ACCOUNTS.path, 1, stamp(3)) == 2
    assert content(read_table(tmp_path, ACCOUNTS.path, 2)) == content(read_table(tmp_path, ACCOUNTS.path, 1))


def test_create_of_an_existing_table_gives_its_newest_version(accounts: Warehouse) -> None:
    assert accounts.create(ACCOUNTS) == 1


def test_create_over_a_foreign_commit_stops(accounts: Warehouse, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / ACCOUNTS.path), rows((7, "x", 7)), mode="append")
    with pytest.raises(ForeignCommit, match="found version 2 of another writer"):
        accounts.create(ACCOUNTS)


def test_create_over_a_table_with_other_columns_stops(accounts: Warehouse) -> None:
    other = TableSpec(ACCOUNTS.name, ACCOUNTS.path, SCHEMA.remove(2), ACCOUNTS.key)
    with pytest.raises(ForeignCommit, match="other columns"):
        accounts.create(other)


def test_create_over_a_table_with_further_features_stops(warehouse: Warehouse, tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path / ACCOUNTS.path), SCHEMA, configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(WrongFeatures, match="variantType"):
        warehouse.create(ACCOUNTS)


def test_create_with_a_bad_column_leaves_nothing(warehouse: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType):
        warehouse.create(TableSpec("t", "t", pa.schema([("a b", pa.int64())]), ()))
    assert list(tmp_path.iterdir()) == []


def test_features_after_append_merge_fence_and_restore_are_the_wanted_ones(accounts: Warehouse, tmp_path: Path) -> None:
    accounts.commit(ACCOUNTS, 1, Changes(keys((1, "a")), rows((2, None, 21))), stamp(2))
    accounts.fence(ACCOUNTS.path, stamp(3))
    accounts.restore(ACCOUNTS.path, 1, stamp(4))
    check_features(DeltaTable(tmp_path / ACCOUNTS.path), ACCOUNTS.name)


def test_unknown_commits_are_those_that_no_attempt_of_ours_wrote(accounts: Warehouse, tmp_path: Path) -> None:
    accounts.fence(ACCOUNTS.path, stamp(5))
    DeltaTable(str(tmp_path / ACCOUNTS.path)).optimize.compact()
    write_deltalake(str(tmp_path / ACCOUNTS.path), rows((7, "x", 7)), mode="append")
    newest = accounts.latest_version(ACCOUNTS.path)
    assert [found.version for found in accounts.history.unknown_commits(ACCOUNTS.path, 0)] == [newest]
    assert [found.version for found in accounts.history.unknown_commits(ACCOUNTS.path, 0, attempts={5})] == [1, newest]


NAMES: Sequence[str] = ('a"b', "c`d", "e.f", "Capital", "ünïcode", "select", "-", "x'y", "?", "100%")


def test_commit_with_odd_column_names_is_read_back(warehouse: Warehouse, tmp_path: Path) -> None:
    spec = TableSpec("odd", "odd", pa.schema([(name, pa.int64()) for name in NAMES]), (NAMES[0], NAMES[1], NAMES[2]))
    warehouse.create(spec)
    old, new = ([{name: start + i for i, name in enumerate(NAMES)} for start in starts] for starts in ((0, 50), (100,)))
    warehouse.commit(spec, 0, Changes(None, pa.Table.from_pylist(old, spec.schema), all_new=True), stamp(1))
    gone = pa.Table.from_pylist(old[:1], spec.schema).select(list(spec.key))
    warehouse.commit(spec, 1, Changes(gone, pa.Table.from_pylist(new, spec.schema)), stamp(2))
    assert sorted(read_table(tmp_path, "odd", 2).to_pylist(), key=str) == sorted([old[1], *new], key=str)
    assert warehouse.lookup(spec, 2, gone).num_rows == 0
