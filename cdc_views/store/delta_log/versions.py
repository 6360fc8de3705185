"""What a version of a table says of its origin, and the versions that hold no rows: creation and fence."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cdc_views.store.delta_log.entries import ENGINE, Action, commit_info
from cdc_views.store.delta_log.features import protocol, table_properties
from cdc_views.store.delta_log.schema import TableSpec, delta_schema

RESTORE: Final = "RESTORE"  # the operation of a version that takes back others, Spark's name for it


@dataclass(frozen=True)
class Stamp:
    """What a version says of its origin: the attempt of an epoch that wrote it."""

    epoch: int
    attempt: int
    position: str

    def text(self) -> str:
        """The userMetadata of the version."""
        return orjson.dumps({"epoch": self.epoch, "attempt": self.attempt, "position": self.position}).decode()

    @classmethod
    def parse(cls, text: object) -> Stamp | None:
        """None if the text is not of our making."""
        try:
            fields = orjson.loads(text) if isinstance(text, str) else None
        except orjson.JSONDecodeError:
            return None
        if not isinstance(fields, dict) or not fields.keys() >= {"epoch", "attempt", "position"}:
            return None
        return cls(fields["epoch"], fields["attempt"], fields["position"])


@dataclass(frozen=True)
class TableCommit:
    """One version of a table as its log tells it.

    `changes_content`: rows, columns or settings differ from the version before; upkeep does not.
    """

    version: int
    stamp: Stamp | None
    operation: str
    changes_content: bool

    @classmethod
    def of(cls, version: int, actions: Sequence[Action]) -> TableCommit:
        """Read it from the actions of a log entry."""
        info = commit_info(actions)
        return cls(
            version,
            Stamp.parse(info.get("userMetadata")),
            str(info.get("operation", "")),
            any(_changes_content(action) for action in actions),
        )


def _changes_content(action: Action) -> bool:
    if "metaData" in action or "protocol" in action:
        return True
    files: list[Mapping[str, Any]] = [action[kind] for kind in ("add", "remove") if kind in action]
    return any(file.get("dataChange", True) for file in files)


def rows_written(actions: Sequence[Action]) -> int:
    """The rows in the data files that a version added; one that only got a deletion vector is not new."""
    kept = {action["remove"]["path"] for action in actions if "remove" in action}
    added = [action["add"] for action in actions if "add" in action and action["add"]["path"] not in kept]
    return sum(orjson.loads(file.get("stats") or "{}").get("numRecords", 0) for file in added)


def creation(spec: TableSpec) -> list[Action]:
    """Version 0 of a table. Raises UnsupportedType.

    Written here since delta-rs adds the feature variantType to every table with deletion vectors,
    and Spark writes one version per setting and its own choice of features.
    """
    now_ms = time.time_ns() // 1_000_000
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": delta_schema(spec),
        "partitionColumns": [],
        "configuration": table_properties(spec),
        "createdTime": now_ms,
    }
    info = {"timestamp": now_ms, "operation": "CREATE TABLE", "operationParameters": {}, "engineInfo": ENGINE}
    return [{"commitInfo": info}, {"protocol": protocol(spec.layout)}, {"metaData": metadata}]


def fence(app: str, base: int, stamp: Stamp) -> list[Action]:
    """A version without rows whose transaction shuts out older attempts on top of `base`."""
    return head(app, base, stamp, "FENCE")


def head(app: str, base: int, stamp: Stamp, operation: str, *, is_append: bool = False) -> list[Action]:
    """What every version of ours on top of `base` begins with: its origin and its transaction."""
    transaction = {"appId": app, "version": stamp.attempt, "lastUpdated": time.time_ns() // 1_000_000}
    return [origin(base, stamp, operation, is_append=is_append), {"txn": transaction}]


def rearrangement(base: int, stamp: Stamp) -> list[Action]:
    """What a version begins with that moves rows to other files. It is part of no attempt, so has no transaction."""
    return [origin(base, stamp, "OPTIMIZE")]


def origin(base: int, stamp: Stamp, operation: str, *, is_append: bool = False) -> Action:
    """The commitInfo of a version of ours on top of `base`."""
    info = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": operation,
        "operationParameters": {},
        "readVersion": base,
        "isolationLevel": "Serializable",
        "isBlindAppend": is_append,
        "engineInfo": ENGINE,
        "txnId": str(uuid.uuid4()),
        "userMetadata": stamp.text(),
    }
    return {"commitInfo": info}
