"""Lookups at older versions, and the rows that changed between two versions: without Spark."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_views.config import UpkeepSettings
from cdc_views.metrics import Work, counting
from cdc_views.store.delta_log.entries import entry_file
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.driver_table import Indexes
from cdc_views.store.index.hashing import fingerprints
from cdc_views.store.index.row_bags import without_common_rows
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, RowsChanged, Stamp, TableSpec, Warehouse
from tests.samples import SEEDS, sample
from tests.unit.stored_rows import KEY, SPEC, Model, Row, as_rows, table_of, warehouse_in

pytestmark = pytest.mark.usefixtures("without_fsync")

PLAIN = TableSpec(SPEC.name, SPEC.path, SPEC.schema, SPEC.key, "plain")


class History:
    """A table that random events change, and its rows at every version."""

    def __init__(self, folder: Path, seed: int = 0, spec: TableSpec = SPEC, **settings: Any) -> None:
        self.folder, self.spec, self.model = folder, spec, Model(seed)
        self.warehouse = warehouse_in(folder, **settings)
        self.version, self._attempts = self.warehouse.create(spec), 0
        self.rows: dict[int, list[Row]] = {self.version: []}

    def stamp(self) -> Stamp:
        self._attempts += 1
        return Stamp(1, self._attempts, "0/1")

    def commit(self, changes: Changes | None = None) -> int:
        changes = self.model.change() if changes is None else changes
        return self._moved(self.warehouse.commit(self.spec, self.version, changes, self.stamp()), self.model.rows())

    def insert(self, rows: list[Row]) -> int:
        self.model.stored |= {row[:2]: row for row in rows}
        return self.commit(Changes(None, table_of(rows)))

    def fence(self) -> int:
        return self._moved(self.warehouse.fence(self.spec.path, self.stamp()), self.rows[self.version])

    def compact(self) -> int:
        upkeep = TableUpkeep(self.folder, self.spec, UpkeepSettings(), self.warehouse.tables.table(self.spec.path))
        assert upkeep.catch_up(self.version)
        if not upkeep.files:
            return self.version
        return self._moved(upkeep.compact(upkeep.files, self.stamp()), self.rows[self.version])

    def restore(self, version: int) -> int:
        self.model.stored = {row[:2]: row for row in self.rows[version]}
        return self._moved(self.warehouse.restore(self.spec.path, version, self.stamp()), self.rows[version])

    def _moved(self, version: int, rows: list[Row]) -> int:
        self.version, self.rows[version] = version, rows
        return version

    def check_lookups(self, version: int) -> None:
        keys = [self.model.key() for _ in range(6)]
        asked = pa.table([[key[i] for key in keys] for i in range(2)], schema=KEY)
        found = self.warehouse.lookup(self.spec, version, asked)
        assert as_rows(found) == [row for row in self.rows[version] if row[:2] in keys]
        found = self.warehouse.lookup(self.spec, version, pa.table({"owner": pa.array([None, "x"], pa.string())}))
        assert as_rows(found) == [row for row in self.rows[version] if row[2] in (None, "x")]

    def check_changed_rows(self, base: int, version: int, columns: Sequence[str] = SPEC.schema.names) -> None:
        places = [place for place, name in enumerate(SPEC.schema.names) if name in columns]
        old, new = (Counter(tuple(row[i] for i in places) for row in self.rows[each]) for each in (base, version))
        found = self.warehouse.changed_rows(self.spec, base, version, columns)
        assert found is not None
        assert (bag(found.old), bag(found.new)) == (old - new, new - old)
        assert found.old.schema == found.new.schema == pa.schema([SPEC.schema.field(place) for place in places])


def bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def run(history: History, steps: int) -> None:
    """Random events; after each, all of the last four versions and one older version."""
    chance = history.model.chance
    for _ in range(steps):
        event = chance.choice(["commit"] * 5 + ["compact", "fence", "restore"])
        if event == "restore":
            history.restore(chance.choice(sorted(history.rows)[-4:]))
        else:
            getattr(history, event)()
        last = sorted(history.rows)[-4:]
        for version in {*last, chance.choice(sorted(history.rows))}:
            history.check_lookups(version)
            base = chance.choice([each for each in history.rows if each <= version])
            history.check_changed_rows(base, version)
            history.check_changed_rows(last[0], last[-1], chance.choice([["n"], ["owner"], ["owner", "a"], ["b"]]))


@pytest.mark.parametrize("spec", [SPEC, PLAIN], ids=["vectors", "plain"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_lookups_and_changed_rows_of_every_version_equal_the_model(tmp_path: Path, seed: int, spec: TableSpec) -> None:
    history = History(tmp_path, seed, spec)
    run(history, sample(12, 25))
    assert history.warehouse.ways.taken()["lookup"] == {"t": "index"}


def test_state_that_is_not_copied_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableState, "copy", lambda state: state)
    with pytest.raises(AssertionError):
        run(History(tmp_path, 1), 25)


def test_lookup_at_the_published_version_reads_no_keys_again(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.insert([(n, "b", "x", n) for n in range(5000)])
    published = history.insert([(n, "b", "y", -n) for n in range(10, 15)])
    history.check_lookups(published)
    newest = history.insert([(n, "b", "z", -n) for n in range(12, 17)])
    keys = table_of([(n, "b", None, 0) for n in range(12, 17)]).select(["a", "b"])
    old, new = (as_rows(history.warehouse.lookup(SPEC, version, keys)) for version in (published, newest))
    assert [row[2] for row in old] == ["y", "y", "y", "x", "x"]
    assert [row[2] for row in new] == ["z"] * 5
    with counting(Work()) as work:
        history.warehouse.lookup(SPEC, published, keys)
    assert work.files_read == 0


def test_lookup_after_a_compaction_finds_the_rows_of_the_version_before_it(tmp_path: Path) -> None:
    history = History(tmp_path)
    for attempt in range(3):
        published = history.insert([(n, "b", str(attempt), n) for n in range(attempt, attempt + 4)])
    history.check_lookups(published)
    history.compact()
    history.insert([(3, "b", "new", 0)])
    (old,) = as_rows(history.warehouse.lookup(SPEC, published, table_of([(3, "b", None, 0)]).select(["a", "b"])))
    assert old[2] == "2"


def test_index_and_states_do_not_grow_with_the_number_of_versions(tmp_path: Path) -> None:
    history, memory = History(tmp_path), []
    for _ in range(40):
        history.insert([(n, "b", "x", n) for n in range(1000)])
        history.check_lookups(history.version - 1)
        memory.append(history.warehouse.tables.table("t").indexes.memory_bytes)
    assert max(memory[20:]) <= max(memory[:20])
    assert len(history.warehouse.tables.table("t")._recent._states) == 4


def test_version_that_was_not_used_for_a_while_is_read_from_the_log(tmp_path: Path) -> None:
    history = History(tmp_path)
    for attempt in range(12):
        history.insert([(1, "b", "x", attempt)])
        history.check_lookups(history.version)
    for version in (3, 9, 3):
        history.check_lookups(version)
        history.check_changed_rows(version, history.version)
    assert history.warehouse.ways.taken()["lookup"] == {"t": "index"}


def test_version_that_the_log_no_longer_has_is_left_to_spark(tmp_path: Path) -> None:
    history = History(tmp_path)
    for attempt in range(8):
        history.insert([(1, "b", "x", attempt)])
    entry_file(tmp_path / "t", 0).unlink()
    assert history.warehouse.changed_rows(SPEC, 2, history.version, ["n"]) is None
    with pytest.raises(AttributeError):  # it asks Spark, which is not there
        history.check_lookups(2)
    history.check_lookups(history.version - 1)


def test_version_that_does_not_exist_has_no_changed_rows(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = history.insert([(1, "b", "x", 1)])
    assert history.warehouse.changed_rows(SPEC, version, version + 1, ["n"]) is None
    assert history.warehouse.changed_rows(SPEC, version, version - 1, ["n"]) is None


def test_index_without_room_lets_files_of_older_versions_go_first() -> None:
    indexes = Indexes(1 << 20)
    texts = fingerprints(pa.table({"a": pa.array(range(20_000), pa.int64()).cast(pa.string())}))
    index = indexes.index(Path("t"), ("a",), 40_000)
    assert index is not None
    for path in ("old", "kept", "new"):
        index.add(path, texts)
    assert indexes.index(Path("t"), ("a",), 40_000, needed={"kept": None, "new": None}) is index
    assert (index.missing(["old", "kept", "new"]), indexes.has_room(1 << 18)) == (["old"], False)


def test_lookup_at_an_older_version_without_room_for_its_files_is_left_to_spark(tmp_path: Path) -> None:
    history = History(tmp_path, index_memory_mb=1, index_disk_mb=0)
    old = history.insert([(n, "b", "x", n) for n in range(30_000)])
    history.compact()
    newest = history.insert([(1, "b", "y", 0)])
    keys = table_of([(1, "b", None, 0)]).select(["a", "b"])
    for _ in range(2):
        assert as_rows(history.warehouse.lookup(SPEC, newest, keys)) == [(1, "b", "y", 0)]
        with pytest.raises(AttributeError):  # it asks Spark, which is not there
            history.warehouse.lookup(SPEC, old, keys)


def test_changed_rows_of_one_version_are_none(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = history.insert([(1, "b", "x", 1)])
    found = history.warehouse.changed_rows(SPEC, version, version, ["owner", "a"])
    empty = pa.schema([SPEC.schema.field("a"), SPEC.schema.field("owner")]).empty_table()
    assert found == RowsChanged(empty, empty)


def test_changed_rows_have_no_row_whose_other_columns_changed(tmp_path: Path) -> None:
    history = History(tmp_path)
    base = history.insert([(n, "b", "x", n) for n in range(10)])
    version = history.insert([(1, "b", "y", 1), (2, "b", "x", 7), (3, "b", "x", 8), (11, "b", "x", 7)])
    history.check_changed_rows(base, version)
    found = history.warehouse.changed_rows(SPEC, base, version, ["n"])
    assert found is not None
    assert (bag(found.old), bag(found.new)) == (Counter([(2,), (3,)]), Counter([(7,), (7,), (8,)]))
    found = history.warehouse.changed_rows(SPEC, base, version, ["b"])
    assert found is not None
    assert (bag(found.old), bag(found.new)) == (Counter(), Counter([("b",)]))


def test_changed_rows_read_only_the_files_and_pages_with_a_change(tmp_path: Path) -> None:
    history = History(tmp_path)
    for start in (0, 50_000):
        base = history.insert([(n, "b", "x", n) for n in range(start, start + 50_000)])
    version = history.insert([(5, "b", "y", 0), (49_999, "b", "z", 0)])
    with counting(Work()) as work:
        history.check_changed_rows(base, version, ["owner"])
    # A page in two of three row groups of the first file, and the new file.
    assert (work.files_read, work.rows_read) == (2, 2_000 + 2_000 + 2)


def test_changed_rows_across_compactions_and_fences_are_read_without_what_these_moved(tmp_path: Path) -> None:
    history = History(tmp_path, driver_rows=20)
    base = history.insert([(n, "b", "x", n) for n in range(15)])
    history.insert([(n, "b", "x", n) for n in range(15, 30)])
    base = history.insert([(0, "b", "z", 0)])
    history.insert([(1, "b", "y", 0), (2, "b", "y", 0)])
    history.compact()
    history.insert([(2, "b", "x", 2), (3, "b", "z", 0)])
    history.fence()
    history.compact()
    history.check_changed_rows(base, history.version)
    history.check_changed_rows(history.version - 1, history.version)
    assert len(history.rows[history.version]) > 20


def test_changed_rows_that_the_driver_may_not_hold_are_none(tmp_path: Path) -> None:
    history = History(tmp_path, driver_rows=20)
    base = history.version
    history.insert([(n, "b", "x", n) for n in range(20)])
    history.check_changed_rows(base, history.version)
    history.insert([(20, "b", "x", 0)])
    assert history.warehouse.changed_rows(SPEC, base, history.version, ["n"]) is None
    history.commit(Changes(table_of([(20, "b", "x", 0)]).select(["a", "b"]), table_of([])))
    base = history.version - 1
    found = history.warehouse.changed_rows(SPEC, base, history.version, ["a"])
    assert found is not None
    assert (bag(found.old), bag(found.new)) == (Counter([(20,)]), Counter())


def test_changed_rows_of_a_table_without_direct_commits_are_none(tmp_path: Path) -> None:
    history = History(tmp_path)
    version = history.insert([(1, "b", "x", 1)])
    assert Warehouse(tmp_path, None, allow_direct=False).changed_rows(SPEC, 0, version, ["n"]) is None  # type: ignore[arg-type]


def test_two_threads_look_up_an_older_version_while_a_third_commits(tmp_path: Path) -> None:
    history = History(tmp_path)
    base = history.insert([(n, "b", "x", n) for n in range(2000)])
    keys = table_of([(n, "b", None, 0) for n in range(50)]).select(["a", "b"])
    failures: list[Any] = []
    done = threading.Event()

    def look_up() -> None:
        try:
            while not done.is_set():
                found = history.warehouse.lookup(SPEC, base, keys)
                assert as_rows(found) == sorted(((n, "b", "x", n) for n in range(50)), key=repr)
                changed = history.warehouse.changed_rows(SPEC, base, history.version, ["a", "n"])
                assert changed is not None
                assert changed.new.num_rows == changed.old.num_rows
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=look_up) for _ in range(2)]
    for reader in readers:
        reader.start()
    for attempt in range(30):
        history.insert([(n, "b", "y", -attempt) for n in range(attempt, attempt + 20)])
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


ALIKE_AND_DIFFERENT: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [0.0, -0.0, float("nan"), None, 1.0, float("inf")]),
    "float": (pa.float32(), [0.0, -0.0, float("nan"), None, 1.0]),
    "decimal": (pa.decimal128(38, 2), [Decimal("1.10"), Decimal("-1.10"), Decimal(10**35), None]),
    "text": (pa.string(), ["", " ", "a", "a ", "A", "é", "e\u0301", None]),
    "large text": (pa.large_string(), ["", "a", None]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "small number": (pa.int8(), [-1, 0, 127, None]),
    "date": (pa.date32(), [0, -1, None]),
    "time": (pa.timestamp("us", tz="UTC"), [0, 1, -1, None]),
    "list": (pa.list_(pa.float64()), [None, [], [None], [0.0], [-0.0], [float("nan")], [0.0, None], [None, 0.0]]),
    "nested list": (pa.list_(pa.list_(pa.string())), [None, [], [None], [[]], [[], []], [["a"], ["b"]], [["a", "b"]]]),
    "structure": (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int64()))]),
        [None, {"x": None, "y": None}, {"x": 1, "y": None}, {"x": 1, "y": []}, {"x": 1, "y": [1, None]}],
    ),
    "map": (
        pa.map_(pa.string(), pa.float64()),
        [None, [], [("a", None)], [("a", 0.0)], [("a", -0.0)], [("b", 0.0)], [("a", 0.0), ("b", 1.0)]],
    ),
}


@pytest.mark.parametrize("shape", ALIKE_AND_DIFFERENT)
def test_rows_cancel_where_their_values_are_the_same_and_nowhere_else(shape: str) -> None:
    kind, values = ALIKE_AND_DIFFERENT[shape]
    each = [pa.table({"v": pa.array([value], kind)}) for value in values]
    for i, old in enumerate(each):
        for j, new in enumerate(each):
            left = tuple(rows.num_rows for rows in without_common_rows(old, new))
            assert left == ((0, 0) if i == j else (1, 1)), (values[i], values[j])
    chance = random.Random(shape)
    for _ in range(20):
        sides = [[chance.randrange(len(values)) for _ in range(chance.choice([0, 1, 5, 30]))] for _ in range(2)]
        # Slices of a longer array, in two chunks.
        old, new = (pa.concat_tables([each[n] for n in (0, *side, 1)]).slice(1, len(side)) for side in sides)
        left_old, left_new = without_common_rows(old, new)
        first, second = map(Counter, sides)
        assert shown(left_old) == shown_of(each, first - second)
        assert shown(left_new) == shown_of(each, second - first)


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows["v"].to_pylist()))


def shown_of(each: list[pa.Table], numbers: Counter[int]) -> list[str]:
    return sorted(repr(each[number]["v"][0].as_py()) for number in numbers.elements())


def test_every_nan_is_the_same() -> None:
    bits = pa.array([0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0123, -1], pa.int64()).view(pa.float64())
    old, new = without_common_rows(pa.table({"v": bits}), pa.table({"v": bits[:1]}))
    assert (old.num_rows, new.num_rows) == (2, 0)
    old, new = without_common_rows(pa.table({"v": bits}), pa.table({"v": bits.take(pa.array([2, 0, 0]))}))
    assert (old.num_rows, new.num_rows) == (0, 0)


def test_changed_rows_of_nested_columns_and_floats_are_exact(tmp_path: Path) -> None:
    kinds = {name: ALIKE_AND_DIFFERENT[name] for name in ("double", "list", "map")}
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in kinds.items())])
    spec = TableSpec("t", "t", schema, ("id",))
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(spec)
    old, new = [0.0, [0.0], [("a", 0.0)]], [-0.0, [-0.0], [("a", -0.0)]]
    rows = [pa.table([[1, 2], *([value, value] for value in values)], schema=schema) for values in (old, new)]
    version = warehouse.commit(spec, version, Changes(None, rows[0]), Stamp(1, 1, "0/1"))
    version = warehouse.commit(spec, version, Changes(None, rows[1].slice(0, 1)), Stamp(1, 2, "0/1"))
    for name in kinds:
        found = warehouse.changed_rows(spec, version - 1, version, [name])
        assert found is not None
        assert [repr(side[name].to_pylist()) for side in (found.old, found.new)] == [
            repr([rows[0][name][0].as_py()]),
            repr([rows[1][name][0].as_py()]),
        ]
    version = warehouse.commit(spec, version, Changes(None, rows[1].slice(0, 1)), Stamp(1, 3, "0/1"))
    found = warehouse.changed_rows(spec, version - 1, version, schema.names)
    assert found is not None
    assert (found.old.num_rows, found.new.num_rows) == (0, 0)
