"""`cdc-views changes --follow` is killed again and again while epochs are published: nothing is lost or repeated."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cdc_views
from cdc_views.config import FILE_NAME
from tests.unit.published import ORDERS, Published

KILLS = 2
EPOCHS = 5


@contextlib.contextmanager
def publishing(shop: Published, chance: random.Random) -> Iterator[None]:
    """Publish epochs with random changes in a thread, until the block ends."""
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(0.05):
            keys = chance.sample(range(12), 4)
            shop.write(ORDERS, [(key, str(chance.random())) for key in keys[:3]], [(keys[3],)])
            shop.publish()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def started(project: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cdc_views.cli.main", "-C", str(project), "changes", "public.orders", "--json"]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)


def followed(project: Path, token: str) -> list[dict[str, Any]]:
    """Follow, and kill the follower (SIGKILL) once it has printed some lines; returns its whole lines."""
    with started(project, "--follow", "--since", token) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(EPOCHS)]
        process.kill()
        lines += process.stdout.readlines()
    return [json.loads(line) for line in lines if line.endswith("\n")]


def read(project: Path, *options: str) -> list[dict[str, Any]]:
    """The lines of a command that ends by itself."""
    with started(project, *options) as process:
        return [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]


def apply(copy: dict[int, str], line: dict[str, Any]) -> None:
    """Apply a line to a copy of the table; what was there before must be what the line says."""
    for old in [*line["deleted"], *(update["old"] for update in line["updated"])]:
        assert copy.pop(old["id"]) == old["note"]
    for new in [*line["inserted"], *(update["new"] for update in line["updated"])]:
        assert new["id"] not in copy
        copy[new["id"]] = new["note"]


def test_follower_that_is_killed_resumes_from_its_last_token(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("source: {}\n")
    shop = Published(tmp_path / "warehouse")
    shop.write(ORDERS, [(number, "first") for number in range(12)])
    shop.publish()
    [snapshot] = read(tmp_path)
    copy = {row["id"]: row["note"] for row in snapshot["rows"]}
    token, epochs = snapshot["token"], [snapshot["epoch"]]
    with publishing(shop, random.Random(7)):
        for _ in range(KILLS):
            for line in followed(tmp_path, token):
                apply(copy, line)
                token = line["token"]
                epochs.append(line["epoch"])
    for line in read(tmp_path, "--since", token):
        apply(copy, line)
        epochs.append(line["epoch"])
    assert len(epochs) > KILLS * EPOCHS
    assert list(dict.fromkeys(epochs)) == list(range(1, shop.epoch + 1))
    stored = cdc_views.open(shop.root).table("public.orders").arrow().to_pylist()
    assert copy == {row["id"]: row["note"] for row in stored}
