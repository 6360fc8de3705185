"""What a version of a table records about its origin, and the actions that our versions consist of."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from cdc_views.store.delta_log.entries import ENGINE, Action, Add, commit_info
from cdc_views.store.delta_log.features import protocol, table_properties
from cdc_views.store.delta_log.schema import TableSpec, delta_schema

RESTORE: Final = "RESTORE"  # the operation of a version that rolls back others, as Spark names it


@dataclass(frozen=True)
class Stamp:
    """The origin of a version: the attempt of an epoch that wrote it."""

    epoch: int
    attempt: int
    position: str

    def text(self) -> str:
        """The userMetadata of the version."""
        return orjson.dumps({"epoch": self.epoch, "attempt": self.attempt, "position": self.position}).decode()

    @classmethod
    def parse(cls, text: object) -> Stamp | None:
        """The stamp in the userMetadata of a version; None if there is none of ours."""
        try:
            fields = orjson.loads(text) if isinstance(text, str) else None
        except orjson.JSONDecodeError:
            return None
        if not isinstance(fields, dict) or not fields.keys() >= {"epoch", "attempt", "position"}:
            return None
        return cls(fields["epoch"], fields["attempt"], fields["position"])


@dataclass(frozen=True)
class TableCommit:
    """One version of a table, from its log entry.

    `changes_content`: rows, columns or settings differ from the previous version. Upkeep changes none of them.
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
    """The rows in the data files that a version added. A file that only got a deletion vector is not new."""
    kept = {action["remove"]["path"] for action in actions if "remove" in action}
    added = [action["add"] for action in actions if "add" in action and action["add"]["path"] not in kept]
    return sum(orjson.loads(file.get("stats") or "{}").get("numRecords", 0) for file in added)


def creation(spec: TableSpec) -> list[Action]:
    """Version 0 of a table. Raises UnsupportedType.

    We write it ourselves because delta-rs adds the feature variantType to every table with deletion vectors, and
    Spark writes a version for each setting and chooses features of its own.
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
    """A version without rows on top of `base`, whose transaction shuts out older attempts."""
    return head(app, base, stamp, "FENCE")


def head(app: str, base: int, stamp: Stamp, operation: str, *, is_append: bool = False) -> list[Action]:
    """The first actions of every version of ours on top of `base`: its origin and its transaction."""
    transaction = {"appId": app, "version": stamp.attempt, "lastUpdated": time.time_ns() // 1_000_000}
    return [origin(base, stamp, operation, is_append=is_append), {"txn": transaction}]


def rearrangement(base: int, stamp: Stamp) -> list[Action]:
    """The first action of a version that moves rows to other files. It belongs to no attempt: no transaction."""
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


def removal(add: Add, *, data_change: bool = False) -> dict[str, Any]:
    """The action that removes a file from the table."""
    kept = {name: add[name] for name in ("path", "size", "tags", "stats", "deletionVector") if add.get(name)}
    now_ms = time.time_ns() // 1_000_000
    return {"remove": {**kept, "deletionTimestamp": now_ms, "dataChange": data_change, "extendedFileMetadata": True,
                       "partitionValues": add.get("partitionValues") or {}}}  # fmt: skip
