"""A process that looks for the probes: in the index, in the cache and in the timeline of each new epoch.

    python -m bench.serve.watcher --warehouse FOLDER --out FILE

FILE gets the lines of bench/reader.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

import cdc_views
from bench.reader import Sighting
from bench.serve.data import PROBE
from cdc_views.errors import NothingPublished, TableUnavailable, UnknownView, ViewBeingBuilt, WarehouseUnusable
from cdc_views.serve.reader import WarehouseReader

_POLL_S: Final = 0.01
_NOT_YET: Final = (NothingPublished, UnknownView, ViewBeingBuilt, TableUnavailable, WarehouseUnusable)


def sightings(reader: WarehouseReader) -> Iterator[Sighting]:
    """Look for ever; yield what each epoch has."""
    seen = -1
    while True:
        with suppress(*_NOT_YET):
            epoch = reader.epoch()
            if epoch.number != seen:
                (hit,) = epoch.search("post_search", "+probe").hits
                row = epoch.get("product_cache", PROBE)
                (entry,) = epoch.timeline("home_timeline", PROBE).entries
                assert row is not None
                numbers = {"index": number_of(hit.document["title"]), "cache": int(str(row["stock"])),
                           "timeline": number_of(entry["title"])}  # fmt: skip
                yield Sighting(time.time(), numbers, epoch.number)
                seen = epoch.number
        time.sleep(_POLL_S)


def number_of(title: object) -> int:
    """The number in the title of the probe."""
    return int(str(title).split()[1])


@click.command()
@click.option("--warehouse", required=True, type=click.Path(path_type=Path), help="Warehouse of cdc_views.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File for the sightings.")
def main(warehouse: Path, out: Path) -> None:
    """Look for new epochs until the process is stopped."""
    while not warehouse.is_dir():
        time.sleep(_POLL_S)
    with out.open("w") as file:
        for sighting in sightings(cdc_views.open(warehouse)):
            line = {"at": sighting.at, "numbers": sighting.numbers, "epoch": sighting.epoch}
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
