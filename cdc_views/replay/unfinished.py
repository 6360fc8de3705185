"""Rebuilds in progress: one file each, locked by the process that works on it.

A rebuild that was killed leaves its file unlocked. The next rebuild of the same tables from the same origin continues
it; any other rebuild removes its tables.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson

from cdc_views.engine.service.holder import holder
from cdc_views.engine.service.requests import Requests
from cdc_views.engine.tables import SHADOW_SEPARATOR
from cdc_views.engine.upkeep.rebuilds import FOLDER, Unfinished, locked, read_rebuild, rebuild_files
from cdc_views.errors import RebuildRunning
from cdc_views.store.control import MIRROR_FOLDER, VIEW_FOLDER, read_control
from cdc_views.store.storage import durable

_NOT_COMPARED: Final = b'"compared":false'
_COMPARED: Final = b'"compared":true'


@dataclass(frozen=True)
class WantedRebuild:
    """A requested rebuild: the names of its tables, its origin, and the generation of the source.

    `from_epoch` is the epoch of the origin, if it has one.
    """

    names: Sequence[str]
    origin: str
    generation: str
    swap: bool
    from_epoch: int | None = None

    def is_met_by(self, left: Unfinished) -> bool:
        """Whether a killed rebuild can be continued for this request."""
        origin = (self.origin, self.from_epoch, self.generation)
        same = (left.names, left.origin, left.from_epoch, left.generation) == (tuple(self.names), *origin)
        return same and (self.swap or not left.compared)


@contextmanager
def claimed(root: Path, wanted: WantedRebuild, note: Callable[[str], None]) -> Iterator[tuple[Unfinished, bool]]:
    """Hold the wanted rebuild for the duration of the block; the second value says whether it continues a killed one.

    Other killed rebuilds are removed, which `note` reports. Raises RebuildRunning.
    """
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ours: tuple[Unfinished, int] | None = None
    try:
        for file in rebuild_files(root):
            descriptor = locked(file)
            if descriptor is None:
                _refuse_same(file, wanted)
                continue
            left = read_rebuild(file)
            if left is None:
                os.close(descriptor)
                continue
            # The engine may still be working on a request of the killed process.
            Requests(root).settle(left.id, lambda: holder(root) is not None)
            if ours is None and wanted.is_met_by(left):
                ours = left, descriptor
                continue
            note(f"removing rebuild {left.id} of {', '.join(left.names)}, which was not finished")
            remove(root, left.id)
            os.close(descriptor)
        is_new = ours is None
        if ours is None:
            made = Unfinished(
                uuid4().hex[:8],
                tuple(wanted.names),
                wanted.origin,
                wanted.generation,
                os.getpid(),
                from_epoch=wanted.from_epoch,
            )
            ours = made, _made(folder, made)
        yield ours[0], not is_new
    finally:
        if ours is not None:
            os.close(ours[1])


def mark_compared(root: Path, rebuild: Unfinished) -> None:
    """Remember that the report was printed."""
    # Written in place, since the lock is on this file and not on its name. Never shorter: others read it meanwhile.
    file = _file(root, rebuild.id)
    with file.open("r+b") as stream:
        stream.seek(file.read_bytes().index(_NOT_COMPARED))
        stream.write(_COMPARED.ljust(len(_NOT_COMPARED)))


def finish(root: Path, rebuild: str) -> None:
    """Forget a rebuild whose tables are published."""
    _file(root, rebuild).unlink(missing_ok=True)


def remove(root: Path, rebuild: str) -> None:
    """Remove a rebuild and its tables. Tables that were ever published are kept for readers and rollbacks."""
    kept = {table.path for record in read_control(root) if record.published_at for table in record.tables.values()}
    for table in [
        *root.glob(f"{MIRROR_FOLDER}*/*/*{SHADOW_SEPARATOR}{rebuild}"),
        *root.glob(f"{VIEW_FOLDER}*/*{SHADOW_SEPARATOR}{rebuild}"),
    ]:
        if str(table.relative_to(root)) not in kept:
            shutil.rmtree(table, ignore_errors=True)  # an engine may be removing it as well
    finish(root, rebuild)


def _refuse_same(file: Path, wanted: WantedRebuild) -> None:
    running = read_rebuild(file)
    if running is None:
        return
    if both := sorted(set(running.names) & set(wanted.names)):
        raise RebuildRunning(
            f'table "{both[0]}" is being rebuilt by process {running.pid}', hint="wait for it, or stop that process"
        )


def _made(folder: Path, rebuild: Unfinished) -> int:
    draft = folder / f".{rebuild.id}.draft"
    durable.write(draft, orjson.dumps(asdict(rebuild)))
    descriptor = locked(draft)
    assert descriptor is not None
    draft.rename(_file(folder.parent, rebuild.id))
    durable.sync(folder)
    return descriptor


def _file(root: Path, rebuild: str) -> Path:
    return root / FOLDER / f"{rebuild}.json"
