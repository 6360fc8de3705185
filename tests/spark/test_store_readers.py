"""A random history of commits is the same to every reader of Delta."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

from cdc_views.store.reading import read_table, scan
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

SCHEMA = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("cents", pa.decimal128(10, 2)), ("tags", pa.list_(pa.string()))]
)
SPEC = TableSpec("public.t", "mirrors/public/t/1", SCHEMA, ("id",))
STEPS = 6

Model = dict[int, dict[str, Any]]


def random_row(key: int, chance: random.Random) -> dict[str, Any]:
    tags = chance.choice([None, [], ["a", None], ["ü"]])
    return {
        "id": key,
        "text": chance.choice([None, "", "x" * 50, "é"]),
        "cents": chance.choice([None, 1, 250]),
        "tags": tags,
    }


def random_step(model: Model, chance: random.Random) -> tuple[Changes, Model]:
    gone = chance.sample(sorted(model), k=min(len(model), chance.randrange(6)))
    upserts = {key: random_row(key, chance) for key in chance.sample(range(60), k=15) if key not in gone}
    deleted = pa.table({"id": pa.array(gone, pa.int64())}) if gone else None
    after = {key: row for key, row in model.items() if key not in gone} | upserts
    return Changes(deleted, pa.Table.from_pylist(list(upserts.values()), SCHEMA), all_new=not model), after


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> tuple[Path, Warehouse, list[Model]]:
    """A table and what each of its versions must hold."""
    root, chance = tmp_path_factory.mktemp("history"), random.Random(20261121)
    warehouse, models = Warehouse(root, spark), [Model()]
    warehouse.create(SPEC)
    for base in range(STEPS):
        changes, after = random_step(models[-1], chance)
        warehouse.commit(SPEC, base, changes, Stamp(base + 1, base + 1, "0/1"))
        models.append(after)
    return root, warehouse, models


def by_duckdb(root: Path, warehouse: Warehouse, version: int) -> pa.Table:
    with duckdb.connect() as database:
        database.register("t", scan(root, SPEC.path, version))
        return database.sql("SELECT * FROM t").to_arrow_table()


READERS: dict[str, Callable[[Path, Warehouse, int], pa.Table]] = {
    "spark": lambda root, warehouse, version: warehouse.frame(SPEC.path, version).toArrow(),
    "delta-rs": lambda root, warehouse, version: read_table(root, SPEC.path, version),
    "polars": lambda root, warehouse, version: polars.read_delta(str(root / SPEC.path), version=version).to_arrow(),
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("reader", READERS)
def test_every_version_read_by(reader: str, history: tuple[Path, Warehouse, list[Model]]) -> None:
    root, warehouse, models = history
    for version, model in enumerate(models):
        found = READERS[reader](root, warehouse, version).cast(SCHEMA).to_pylist()
        wanted = pa.Table.from_pylist(list(model.values()), SCHEMA).to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])


def test_history_has_deletion_vectors(history: tuple[Path, Warehouse, list[Model]]) -> None:
    root, _, _ = history
    assert list((root / SPEC.path).glob("deletion_vector_*.bin"))
