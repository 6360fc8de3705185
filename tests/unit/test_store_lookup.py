"""Direct commits and lookups without Spark: by an index, by reading all keys; lost, stale and damaged indexes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_views.config import UpkeepSettings
from cdc_views.errors import ForeignCommit
from cdc_views.metrics import Work, counting
from cdc_views.store.commits.changes import Written, WrittenRows
from cdc_views.store.commits.committer import Target
from cdc_views.store.commits.vectors import VectorCommitter
from cdc_views.store.delta_log.deletion_vectors import file_of
from cdc_views.store.delta_log.entries import VersionTaken, entry_file, put_entry, read_entry
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index import fetching, key_index
from cdc_views.store.index.driver_table import Indexes
from cdc_views.store.index.hashing import Fingerprints, fingerprints
from cdc_views.store.index.key_index import BYTES_PER_NUMBER, KeyIndex
from cdc_views.store.reading import read_table
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse
from cdc_views.testing import HandClock
from tests.samples import SEEDS
from tests.unit.stored_rows import KEY, SCHEMA, SPEC, Model, as_rows, table_of, warehouse_in

pytestmark = pytest.mark.usefixtures("without_fsync")


@pytest.mark.parametrize(
    ("seed", "memory_mb", "disk_mb", "way"),
    [(1, 1, 0, "direct"), (2, 1, 0, "direct"), (3, 0, 0, "direct-scan"), (4, 0, 1, "direct")],
)
def test_random_history_is_the_same_with_an_index_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, memory_mb: int, disk_mb: int, way: str
) -> None:
    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 8)
    sizes = {"index_memory_mb": memory_mb, "index_disk_mb": disk_mb}
    model, warehouse = Model(seed), warehouse_in(tmp_path, **sizes)
    version, ways, foreign = warehouse.create(SPEC), set(), set()
    for attempt in range(1, 1 + 8 * SEEDS):
        version = warehouse.commit(SPEC, version, model.change(), Stamp(1, attempt, "0/1"))
        ways.update(warehouse.ways.taken().get("commit", {}).values())
        assert as_rows(read_table(tmp_path, "t", version)) == model.rows()
        if memory_mb or disk_mb:
            assert_lookups(warehouse, version, model)
        event = attempt % 7
        if event == 2:
            foreign.add("lost")
            warehouse = warehouse_in(tmp_path, **sizes)
        elif event == 4:
            foreign.add("rewritten")
            DeltaTable(tmp_path / "t").optimize.compact()
            version = warehouse.latest_version("t")
        elif event == 6:
            foreign.add("cleaned")
            DeltaTable(tmp_path / "t").create_checkpoint()
            for old in range(version):
                entry_file(tmp_path / "t", old).unlink(missing_ok=True)
            warehouse = warehouse_in(tmp_path, **sizes)
    assert way in ways
    assert ways <= {way, "direct"}  # nothing to look for is always direct
    assert foreign == {"lost", "rewritten", "cleaned"}


def assert_lookups(warehouse: Warehouse, version: int, model: Model) -> None:
    keys = [model.key() for _ in range(6)]
    found = warehouse.lookup(SPEC, version, pa.table([[key[i] for key in keys] for i in range(2)], schema=KEY))
    assert as_rows(found) == model.rows(lambda row: row[:2] in keys)
    owners = model.chance.choice([["x"], [None], ["x", "y", None, "z"], []])
    found = warehouse.lookup(SPEC, version, pa.table({"owner": pa.array(owners, pa.string())}))
    assert as_rows(found) == model.rows(lambda row: row[2] in owners)
    counts = warehouse.counts(SPEC, version, pa.table({"owner": pa.array(["x", None, "nobody"], pa.string())}))
    assert counts is not None
    assert counts.tolist() == [len(model.rows(lambda row, owner=owner: row[2] == owner))
                               for owner in ("x", None, "nobody")]  # fmt: skip
    assert warehouse.ways.taken() == {"lookup": {"t": "index"}}


NESTED = {
    "list": (pa.list_(pa.string()), [None, [], [None], ["a"], ["a", None], [None, "a"], ["a", "b"]]),
    "struct": (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int64()))]),
        [None, {"x": None, "y": None}, {"x": 1, "y": None}, {"x": 1, "y": []}, {"x": 1, "y": [1, None]}],
    ),
}


@pytest.mark.parametrize("shape", NESTED)
def test_rows_are_found_by_a_nested_column_and_replaced_by_a_nested_key(tmp_path: Path, shape: str) -> None:
    kind, values = NESTED[shape]
    spec = TableSpec("t", "t", pa.schema([("k", kind), ("n", pa.int64())]), ("k",))
    warehouse = warehouse_in(tmp_path)
    for attempt in (1, 2):
        rows = pa.table([pa.array(values, kind), [attempt] * len(values)], schema=spec.schema)
        version = warehouse.commit(spec, warehouse.create(spec), Changes(None, rows), Stamp(1, attempt, "0/1"))
    for number, value in enumerate(values):
        keys = pa.table({"k": pa.array([value, value], kind)})
        assert warehouse.lookup(spec, version, keys).to_pylist() == [{"k": value, "n": 2}]
        gone = pa.table({"n": pa.array([number], pa.int64()), "k": pa.array([value], kind)})
        assert warehouse.lookup(spec, version, gone).num_rows == (number == 2)
    assert warehouse.ways.taken() == {"commit": {"t": "direct"}, "lookup": {"t": "index"}}


def test_rows_are_not_found_by_a_map_without_spark(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    spec = TableSpec("t", "t", pa.schema([("id", pa.int64()), ("m", kind)]), ("id",))
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(spec)
    with pytest.raises(AttributeError):  # it asks Spark, which is not there
        warehouse.lookup(spec, version, pa.table({"m": pa.array([[("a", 1)]], kind)}))


def test_commit_of_few_keys_reads_no_file_again(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(SPEC)
    everything = table_of([(n, "b", "x", n) for n in range(5000)])
    version = warehouse.commit(SPEC, version, Changes(None, everything, all_new=True), Stamp(1, 1, "0/1"))
    read = []
    for attempt in range(2, 5):
        with counting(Work()) as work:
            version = warehouse.commit(
                SPEC, version, Changes(None, everything.slice(attempt, 7)), Stamp(1, attempt, "0/1")
            )
        read.append((work.files_read, work.rows_read, work.rows_written))
    assert read == [(1, 5000, 7), (0, 0, 7), (0, 0, 7)]


def commit_after_a_compaction(root: Path, warehouse: Warehouse, upkeep: TableUpkeep) -> Work:
    """What a commit reads whose rows are partly in a file that was merged just before."""
    everything = table_of([(n, "b", "x", n) for n in range(5000)])
    version = warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, everything), Stamp(1, 1, "0/1"))
    for attempt in (2, 3, 4):
        changes = Changes(None, everything.slice(attempt * 10, 10))
        version = warehouse.commit(SPEC, version, changes, Stamp(1, attempt, "0/1"))
    assert upkeep.catch_up(version)
    version = upkeep.compact([add for add in upkeep.files if "deletionVector" not in add], Stamp(1, 4, "0/1"))
    with counting(Work()) as work:
        warehouse.commit(SPEC, version, Changes(None, everything.slice(25, 100)), Stamp(1, 5, "0/1"))
    assert as_rows(read_table(root, "t", version + 1)) == as_rows(everything)
    return work


def test_commit_after_a_compaction_reads_the_keys_of_its_file_alone(tmp_path: Path) -> None:
    upkeep = TableUpkeep(tmp_path, SPEC, UpkeepSettings())
    work = commit_after_a_compaction(tmp_path, warehouse_in(tmp_path), upkeep)
    assert (work.files_read, work.rows_read) == (1, 30)


def test_compaction_reads_the_keys_of_its_file_into_the_indexes_in_use(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    upkeep = TableUpkeep(tmp_path, SPEC, UpkeepSettings(), warehouse.tables.table(SPEC.path))
    work = commit_after_a_compaction(tmp_path, warehouse, upkeep)
    assert (work.files_read, work.rows_read) == (0, 0)


def test_commit_writes_deletion_vectors_of_the_files_alone_that_lose_rows(tmp_path: Path) -> None:
    warehouse, state = warehouse_in(tmp_path), TableState()
    version = warehouse.create(SPEC)
    files = [table_of([(n, name, "x", n) for n in range(10)]) for name in "pqr"]
    for attempt, rows in enumerate(files, 1):
        version = warehouse.commit(SPEC, version, Changes(None, rows, all_new=True), Stamp(1, attempt, "0/1"))
    assert state.catch_up(tmp_path / "t")
    first, second, third = state.files
    for attempt, gone in ((4, [(0, 1), (1, 1), (2, 1)]), (5, [(0, 2), (1, 10)])):
        keys = pa.concat_tables([files[file].select(KEY.names).slice(0, rows) for file, rows in gone])
        version = warehouse.commit(SPEC, version, Changes(keys, table_of([])), Stamp(1, attempt, "0/1"))
    actions = read_entry(tmp_path / "t", version)
    assert {action["remove"]["path"] for action in actions if "remove" in action} == {first, second}
    [add] = [action["add"] for action in actions if "add" in action]
    assert (add["path"], add["deletionVector"]["cardinality"]) == (first, 2)
    # A byte of the format, the vector's length and sum, and no other vector.
    size = file_of(tmp_path / "t", add["deletionVector"]).stat().st_size
    assert size == 1 + 4 + add["deletionVector"]["sizeInBytes"] + 4
    assert state.catch_up(tmp_path / "t")
    assert {path: len(state.dead_rows(tmp_path / "t", path)) for path in state.files} == {first: 2, third: 1}


def partitioned(entry: list[Any]) -> dict[str, Any]:
    metadata = next(action["metaData"] for action in entry if "metaData" in action)
    return {"metaData": metadata | {"partitionColumns": ["owner"]}}


def without_a_count(entry: list[Any]) -> dict[str, Any]:
    return {"add": next(action["add"] for action in entry if "add" in action) | {"stats": "{}"}}


def with_another_feature(entry: list[Any]) -> dict[str, Any]:
    found = next(action["protocol"] for action in entry if "protocol" in action)
    return {"protocol": found | {"writerFeatures": [*found["writerFeatures"], "rowTracking"]}}


@pytest.mark.parametrize("altered", [partitioned, without_a_count, with_another_feature])
def test_commit_to_a_table_that_somebody_has_altered_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, altered: Callable[[list[Any]], dict[str, Any]]
) -> None:
    warehouse, table = warehouse_in(tmp_path), tmp_path / "t"
    rows = table_of([(n, "b", "x", n) for n in range(10)])
    warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    put_entry(table, 2, [altered(read_entry(table, 0) + read_entry(table, 1))])
    by_spark: list[Any] = []
    monkeypatch.setattr(warehouse._commits, "_commit_by_spark", lambda *question: by_spark.append(question) or 2)
    warehouse.commit(SPEC, 2, Changes(None, rows.slice(0, 1)), Stamp(1, 3, "0/1"))
    assert len(by_spark) == 1
    # Files that are there already cannot be.
    written = WrittenRows(lambda spec, folder: Written([], rows.select(KEY.names)), all_new=False)
    with pytest.raises(ForeignCommit, match="found files or features that are not ours"):
        warehouse.commit(SPEC, 2, written, Stamp(1, 3, "0/1"))


def test_lookup_decodes_the_pages_of_its_keys_only(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(SPEC)
    rows = table_of([(n, "b", "x", n) for n in range(100_000)])
    version = warehouse.commit(SPEC, version, Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    keys = rows.select(["a", "b"])
    warehouse.lookup(SPEC, version, keys.slice(0, 1))
    with counting(Work()) as work:
        found = warehouse.lookup(SPEC, version, pa.concat_tables([keys.slice(5, 3), keys.slice(99_999, 1)]))
    assert found["n"].to_pylist() == [5, 6, 7, 99_999]
    assert work.rows_read == 2 * 2_000


def test_damaged_index_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(SPEC)
    rows = table_of([(n, "b", "x", n) for n in range(100)])
    version = warehouse.commit(SPEC, version, Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    key = rows.select(["a", "b"]).slice(7, 1)
    assert warehouse.lookup(SPEC, version, key)["n"].to_pylist() == [7]
    (part,) = warehouse.tables.table("t").indexes._known[tmp_path / "t", ("a", "b")].index._parts()
    part.rows[:] = part.rows[::-1].copy()
    asked = []
    monkeypatch.setattr(warehouse, "_look_up_by_spark", lambda *question: asked.append(question) or rows.slice(7, 1))
    assert warehouse.lookup(SPEC, version, key)["n"].to_pylist() == [7]
    assert warehouse.lookup(SPEC, version, key)["n"].to_pylist() == [7]
    assert len(asked) == 1  # the second time the index was rebuilt


def test_index_in_use_is_not_pushed_out_by_another(tmp_path: Path) -> None:
    specs = [TableSpec(name, name, SCHEMA, ("a",)) for name in ("first", "second")]
    warehouse = warehouse_in(tmp_path, index_memory_mb=1, index_disk_mb=0)
    rows = table_of([(n, "b", "x", n) for n in range(40_000)])
    for attempt, ways in ((1, "direct"), (2, "direct-scan")):
        for spec, way in zip(specs, ("direct", ways), strict=True):
            version = warehouse.create(spec) if attempt == 1 else 1
            changes = Changes(None, rows.slice(0, 40_000 if attempt == 1 else 3), all_new=attempt == 1)
            warehouse.commit(spec, version, changes, Stamp(1, attempt, "0/1"))
            assert warehouse.ways.taken() == {"commit": {spec.name: way}}


def test_index_that_nobody_asked_for_a_while_makes_room() -> None:
    clock = HandClock()
    indexes = Indexes(1 << 20, clock)
    first, second = Path("first"), Path("second")
    assert indexes.index(first, ("a",), 40_000) is not None
    assert indexes.index(second, ("a",), 40_000) is None
    clock.advance(601)
    assert indexes.index(second, ("a",), 40_000) is not None
    assert indexes.index(first, ("a",), 40_000) is None


def test_index_without_room_in_memory_goes_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 1000)
    indexes = Indexes(1 << 20, folder=tmp_path, disk_bytes=2 << 20)

    def index(name: str, rows: int) -> KeyIndex | None:
        return indexes.index(Path(name), ("a",), rows)

    first, second = index("first", 30_000), index("second", 30_000)
    assert first is not None
    assert second is not None
    assert (first.is_on_disk, second.is_on_disk) == (False, True)
    first.add("f", texts(30_000))
    second.add("f", texts(30_000))
    assert (second.memory_bytes, second.disk_bytes) == (0, 30_000 * 20)
    # One that outgrows the memory follows, one that outgrows the disk is lost.
    first.add("g", texts(20_000))
    assert index("first", 50_000) is first
    assert (first.is_on_disk, indexes.memory_bytes) == (True, 0)
    second.add("g", texts(30_000))
    assert index("second", 60_000) is None
    assert index("third", 30_000) is not None
    assert [path for path, _ in first.find(texts(25_000))] == ["f", "g"]


def test_index_on_disk_is_there_while_another_has_outgrown_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "_LEAST_ON_DISK", 1000)
    indexes = Indexes(1 << 20, folder=tmp_path, disk_bytes=4 << 20)
    first, second = (indexes.index(Path(name), ("a",), 30_000) for name in ("first", "second"))
    assert first is not None
    assert second is not None
    second.add("f", texts(30_000))
    first.add("f", texts(60_000))
    assert indexes.memory_bytes > 1 << 20
    assert indexes.index(Path("second"), ("a",), 30_000) is second


def texts(rows: int) -> Fingerprints:
    return fingerprints(pa.table({"a": pa.array(range(rows), pa.int64()).cast(pa.string())}))


def test_index_has_room_only_for_what_its_rows_can_take() -> None:
    indexes = Indexes(1 << 20)
    assert indexes.index(Path("t"), ("a",), 47_000) is None
    index = indexes.index(Path("t"), ("a",), 43_000)
    assert index is not None
    index.add("first", texts(20_000))
    index.add("second", texts(23_000))
    assert 0.95 * (1 << 20) < indexes.memory_bytes <= 1 << 20
    assert indexes.index(Path("t"), ("a",), 43_000) is index


def test_index_that_outgrew_its_room_is_not_made_again_before_the_table_has_shrunk() -> None:
    indexes = Indexes(1 << 20)
    index = indexes.index(Path("t"), ("a",), 43_000)
    assert index is not None
    index.add("first", texts(20_000))
    index.add("second", texts(25_000))
    for rows in (45_000, 45_000, 43_000):
        assert indexes.index(Path("t"), ("a",), rows) is None
    assert indexes.index(Path("t"), ("a",), 39_000) is not None


def test_index_of_numbers_that_takes_more_for_null_is_not_made_again_at_once() -> None:
    indexes = Indexes(1 << 20)

    def index(rows: int) -> KeyIndex | None:
        return indexes.index(Path("t"), ("n",), rows, bytes_per_row=BYTES_PER_NUMBER)

    first = index(60_000)
    assert first is not None
    for path in ("f", "g"):
        first.add(path, fingerprints(pa.table({"n": [None, *range(29_999)]})))
    assert [index(60_000) for _ in range(3)] == [None] * 3
    assert index(39_000) is not None


def test_index_lets_rows_of_lost_files_go_before_it_has_no_room() -> None:
    indexes = Indexes(1 << 20)
    index = indexes.index(Path("t"), ("a",), 40_000)
    assert index is not None
    index.add("first", texts(22_000))
    index.add("second", texts(18_000))
    index.drop_others({"first": None})
    index.add("third", texts(18_000))
    assert indexes.memory_bytes > 1 << 20
    assert indexes.index(Path("t"), ("a",), 40_000) is index
    assert indexes.memory_bytes <= 1 << 20


def test_direct_commit_on_a_stale_state_overwrites_nothing(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    warehouse.create(SPEC)
    stale = TableState()
    assert stale.catch_up(tmp_path / "t")
    rows = table_of([(1, "x", None, 0)])
    warehouse.commit(SPEC, 0, Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    with pytest.raises(VersionTaken):
        VectorCommitter().commit(Target(tmp_path / "t", "t", SPEC, stale), {}, rows, Stamp(1, 2, "0/1"))
    assert warehouse.latest_version("t") == 1


def test_state_of_a_damaged_checkpoint_is_read_from_the_entries(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(SPEC)
    warehouse.commit(SPEC, version, Changes(None, table_of([(1, "x", None, 0)]), all_new=True), Stamp(1, 1, "0/1"))
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    state = TableState()
    assert (state.catch_up(tmp_path / "t"), state.version, state.stored_rows) == (True, 1, 1)


def test_rows_that_lookups_decoded_take_few_mappings_however_many_files_they_were_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MOST_GROUPS", 5)
    warehouse = warehouse_in(tmp_path)
    version, before = warehouse.create(SPEC), mappings(tmp_path)
    assert before == 0
    for attempt in range(1, 20):
        # Every third file is as small as those of hot keys.
        rows = table_of([(n, "b", "x" * 100, attempt) for n in range(3 if attempt % 3 == 0 else 200)])
        version = warehouse.commit(SPEC, version, Changes(None, rows), Stamp(1, attempt, "0/1"))
        found = warehouse.lookup(SPEC, version, rows.select(["a", "b"]))
        assert as_rows(found) == as_rows(rows)
        assert 0 < mappings(tmp_path) <= 5
    assert [*(tmp_path / ".rows").iterdir()] == []


def mappings(warehouse: Path) -> int:
    """How many files below the warehouse are mapped into the memory of this process; they may have no name."""
    return sum(str(warehouse / ".rows") in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_rows_of_less_than_a_page_are_not_mapped(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    rows = table_of([(n, "b", "x", n) for n in range(3)])
    version = warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    for _ in range(2):
        with counting(Work()) as work:
            assert as_rows(warehouse.lookup(SPEC, version, rows.select(["a", "b"]))) == as_rows(rows)
    assert (work.files_read, mappings(tmp_path)) == (0, 0)


def test_file_of_decoded_rows_has_no_name_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = warehouse_in(tmp_path)
    rows = table_of([(n, "b", "x", n) for n in range(1000)])
    version = warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, all_new=True), Stamp(1, 1, "0/1"))
    names, new_file = [], pa.ipc.new_file

    def watched(*question: Any) -> Any:
        names.append([*(tmp_path / ".rows").iterdir()])
        return new_file(*question)

    monkeypatch.setattr(fetching.pa.ipc, "new_file", watched)
    warehouse.lookup(SPEC, version, rows.select(["a", "b"]))
    assert names == [[]]
