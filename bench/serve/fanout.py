"""A process that writes posts of the author whom everybody follows, and waits until followers can read them.

    python -m bench.serve.fanout --warehouse FOLDER --followers 10000 --posts 3 --out FILE

FILE gets one line of JSON: the seconds from each commit until the post is on the first page of the first, the middle
and the last follower. An epoch has all of it or nothing, and the comparison at the end of the benchmark has every
follower.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

import click
import psycopg

import cdc_views
from bench.load import DSN_VARIABLE
from bench.serve.data import STAR
from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.serve.reader import WarehouseReader

LIMIT_S: Final = 600.0
_POLL_S: Final = 0.02
_POST: Final = (
    "INSERT INTO posts (author_id, title, body, created_at) VALUES (%s, 'news', 'news', clock_timestamp()) RETURNING id"
)


def readable_s(source: psycopg.Connection[Any], reader: WarehouseReader, followers: int) -> float:
    """Commit a post; return the seconds until it can be read. Raises NotRunning."""
    row = source.execute(_POST, (STAR,)).fetchone()
    began = time.monotonic()
    assert row is not None
    owners = [1, (1 + followers) // 2, followers]

    def is_readable() -> bool:
        pages = [reader.timeline("home_timeline", owner).entries for owner in owners]
        return all(row[0] in [entry["post_id"] for entry in entries] for entries in pages)

    if not wait_until(is_readable, LIMIT_S, _POLL_S):
        raise NotRunning(f"a post was not readable within {LIMIT_S:.0f} s")
    return time.monotonic() - began


@click.command()
@click.option("--warehouse", required=True, type=click.Path(path_type=Path), help="Warehouse of cdc_views.")
@click.option("--followers", required=True, type=int, help="Followers of the author.")
@click.option("--posts", required=True, type=int, help="How many posts to write, one after the other.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File for the result.")
def main(warehouse: Path, followers: int, posts: int, out: Path) -> None:
    """Write posts. The DSN is in CDC_VIEWS_BENCH_DSN."""
    reader = cdc_views.open(warehouse)
    with psycopg.connect(os.environ[DSN_VARIABLE], autocommit=True) as source:
        took_s = [round(readable_s(source, reader, followers), 2) for _ in range(posts)]
    out.write_text(json.dumps(took_s) + "\n")


if __name__ == "__main__":
    main()
