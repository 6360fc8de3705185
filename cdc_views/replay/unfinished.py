"""Rebuilds under way: a file each, locked by the process that works on it.

A rebuild that was killed leaves its file unlocked. The next one that asks for the same goes on with it;
any other removes what it has left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson

from cdc_views.engine.tables import REBUILT
from cdc_views.errors import RebuildRunning
from cdc_views.store.control import read_control

_FOLDER: Final = ".rebuilds"


@dataclass(frozen=True)
class Unfinished:
    """A rebuild; `id` is the end of its shadows' paths, and what its swap is known by."""

    id: str
    names: list[str]
    origin: str
    generation: str
    pid: int


@contextmanager
def claimed(root: Path, names: Sequence[str], origin: str, generation: str) -> Iterator[tuple[Unfinished, bool]]:
    """Hold the rebuild of these tables: one that was left, or a new one; the second value says which.

    Others that were left are removed. Raises RebuildRunning.
    """
    folder = root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted: tuple[Unfinished, int] | None = None
    try:
        for file in sorted(folder.glob("*.json")):
            descriptor = _locked(file)
            if descriptor is None:
                _refuse_same(_read(file), names)
                continue
            found = _read(file)
            if wanted is None and (found.names, found.origin, found.generation) == (list(names), origin, generation):
                wanted = found, descriptor
                continue
            remove(root, found.id)
            os.close(descriptor)
        is_new = wanted is None
        if wanted is None:
            made = Unfinished(uuid4().hex[:8], list(names), origin, generation, os.getpid())
            wanted = made, _made(folder, made)
        yield wanted[0], not is_new
    finally:
        if wanted is not None:
            os.close(wanted[1])


def finish(root: Path, rebuild: str) -> None:
    """Forget a rebuild whose tables are published."""
    _file(root, rebuild).unlink(missing_ok=True)


def remove(root: Path, rebuild: str) -> None:
    """Remove a rebuild and its tables; those that were ever published are kept for readers and rollbacks."""
    kept = {table.path for record in read_control(root) if record.published_at for table in record.tables.values()}
    for table in [*root.glob(f"mirrors/*/*/*{REBUILT}{rebuild}"), *root.glob(f"views/*/*{REBUILT}{rebuild}")]:
        if str(table.relative_to(root)) not in kept:
            shutil.rmtree(table)
    finish(root, rebuild)


def _refuse_same(running: Unfinished, names: Sequence[str]) -> None:
    if both := sorted(set(running.names) & set(names)):
        raise RebuildRunning(
            f'table "{both[0]}" is being made anew by process {running.pid}', hint="wait for it, or stop that process"
        )


def _locked(file: Path) -> int | None:
    descriptor = os.open(file, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _made(folder: Path, rebuild: Unfinished) -> int:
    draft = folder / f".{rebuild.id}.draft"
    draft.write_bytes(orjson.dumps(asdict(rebuild)))
    descriptor = _locked(draft)
    assert descriptor is not None
    draft.rename(_file(folder.parent, rebuild.id))
    return descriptor


def _read(file: Path) -> Unfinished:
    return Unfinished(**orjson.loads(file.read_bytes()))


def _file(root: Path, rebuild: str) -> Path:
    return root / _FOLDER / f"{rebuild}.json"
