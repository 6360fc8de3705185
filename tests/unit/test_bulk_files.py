"""What a task of a bulk reading leaves of a range: what a plain walk through the events leaves, in any pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.capture.types import arrow_schema
from cdc_views.engine.input import bulk_files
from cdc_views.engine.input.bulk_files import FilesOfRange, Range
from cdc_views.errors import LogDiscontinuity
from cdc_views.log.kafka.record import RawRecord, TopicPartition
from cdc_views.source.catalog import SourceTable
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.testing.memory.ddl import read_tables
from tests.samples import SEEDS
from tests.unit.log_records import PARTITION, FakeMessage, log_settings

pytestmark = pytest.mark.usefixtures("without_fsync")

LOG = log_settings()
PLACE = TopicPartition(*PARTITION)


def source() -> SourceTable:
    [table] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY, n text)")
    return table.source


def random_log(seed: int, length: int, keys: int) -> tuple[list[FakeMessage], dict[int, str]]:
    """Events of a few keys, tombstones behind deletes and some offsets without a record; and the rows at the end."""
    chance, events, rows, offset = Random(seed), list[FakeMessage](), dict[int, str](), 0
    while len(events) < length:
        offset += chance.choice([1, 1, 1, 3])
        key = chance.randrange(keys)
        if key in rows and chance.random() < 0.3:
            before, after = {"id": key, "n": rows.pop(key)}, None
        else:
            before, after = None, {"id": key, "n": "x" * chance.choice([1, 5, 900]) + str(offset)}
            rows[key] = after["n"]
        value: Any = {
            "before": before,
            "after": after,
            "source": {"sequence": '["9","9"]'},
            "op": "c" if after else "d",
        }
        events.append(FakeMessage(value, {"id": key}, offset=offset))
        if after is None and chance.random() < 0.8:
            offset += 1
            events.append(FakeMessage(None, {"id": key}, offset=offset))
    return events, rows


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"piece_offsets": 7},
        {"piece_offsets": 1},
        {"piece_bytes": 1500},
        {"piece_bytes": 1},
        {"piece_offsets": 40, "piece_bytes": 3000},
    ],
    ids=str,
)
@pytest.mark.parametrize("all_new", [True, False])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_files_of_a_range_hold_the_rows_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, all_new: bool, sizes: dict[str, int]
) -> None:
    events, rows = random_log(seed, 150, keys=25)
    files, deleted = written(tmp_path, monkeypatch, events, sizes, all_new)
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert sorted((row["id"], row["n"]) for row in found) == sorted(rows.items())
    keys = {json.loads(event.key() or b"")["id"] for event in events}
    assert sorted(deleted) == ([] if all_new else sorted(keys - rows.keys()))
    assert (tmp_path / "progress" / "0").read_text() == str(events[-1].offset() + 1)


@pytest.mark.parametrize("all_new", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_range_of_which_much_was_read_ahead_leaves_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, all_new: bool
) -> None:
    events, rows = random_log(seed, 150, keys=[25, 1000][seed % 2])
    serve(monkeypatch, events)
    end, chance = events[-1].offset() + 1, Random(seed)
    cuts = [0, *sorted(chance.sample(range(1, end), 3)), *([end] if seed % 4 > 1 else [])]
    ahead = [task_of(tmp_path, False)(Range(PLACE, start, end)) for start, end in pairwise(cuts)]
    written = task_of(tmp_path, all_new)(Range(PLACE, cuts[-1], end, tuple(ahead)))
    found = [row for add in written.added for row in pq.read_table(tmp_path / add["path"]).to_pylist()]
    assert sorted((row["id"], row["n"]) for row in found) == sorted(rows.items())
    keys = {json.loads(event.key() or b"")["id"] for event in events}
    assert sorted(written.deleted["id"].to_pylist()) == ([] if all_new else sorted(keys - rows.keys()))


def test_file_that_was_written_ahead_stays_where_no_later_event_is_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [{"before": None, "after": {"id": n, "n": "x"}, "source": {"sequence": '["9","9"]'}, "op": "r"}
              for n in (1, 2, 3, 4, 1)]  # fmt: skip
    serve(monkeypatch, [FakeMessage(value, {"id": value["after"]["id"]}, offset=n) for n, value in enumerate(values)])
    task = task_of(tmp_path, True)
    first, second = task(Range(PLACE, 0, 2)), task(Range(PLACE, 2, 4))
    assert task(Range(PLACE, 4, 4, (first, second))).added == [*second.added, *first.added]
    added = task(Range(PLACE, 4, 5, (first, second))).added
    assert added[1] == second.added[0]
    assert first.added[0] not in added
    assert [json.loads(add["stats"])["numRecords"] for add in added] == [1, 2, 1]


def test_files_are_cut_by_what_they_take_on_the_disk_and_sorted_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_files, "_FIRST_FILE_BYTES", 2000)
    events, rows = random_log(1, 400, keys=10_000)
    files, _ = written(tmp_path, monkeypatch, events, {"piece_offsets": 20, "file_bytes": 2000})
    assert len(files) > 3
    for file in files:
        keys = pq.read_table(file)["id"].to_pylist()
        assert keys == sorted(keys)
    assert sum(pq.read_metadata(file).num_rows for file in files) == len(rows)


def test_files_are_cut_by_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, rows = random_log(1, 400, keys=10_000)
    files, _ = written(tmp_path, monkeypatch, events, {"piece_offsets": 20, "file_rows": 50})
    sizes = [pq.read_metadata(file).num_rows for file in files]
    assert max(sizes) < 50 + 20
    assert sum(sizes) == len(rows)
    assert len(files) > 3


def test_range_of_which_nothing_is_left_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"before": {"id": 1, "n": "x"}, "after": None, "source": {"sequence": '["9","9"]'}, "op": "d"}
    assert written(tmp_path, monkeypatch, [FakeMessage(value, {"id": 1}, offset=3)], {}, all_new=False) == ([], [1])


@pytest.mark.parametrize("sequence", ['["8","9"]', '[null,"9"]', "[null,null]"])
def test_event_of_before_what_is_stored_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sequence: str
) -> None:
    after = {"id": 1, "n": "x"}
    values = [{"before": None, "after": after, "source": {"sequence": s}, "op": "u"} for s in ('["9","9"]', sequence)]
    [good, bad] = [FakeMessage(value, {"id": n}, offset=n) for n, value in enumerate(values)]
    with pytest.raises(LogDiscontinuity, match=r"offset 1: order is .*, wanted at least the published position 0/9"):
        written(tmp_path, monkeypatch, [good, bad], {}, all_new=False, floor=Lsn(9))


def written(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: list[FakeMessage],
    sizes: dict[str, int],
    all_new: bool = True,
    floor: Lsn | None = None,
) -> tuple[list[Path], list[int]]:
    serve(monkeypatch, events)
    written = task_of(root, all_new, floor, **sizes)(Range(PLACE, 0, events[-1].offset() + 1))
    return [root / add["path"] for add in written.added], written.deleted["id"].to_pylist()


def serve(monkeypatch: pytest.MonkeyPatch, events: list[FakeMessage]) -> None:
    def read_piece(log: object, partition: object, start: int, end: int) -> Iterator[list[RawRecord]]:
        found: list[RawRecord] = [event for event in events if start <= event.offset() < end]
        for first in range(0, len(found), 3):
            yield found[first : first + 3]

    monkeypatch.setattr(bulk_files, "read_piece", read_piece)


def task_of(root: Path, all_new: bool, floor: Lsn | None = None, **sizes: int) -> FilesOfRange:
    table, progress = source(), root / "progress"
    progress.mkdir(exist_ok=True)
    spec = TableSpec("t", "t", arrow_schema(table), table.key)
    return FilesOfRange(LOG, table, spec, root, progress, all_new, floor, **sizes)
