"""The details of control records, one model for each kind of record.

A record keeps its detail as JSON: `read` parses it, `json_fields` makes it. Fields that were not given are not written,
so records of earlier versions and of this one are read alike. A field that a later version adds is ignored. What only
an engine needs of a cut (CutDetail) is apart from what every reader needs (PublishedDetail), which is read often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from cdc_views.base.captured import CapturedSet
from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.metrics import ViewUpdate
from cdc_views.store.control.records import ControlRecord


class _Detail(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def given(cls, **fields: Any) -> Self:
        """A detail with the fields that have a value: neither None nor empty."""
        return cls(**{name: value for name, value in fields.items() if value is not None and value != {}})

    @classmethod
    def read(cls, record: ControlRecord) -> Self:
        """Parse the detail of a record."""
        return cls.model_validate(dict(record.detail))

    def json_fields(self) -> dict[str, Any]:
        """The detail as a record keeps it."""
        return self.model_dump(mode="json", exclude_unset=True)


@dataclass(frozen=True)
class ShadowTable:
    """A table that readers do not see: `version` of `path` holds the log up to the end of `epoch`.

    It may hold later changes too, but none from `position` on.
    """

    path: str
    version: int
    epoch: int
    position: str | None = None


class _WithStopped(_Detail):
    """A detail that has the tables that are stopped, by name."""

    stopped: Mapping[str, StoppedTable] = {}

    @property
    def stopped_tables(self) -> dict[TableName, StoppedTable]:
        """The same, by table."""
        return {TableName.parse(name): why for name, why in self.stopped.items()}


class CutDetail(_WithStopped):
    """What an intent and a published record say of their cut, besides the record's own columns.

    `marker` is the number of the marker that ended it, `captured` describes the captured tables at its position,
    `leader_epochs` has the leader epoch of each partition at its end.
    """

    marker: int | None = None
    captured: CapturedSet | None = None
    leader_epochs: Mapping[str, int] = {}


class IntentDetail(CutDetail):
    """The detail of an intent: everything that a recovery needs to repeat the attempt.

    `start` has the first offset of each partition. Spark reads the tables of `bulk`. `swaps` is the kind of the record
    that the attempt will publish, if it swaps tables. `quarantine` is the version of the quarantine that it starts
    from. `retries` is the parked event whose key is retried; empty for all parked events.
    """

    start: Mapping[str, int] = {}
    bulk: tuple[str, ...] = ()
    swaps: Literal["swap", "rollback"] | None = None
    quarantine: int | None = None
    retries: tuple[str | int, ...] | None = None


class PublishedDetail(_WithStopped):
    """The detail of a published record, which has a CutDetail too.

    `changes` and `snapshot_rows` count the events of each mirror, `log_bytes` is the size of its records in the log,
    `failures` has the reason of each failed view, `parked` and `discarded` count keys and events by table. `stage_ms`
    are milliseconds by stage, `ways` the execution path of each step by table, `view_work` what the update of each view
    cost and why it was computed in full, `upkeep` what upkeep did since the last record.
    `building` says of each view that is built beside the epochs how far it is. `request` is the id of the request that
    the record answers, `replaced` the tables that a swap has replaced.
    """

    changes: Mapping[str, int] = {}
    snapshot_rows: Mapping[str, int] = {}
    log_bytes: Mapping[str, int] = {}
    failures: Mapping[str, str] = {}
    parked: Mapping[str, int] = {}
    discarded: Mapping[str, int] = {}
    stage_ms: Mapping[str, int] = {}
    ways: Mapping[str, Mapping[str, str]] = {}
    view_work: Mapping[str, ViewUpdate] = {}
    upkeep: Mapping[str, int | float] = {}
    building: Mapping[str, str] = {}
    request: str | None = None
    replaced: Mapping[str, ShadowTable] = {}


@dataclass(frozen=True)
class KeptView:
    """How an engine keeps a view, for readers, who have neither view files nor Spark.

    `definition` is the SELECT as it is written, `sql` with what its kind adds, `options` are those of WITH. The rest is
    what `cdc-views explain` shows: `key` is None if rows are told apart by their content, `steps` says what the query
    does, `internal` has the SELECT of each internal view, `lookups` says what is looked up when an input changes.
    """

    definition: str
    sql: str
    strategy: str
    reason: str
    key: tuple[str, ...] | None
    key_reason: str
    inputs: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    internal: Mapping[str, str] = field(default_factory=dict)
    lookups: tuple[str, ...] = ()


class TakeoverDetail(_Detail):
    """The detail of a takeover by an engine; that of a rollback or a test may be empty.

    `source` has the facts of the generation (engine/capture/generation.py), `placeholder` what the log's events have
    for unchanged values, `views` the hash of each view's text, `strategies` the strategy of each view and `kept` how it
    is kept, `tables` each table as its mirror was made of it, and `capture` the number of the capture that the writer
    reads.
    """

    source: Mapping[str, Any] | None = None
    placeholder: str | None = None
    views: Mapping[str, str] = {}
    strategies: Mapping[str, str] = {}
    kept: Mapping[str, KeptView] = {}
    tables: Mapping[str, Mapping[str, Any]] = {}
    capture: int = 1


@dataclass(frozen=True)
class CaptureNames:
    """The names of one capture, and its tables as `schema.table`."""

    number: int
    slot: str
    topic_prefix: str
    connector: str
    tables: tuple[str, ...]


class ResetDetail(_Detail):
    """The detail of a reset: the capture that becomes current, and the captures still to be removed.

    `facts` describe the source when the capture was started. `is_done` means that the capture's first epoch was
    published and the removal of the others was tried.
    """

    capture: CaptureNames
    left: tuple[CaptureNames, ...]
    facts: Mapping[str, Any]
    is_done: bool = False


class QuarantineDetail(_Detail):
    """The detail of a record of kind `quarantine`: events and their new states, or how many were forgotten."""

    events: tuple[tuple[str, int, int, str], ...] = ()
    forgotten: int | None = None
    request: str | None = None


def request_of(record: ControlRecord) -> str | None:
    """The id of the request that a record answers, if it answers one."""
    found = record.detail.get("request")
    return None if found is None else str(found)


# The functions below do not parse the detail, since they are asked of every record of a log.
def updates_view(record: ControlRecord, view: str) -> bool:
    """Whether the record has what the update of a view cost."""
    return view in record.detail.get("view_work", ())


def changes_mirror(record: ControlRecord, name: str) -> bool:
    """Whether the record has changes of a mirror."""
    return name in record.detail.get("changes", ())


def has_replaced(record: ControlRecord) -> bool:
    """Whether the record is of a swap that has replaced tables."""
    return "replaced" in record.detail
