"""Removes a capture: its connector with the stored offsets, its slot, its topics.

Each part is removed even if another part cannot be, since a server may be gone for good. What has its name and is that
of another project is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from cdc_views import faults
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import Capture
from cdc_views.errors import CdcViewsError
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.ownership import other_owner
from cdc_views.log.kafka.topics import admin_client, delete_named_topics, topics_of
from cdc_views.source.connection import connect
from cdc_views.source.slot import drop_slot, read_slot
from cdc_views.store.control import TakeoverDetail, read_control

# A walsender whose client was killed notices that only at its next write.
LET_GO_S: Final = 90.0


@dataclass
class CaptureRemoval:
    """What could not be removed. `tell` gets each part that was removed or left, with the reason, as it happens."""

    tell: Callable[[str], None]
    left: list[str] = field(default_factory=list)

    def removed(self, what: str) -> None:
        """Report that something was removed."""
        self.tell(f"removed {what}")

    def kept(self, what: str, why: str) -> None:
        """Report that something is not ours."""
        self.tell(f"kept: {what}, which is that of another project: {why}")

    @contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """Run the removal of something; an error of ours means that it is left."""
        try:
            yield
        except CdcViewsError as error:
            self.left.append(what)
            self.tell(f"left {what}: {type(error).__name__}: {error.message}")


def remove_capture(base: Settings, capture: Capture, removal: CaptureRemoval) -> None:
    """Remove what exists of a capture. What cannot be removed is added to `removal.left`."""
    was_read = _was_read(base, capture)
    _remove_connector(base, capture, removal, was_read)
    faults.point("removal.after_connector")
    _remove_slot(base, capture, removal)
    faults.point("removal.after_slot")
    _remove_topics(base, capture, removal, was_read)
    faults.point("removal.after_topics")


def _remove_connector(base: Settings, capture: Capture, removal: CaptureRemoval, was_read: bool) -> None:
    what = f'connector "{capture.connector}" and its stored offsets'
    with removal.trying(what):
        worker = ConnectClient(base.log.connect_url)
        if (other := other_owner(capture.settings(base), may_have_moved=was_read)) is not None:
            removal.kept(what, other)
        elif worker.exists(capture.connector):
            worker.delete_connector(capture.connector)
            removal.removed(what)


def _remove_slot(base: Settings, capture: Capture, removal: CaptureRemoval) -> None:
    what = f'replication slot "{capture.slot}"'
    with removal.trying(what), connect(base.source.dsn.get_secret_value()) as connection:
        slot, ours = read_slot(connection, capture.slot), connection.info.dbname
        if slot is not None and slot.database != ours:
            removal.kept(what, f'it is of database "{slot.database}", wanted "{ours}"')
        elif slot is not None:
            drop_slot(connection, capture.slot, limit_s=LET_GO_S)
            removal.removed(what)


def _remove_topics(base: Settings, capture: Capture, removal: CaptureRemoval, was_read: bool) -> None:
    settings, what = capture.log(base), f'topics "{capture.topic_prefix}.*"'
    with removal.trying(what):
        # Topics that an engine has read are ours: no start goes on beside the connector of another project.
        if not was_read and (other := other_owner(capture.settings(base), may_have_moved=False)) is not None:
            removal.kept(what, other)
            return
        names = topics_of(settings, capture.table_names)
        if names:
            delete_named_topics(admin_client(settings), names)
        for name in names:
            removal.removed(f'topic "{name}"')


def _was_read(base: Settings, capture: Capture) -> bool:
    """Whether an engine has read the capture."""
    takeovers = (record for record in read_control(base.warehouse) if record.kind == "takeover")
    details = map(TakeoverDetail.read, takeovers)
    return any(each.source is not None and each.capture == capture.number for each in details)
