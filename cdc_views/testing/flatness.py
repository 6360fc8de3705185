"""Many epochs of a small table, and what they leave on the disk: is the cost flat?

`python -m cdc_views.testing.flatness --epochs 10000` runs the harness's engine and prints a line of JSON each
thousand epochs, the last one at the end; `--no-upkeep` shows what happens without.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import orjson

from cdc_views.config import UpkeepSettings
from cdc_views.store.control.control_log import FOLDER, last_published
from cdc_views.store.delta_log.entries import LOG_FOLDER
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.reading import read_table
from cdc_views.testing.changes import Insert, Update
from cdc_views.testing.harness import ViewHarness

TABLE = "accounts"
SCHEMA = f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, holder text, balance bigint)"


@dataclass(frozen=True)
class Footprint:
    """What the mirror and the control log take on the disk; files of data, deletion vectors included.

    `live_files` are those of the newest version. `checkpoint_bytes` is the size of the newest checkpoint, in which
    removed files stay for an hour (deletedFileRetentionDuration). `scan_ms` is a full read of the mirror by delta-rs,
    in a reader that opens it anew, `last_published_ms` what finding the last published record takes.
    """

    live_files: int
    files: int
    log_files: int
    entry_bytes: int
    checkpoint_bytes: int
    control_files: int
    control_log_files: int
    records: int
    scan_ms: float
    last_published_ms: float


@dataclass(frozen=True)
class Epochs:
    """Some epochs: how many there were in all, and what one took, upkeep included."""

    epochs: int
    p50_ms: float
    p99_ms: float
    mean_ms: float


def run_epochs(harness: ViewHarness, epochs: int, changes: int = 20, every: int = 1000) -> Iterator[Epochs]:
    """Update random rows, an epoch each time; tells after `every` epochs what they took, and waits."""
    chance, took_ms = random.Random(1), []
    ids = [row[0] for row in harness.rows(f"public.{TABLE}")]
    for epoch in range(1, epochs + 1):
        rows = [Update(TABLE, {"id": key}, {"balance": chance.randrange(10**9)}) for key in chance.sample(ids, changes)]
        start = time.perf_counter()
        harness.apply(rows)
        took_ms.append((time.perf_counter() - start) * 1000)
        if epoch % every == 0 or epoch == epochs:
            p99 = sorted(took_ms)[int(len(took_ms) * 0.99)]
            yield Epochs(epoch, statistics.median(took_ms), p99, statistics.mean(took_ms))
            took_ms.clear()


def footprint(harness: ViewHarness) -> Footprint:
    """Measure it now."""
    root = harness.warehouse
    table = last_published(root).tables[f"public.{TABLE}"]
    folder, control, state = root / table.path, root / FOLDER, TableState()
    state.catch_up(folder)
    scan_ms = _took_ms(lambda: read_table(root, table.path, table.version))
    last_published_ms = _took_ms(lambda: last_published(root))
    return Footprint(
        live_files=len(state.files),
        files=len(_files(folder)),
        log_files=len(_files(folder / LOG_FOLDER)),
        entry_bytes=entry_bytes(folder),
        checkpoint_bytes=checkpoint_bytes(folder),
        control_files=len(_files(control)),
        control_log_files=len(_files(control / LOG_FOLDER)),
        records=len(harness.records),
        scan_ms=scan_ms,
        last_published_ms=last_published_ms,
    )


def entry_bytes(table: Path) -> int:
    """The size of all entries of a table's log."""
    return sum(file.stat().st_size for file in (table / LOG_FOLDER).glob("*.json"))


def checkpoint_bytes(table: Path) -> int:
    """The size of the newest checkpoint of a table's log; 0 without one."""
    newest = max((table / LOG_FOLDER).glob("*.checkpoint.parquet"), default=None)
    return newest.stat().st_size if newest is not None else 0


@click.command(help=__doc__)
@click.option("--epochs", default=10_000, show_default=True, help="how many")
@click.option("--rows", default=1000, show_default=True, help="of the table")
@click.option("--changes", default=20, show_default=True, help="updated rows of an epoch")
@click.option("--every", default=1000, show_default=True, help="epochs from one line to the next")
@click.option("--upkeep/--no-upkeep", default=True, show_default=True, help="with upkeep, as far as is due")
@click.option("--keep-epochs", default=100, show_default=True, help="epochs that stay readable")
def main(epochs: int, rows: int, changes: int, every: int, upkeep: bool, keep_epochs: int) -> None:
    settings = UpkeepSettings(keep_hours=0, keep_epochs=keep_epochs) if upkeep else None
    with ViewHarness(SCHEMA, upkeep=settings) as harness:
        harness.apply([Insert(TABLE, {"id": key, "holder": f"holder {key}", "balance": 0}) for key in range(rows)])
        for found in run_epochs(harness, epochs, changes, every):
            click.echo(orjson.dumps({**asdict(found), **asdict(footprint(harness))}).decode())


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file()]


def _took_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
