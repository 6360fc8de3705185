"""The delta-rs loop: consume for a while, keep the last event of each key, merge table by table. No Spark.

    python -m bench.deltars --project FOLDER --out FOLDER [--until-end]

delta-rs writes no deletion vectors, so its tables lack that setting. Everything else is as in our tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
import orjson
import pyarrow as pa
from deltalake import DeltaTable, Schema

from bench.baseline import Baseline, result
from cdc_views.capture.types import column_types
from cdc_views.log.kafka.reader import Reader
from cdc_views.source.catalog import SourceTable
from cdc_views.store.delta_log import table_properties

INTERVAL_S: Final = 0.2

_DELETED: Final = "_deleted"
_NOT_WRITTEN: Final = "delta.enableDeletionVectors"

Last = dict[bytes, bytes | None]  # the last event of each key; None is a tombstone


class DeltaRsLoop:
    """Reads all topics of a baseline from the beginning, and merges batch by batch."""

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._stores = {topic: self._create(table) for topic, table in baseline.tables.items()}

    def run(self, *, until_end: bool) -> float:
        """Merge for ever, or up to the current end of the topics. Returns the elapsed seconds."""
        ends = self._baseline.end() if until_end else None
        began = time.monotonic()
        with closing(Reader(self._baseline.settings.log)) as reader:
            reader.assign(self._baseline.begin())
            while ends is None or not reader.reached(ends):
                for topic, last in self._consume(reader).items():
                    self._merge(topic, last)
        return time.monotonic() - began

    def _consume(self, reader: Reader) -> dict[str, Last]:
        """The last event of each key that arrives within the interval, by topic."""
        found: dict[str, Last] = {}
        deadline = time.monotonic() + INTERVAL_S
        while (left := deadline - time.monotonic()) > 0:
            for message in reader.read(left):
                found.setdefault(str(message.topic()), {})[bytes(message.key() or b"")] = message.value()
        return found

    def _merge(self, topic: str, last: Last) -> None:
        table = self._baseline.tables[topic]
        keys = " AND ".join(f't."{column}" = s."{column}"' for column in table.key)
        merge = self._stores[topic].merge(rows_of(table, last), predicate=keys, source_alias="s", target_alias="t")
        (
            merge.when_matched_delete(f"s.{_DELETED}")
            .when_matched_update_all(f"NOT s.{_DELETED}", except_cols=[_DELETED])
            .when_not_matched_insert_all(f"NOT s.{_DELETED}", except_cols=[_DELETED])
            .execute()
        )

    def _create(self, table: SourceTable) -> DeltaTable:
        spec = self._baseline.spec(table)
        properties = {
            name: value
            for name, value in table_properties(spec).items()
            if name.startswith("delta.") and name != _NOT_WRITTEN
        }
        folder = self._baseline.folder / spec.path
        folder.mkdir(parents=True)
        return DeltaTable.create(str(folder), Schema.from_arrow(spec.schema), configuration=properties)


def rows_of(table: SourceTable, last: Mapping[bytes, bytes | None]) -> pa.Table:
    """The rows after the last events. A deleted row has its key only, and a mark."""
    types = column_types(table)
    rows = [_row(types, key, value) for key, value in last.items()]
    arrays = [kind.array(kind.values([row.get(name) for row, _ in rows])) for name, kind in types.items()]
    marks = pa.array([deleted for _, deleted in rows], pa.bool_())
    return pa.table([*arrays, marks], names=[*types, _DELETED])


def _row(types: Iterable[str], key: bytes, value: bytes | None) -> tuple[dict[str, Any], bool]:
    event = None if value is None else orjson.loads(value)
    if event is None or event["op"] == "d":
        return orjson.loads(key), True
    return event["after"], False


@click.command()
@click.option("--project", required=True, type=click.Path(path_type=Path), help="Project that names the topics.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the Delta tables.")
@click.option("--until-end", is_flag=True, help="Stop at the current end of the topics.")
def main(project: Path, out: Path, until_end: bool) -> None:
    """Mirror the topics of a project with delta-rs's merge."""
    loop = DeltaRsLoop(Baseline.of(project, out))
    click.echo(result(reading_s=round(loop.run(until_end=until_end), 3)))


if __name__ == "__main__":
    main()
