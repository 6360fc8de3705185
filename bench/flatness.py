"""The cost of an epoch of 1,000 changes, by the size of the table and by the number of earlier epochs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any, Final, cast
from uuid import uuid4

import click
import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bench import command
from bench.picture import line_chart
from cdc_views.config import UpkeepSettings
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.maintain import ViewResult, ViewRunner
from cdc_views.host.clock import SYSTEM_CLOCK
from cdc_views.store.control import FOLDER, ControlLog, ControlRecord, PublishedDetail
from cdc_views.store.delta_log import TableState
from cdc_views.store.reading import TableScan
from cdc_views.store.upkeep import compact
from cdc_views.store.warehouse import Changes, Stamp, Warehouse
from cdc_views.testing.flatness import checkpoint_bytes, entry_bytes
from cdc_views.testing.hand_clock import HandClock
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.testing.memory.memory_source import SourceChange

TABLE: Final = "CREATE TABLE t (id bigint PRIMARY KEY, holder text NOT NULL, balance numeric(12,2) NOT NULL)"
NAME: Final = "public.t"
PARTITIONS: Final = 4
WARM_UP_EPOCHS: Final = 5
# A fixed number of epochs is kept, however young they are; for the control log an epoch takes as long as in an engine.
# Epochs come one after the other here; a fifth of what an engine has from one to the next is more than all of that.
UPKEEP: Final = UpkeepSettings(keep_hours=0, share=1)
EPOCH_S: Final = 0.35

# Of a table with deletion vectors delta-rs reads all files by one thread, Polars does not.
_SCANS: Final[Mapping[str, Callable[[DeltaTable], object]]] = {
    "scan": lambda table: pa.table(table.scan()),
    "polars_scan": lambda table: pl.scan_delta(table).collect(),
}
_DAY_S: Final = 86_400.0
_PIECE_ROWS: Final = 200_000
_ROW: Final = (
    "SELECT range AS id, concat('holder ', CAST(range % 1000 AS VARCHAR)) AS holder, "
    "CAST(range % 10000 AS DECIMAL(12, 2)) AS balance FROM range({first}, {last})"
)


def base_rows(size: int) -> Iterator[pa.Table]:
    """The initial rows of a table, in batches."""
    with duckdb.connect() as maker:
        for first in range(0, size, _PIECE_ROWS):
            rows = _ROW.format(first=first, last=min(size, first + _PIECE_ROWS))
            yield maker.sql(rows).to_arrow_table()


@dataclass
class Growing:
    """A table that epochs change, and its expected content: row ids, and the new balance of changed rows."""

    size: int
    random: Random
    touched: dict[int, Decimal | None] = field(default_factory=dict)
    _next: int = 0

    def changes(self, count: int) -> Iterator[tuple[int, Decimal | None, Decimal | None]]:
        """Distinct ids scattered over the table, with old and new balance: 7 updates, 2 inserts, 1 delete in ten."""
        for number, key in enumerate(self._keys(count)):
            old = self.touched.get(key, Decimal(key % 10_000)) if key < self.size else None
            is_insert = number % 10 in (7, 8)
            if is_insert:
                key, old = self.size + self._next, None
                self._next += 1
            new = None if number % 10 == 9 and old is not None else Decimal(self.random.randrange(10_000_000)) / 100
            self.touched[key] = new
            yield key, old, new

    def _keys(self, count: int) -> list[int]:
        return self.random.sample(range(self.size), min(count, self.size))


class Stage:
    """One table in its own warehouse, with all of an engine except Postgres, Kafka and Debezium."""

    def __init__(self, root: Path, size: int, seed: int) -> None:
        self.growing = Growing(size, Random(seed))
        self._root = root
        [declared] = read_tables([TABLE, "ALTER TABLE t REPLICA IDENTITY FULL"])
        self._source = declared.source
        self._log = MemoryLog([self._source], SYSTEM_CLOCK, partitions=PARTITIONS, validity_s=_DAY_S)
        # Nothing here needs Spark: there are no views, and the driver can hold all changes. None would fail if used.
        no_spark = cast(SparkSession, None)
        self._tables = Tables(Warehouse(root, no_spark), "bench", [self._source])
        self._views = _MirrorsAlone(no_spark, [])
        self._clock = HandClock()
        self._control = ControlLog.open(root, uuid4().hex, self._clock)
        self._control.take_over("bench")
        self._writer = EpochWriter(self._log, self._tables, self._views, self._control)
        for rows in base_rows(size):
            self._append(rows)
        self._tables.advance(self._publish())
        self._maintenance = Upkeep(root, self._tables, self._control, UPKEEP)
        self._maintenance.run()

    def epoch(self, changes: int) -> dict[str, float]:
        """Commit changes at the source and run one turn of the engine's loop. Returns milliseconds by stage."""
        self._clock.sleep(EPOCH_S)
        self._log.write([self._row_change(*change) for change in self.growing.changes(changes)])
        began = time.monotonic()
        record = self._writer.run(idle_interval_s=0)
        published = time.monotonic()
        self._maintenance.slot()
        ended = time.monotonic()
        assert record is not None
        stages = {stage: float(ms) for stage, ms in PublishedDetail.read(record).stage_ms.items()}
        return {**stages, "epoch": (published - began) * 1000, "upkeep": (ended - published) * 1000}

    def is_equal(self) -> bool:
        """Whether every row of the published table is as expected."""
        ids = list(self.growing.touched)
        balances = pa.array(self.growing.touched.values(), pa.decimal128(12, 2))
        with duckdb.connect() as judge:
            judge.register("stored", TableScan(self.opened(), None))
            judge.register("touched", pa.table({"id": pa.array(ids, pa.int64()), "balance": balances}))
            base = _ROW.format(first=0, last=self.growing.size)
            wanted = (
                f"SELECT id, balance FROM ({base}) WHERE id NOT IN (SELECT id FROM touched) "
                "UNION ALL SELECT id, balance FROM touched WHERE balance IS NOT NULL"
            )
            both = f"SELECT *, 1 AS side FROM ({wanted}) UNION ALL SELECT id, balance, -1 FROM stored"
            odd = judge.execute(
                f"SELECT (SELECT count(*) FROM (SELECT id, balance FROM ({both}) GROUP BY ALL HAVING sum(side) <> 0)), "
                "(SELECT count(*) FROM stored WHERE holder <> concat('holder ', CAST(id % 1000 AS VARCHAR)))"
            ).fetchone()
        return odd == (0, 0)

    def opened(self) -> DeltaTable:
        """The published table."""
        path, version = self._published()
        return DeltaTable(str(self._root / path), version=version)

    def compacted(self, root: Path) -> DeltaTable:
        """A copy of the table that upkeep has compacted completely."""
        path, _ = self._published()
        table, state = Path(shutil.copytree(self._root / path, root / path)), TableState()
        state.catch_up(table)
        compact(table, self._tables.specs[NAME], state, [*state.files.values()], Stamp(0, 1, "0/0"))
        return DeltaTable(str(table), version=state.version)

    def on_disk(self) -> dict[str, int]:
        """The number of files in the folders of the table and the control log, and the bytes of their logs."""
        folders = {"table": self._root / self._tables.specs[NAME].path, "control": self._root / FOLDER}
        found: dict[str, int] = {}
        for name, folder in folders.items():
            found[f"{name}_files"] = sum(1 for file in folder.rglob("*") if file.is_file())
            found[f"{name}_log_entry_bytes"] = entry_bytes(folder)
            found[f"{name}_log_checkpoint_bytes"] = checkpoint_bytes(folder)
        return found

    def _published(self) -> tuple[str, int]:
        """Path and version."""
        published = self._tables.published
        assert published is not None
        table = published.tables[NAME]
        return table.path, table.version

    def _append(self, rows: pa.Table) -> None:
        spec, attempt = self._tables.specs[NAME], self._control.new_attempt()
        base = self._tables.version(NAME)
        changes = Changes(None, rows.cast(spec.schema), all_new=True)
        self._tables.stand_at({NAME: self._tables.warehouse.commit(spec, base, changes, Stamp(0, attempt, "0/0"))})

    def _row_change(self, key: int, old: Decimal | None, new: Decimal | None) -> SourceChange:
        rows = [None if balance is None else {"id": key, "holder": f"holder {key % 1000}", "balance": balance}
                for balance in (old, new)]  # fmt: skip
        return SourceChange(self._source, *rows)

    def _publish(self) -> ControlRecord:
        cut = self._log.cut(self._log.begin(), None)
        tables = {name: replace(table, status="live") for name, table in self._tables.versions().items()}
        return self._control.append(
            kind="publish", epoch=self._control.new_epoch(), attempt=self._control.new_attempt(), generation="bench",
            position=cut.position, complete_to=cut.complete_to, committed_at=datetime.now(UTC),
            offsets={str(partition): offset for partition, offset in cut.end.items()}, tables=tables,
        )  # fmt: skip


class _MirrorsAlone(ViewRunner):
    """A view runner without views, and without a Spark session."""

    def maintain(self, tables: Tables, commits: Mapping[str, int], intent: Intent) -> dict[str, ViewResult]:
        """See ViewRunner."""
        return {}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--sizes", default="100000,1000000,10000000", show_default=True, help="Rows of the tables.")
@click.option("--ages", default="0,100,300,1000,3000,10000", show_default=True, help="Earlier epochs; may be empty.")
@click.option("--aged-rows", default=100_000, show_default=True, help="Rows of the table with earlier epochs.")
@click.option("--changes", default=1_000, show_default=True, help="Changes in each measured epoch, scattered.")
@click.option("--aging-changes", default=50, show_default=True, help="Changes in each epoch between two ages.")
@click.option("--samples", default=15, show_default=True, help="Epochs for each median.")
@click.option("--pictures", type=click.Path(path_type=Path), help="Folder for the two SVG files.")
def main(sizes: str, ages: str, aged_rows: int, changes: int, aging_changes: int, samples: int,
         pictures: Path | None) -> None:  # fmt: skip
    """Measure flatness: the cost of an epoch of 1,000 scattered changes to one table.

    Runs without Postgres, Kafka, Debezium and a JVM. The table is created directly (Parquet and Delta, no snapshot).
    The changes (70 % updates, 20 % inserts, 10 % deletes) are written as Debezium's JSON into a log in memory; the
    engine's own epoch reads, decodes, commits and publishes them, and upkeep has its slot after each epoch. So this
    measures everything the engine does for small changes, except the Kafka client.

    \b
    size_<rows>_ms     median elapsed time of an epoch on a table of this size, after five epochs that do not count
    age_<epochs>_ms    the same on a table of --aged-rows after this many epochs of --aging-changes each;
                       beside_age_<epochs>_ms: on a new table, whose epochs alternate with those of the old one
    flat_sizes_ratio   the most expensive size divided by the cheapest
    flat_ages_ratio    the largest ratio of the old table to the new one
    scan_age_<epochs>_ms, beside_scan_age_<epochs>_ms
                       median elapsed time of a full read by delta-rs, alternating between the old table and
                       its compacted copy; scan_cpu_age_... and beside_scan_cpu_age_... are CPU time, and
                       polars_scan_... is the same by Polars
    scan_ratio, scan_cpu_ratio, polars_scan_ratio, polars_scan_cpu_ratio
                       the largest ratio of the old table to its compacted copy
    stages             median milliseconds of each stage, mean of upkeep after an epoch, and for the table and the
                       control log (100 epochs are kept, whatever their age) the files in their folders and the bytes
                       of their logs (table_log_entry_bytes: all entries; table_log_checkpoint_bytes: the newest
                       checkpoint; control_log_... likewise), by size and by age
    equal              every row of every table is as expected at the end

    Example: python -m bench.flatness --pictures bench/pictures
    """
    options = {"sizes": sizes, "ages": ages, "aged_rows": aged_rows, "changes": changes,
               "aging_changes": aging_changes, "samples": samples}  # fmt: skip

    def measure() -> dict[str, Any]:
        return _measure(_numbers(sizes), _numbers(ages), aged_rows, changes, aging_changes, samples, pictures)

    command.run("flatness", options, measure)


def _measure(
    sizes: Sequence[int], ages: Sequence[int], aged_rows: int, changes: int, aging: int, samples: int,
    pictures: Path | None,
) -> dict[str, Any]:  # fmt: skip
    figures: dict[str, Any] = {"stages": {}, "equal": True}
    with ExitStack() as tables:
        by_size = {f"size_{size}": _young(tables, size, changes) for size in sizes}
        costs = _take(figures, by_size, samples, changes)
        figures["equal"] &= all(stage.is_equal() for stage in by_size.values())
    figures["flat_sizes_ratio"] = round(max(costs.values()) / min(costs.values()), 2)
    _draw(
        pictures,
        "sizes",
        f"An epoch of {changes:,} changes, by rows of the table",
        dict(zip(sizes, costs.values(), strict=True)),
    )
    if ages:
        ratios = dict(_age(figures, aged_rows, ages, changes, aging, samples))
        figures["flat_ages_ratio"] = max(ratios.values())
        for kind in (f"{scan}{clock}" for scan in _SCANS for clock in ("", "_cpu")):
            figures[f"{kind}_ratio"] = round(
                max(figures[f"{kind}_age_{age}_ms"] / figures[f"beside_{kind}_age_{age}_ms"] for age in ages), 2
            )
        title = f"An epoch of {changes:,} changes after others, by their number; 1 is that of a new table"
        _draw(pictures, "ages", title, ratios)
    return figures


def _young(tables: ExitStack, size: int, changes: int) -> Stage:
    """A new table after a few epochs; removed together with `tables`."""
    command.tell(f"a table of {size:,} rows")
    stage = Stage(Path(tables.enter_context(tempfile.TemporaryDirectory(prefix="cdc-views-bench-"))), size, seed=1)
    _run(stage, WARM_UP_EPOCHS, changes)
    return stage


def _age(
    figures: dict[str, Any], size: int, ages: Sequence[int], changes: int, aging: int, samples: int
) -> Iterator[tuple[int, float]]:
    """The cost of an epoch after `ages` epochs, as a multiple of its cost on a new table at the same time."""
    with ExitStack() as tables:
        stage, epochs = _young(tables, size, changes), WARM_UP_EPOCHS
        for age in ages:
            command.tell(f"after {age:,} epochs")
            _run(stage, age - epochs, aging)
            with ExitStack() as new:
                pair = {f"age_{age}": stage, f"beside_age_{age}": _young(new, size, changes)}
                old_ms, new_ms = _take(figures, pair, samples, changes).values()
                figures["equal"] &= all(each.is_equal() for each in pair.values())
            with tempfile.TemporaryDirectory(prefix="cdc-views-bench-") as folder:
                _scan(figures, age, stage.opened(), stage.compacted(Path(folder)), samples)
            epochs = max(age, epochs) + samples
            yield age, round(old_ms / new_ms, 2)


def _run(stage: Stage, epochs: int, changes: int) -> list[dict[str, float]]:
    return [stage.epoch(changes) for _ in range(epochs)]


def _take(figures: dict[str, Any], stages: Mapping[str, Stage], samples: int, changes: int) -> dict[str, float]:
    """Measure some epochs of each stage, alternating, since the speed of the machine changes.

    Adds the medians to the figures. Returns the medians of whole epochs in the order of `stages`.
    """
    turns = [{name: stage.epoch(changes) for name, stage in stages.items()} for _ in range(samples)]
    for name, stage in stages.items():
        spent = [turn[name] for turn in turns]
        middle = {part: round(median(each[part] for each in spent), 1) for part in spent[0] if part != "upkeep"}
        # Most epochs are not followed by upkeep, so a median would always be 0.
        upkeep_ms = round(fmean(each["upkeep"] for each in spent), 1)
        figures["stages"][name] = {**middle, "upkeep_mean": upkeep_ms, **stage.on_disk()}
        figures[f"{name}_ms"] = middle["epoch"]
        command.tell(f"{name}: {middle['epoch']} ms, upkeep {upkeep_ms} ms")
    return {name: figures[f"{name}_ms"] for name in stages}


def _scan(figures: dict[str, Any], age: int, old: DeltaTable, compacted: DeltaTable, samples: int) -> None:
    """Read both in full, alternating, and add the medians of elapsed time and CPU time to the figures."""
    took_ms: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(samples):
        for kind, read in _SCANS.items():
            for side, table in {"": old, "beside_": compacted}.items():
                began, work_began = time.monotonic(), time.process_time()
                read(table)
                took_ms[f"{side}{kind}_age_{age}_ms"].append((time.monotonic() - began) * 1000)
                took_ms[f"{side}{kind}_cpu_age_{age}_ms"].append((time.process_time() - work_began) * 1000)
    figures |= {name: round(median(taken), 1) for name, taken in took_ms.items()}
    command.tell(", ".join(f"{name} {figures[name]}" for name in took_ms))


def _draw(pictures: Path | None, name: str, title: str, costs: Mapping[int, float]) -> None:
    if pictures is None:
        return
    pictures.mkdir(parents=True, exist_ok=True)
    points = [(float(x), y) for x, y in costs.items()]
    x_label, y_label = {"sizes": ("rows", "milliseconds"), "ages": ("earlier epochs", "times")}[name]
    (pictures / f"flatness-{name}.svg").write_text(
        line_chart(title, x_label, y_label, {"one epoch": points}, log_x=True)
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


if __name__ == "__main__":
    main()
