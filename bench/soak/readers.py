"""A reader that never stops: it pins the newest or an earlier epoch, and reads all of its tables."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random
from typing import Final, Self

import pyarrow.compute as pc

from bench.soak.world import BANK_TOTAL
from cdc_views.errors import NothingPublished
from cdc_views.store.control import PUBLISHING, ControlRecord, last_published, read_control
from cdc_views.store.reading import read_table

OLDER: Final = 100  # number of epochs back; upkeep keeps more
_REST: Final = 9  # times the duration of a read; more readers would take CPU from the engine
_LEAST_REST_S: Final = 0.1


class PinnedReader(threading.Thread):
    """Reads while a block runs. `broken`: epochs with another total of the bank. `failures`: what could not be read."""

    def __init__(self, warehouse: Path, seed: int) -> None:
        super().__init__(name="reader", daemon=True)
        self.readings = 0
        self.broken: list[int] = []
        self.failures: list[str] = []
        self._warehouse = warehouse
        self._random = Random(seed)
        self._stopped = threading.Event()

    def run(self) -> None:
        took_s = 0.0
        while not self._stopped.wait(max(_REST * took_s, _LEAST_REST_S)):
            began = time.monotonic()
            try:
                self._read(self._pinned())
            except NothingPublished:
                continue
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            finally:
                took_s = time.monotonic() - began

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End after the current read."""
        self._stopped.set()
        self.join()

    def _pinned(self) -> ControlRecord:
        if self._random.random() < 0.5:
            return last_published(self._warehouse)
        published = [record for record in read_control(self._warehouse) if record.kind in PUBLISHING]
        if not published:
            raise NothingPublished("there is no epoch yet")
        return self._random.choice(published[-OLDER:])

    def _read(self, record: ControlRecord) -> None:
        tables = {
            name: read_table(self._warehouse, table.path, table.version)
            for name, table in record.tables.items()
            if table.status not in ("failed", "building")
        }
        sums = [pc.sum(tables[f"public.{name}"]["balance"]).as_py() for name in ("accounts", "savings")]
        [total] = tables["bank"]["total"].to_pylist()
        if sum(sums) != BANK_TOTAL or total != BANK_TOTAL:
            self.broken.append(record.epoch)
        self.readings += 1
