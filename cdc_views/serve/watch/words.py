"""Durations, sizes and the state of the slot in words."""

from __future__ import annotations

from cdc_views.serve.watch.watch import SlotState
from cdc_views.source.slot import loss


def in_words(seconds: float) -> str:
    """A duration for people: 4.2 s, 42 s, 12 min, 3.4 h, 2.1 days."""
    for unit_s, name in ((86400, "days"), (3600, "h")):
        if seconds >= unit_s:
            return f"{seconds / unit_s:.1f} {name}"
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def size_in_words(count: float) -> str:
    """A number of bytes for people."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} bytes"


def kept_wal(slot: SlotState) -> str:
    """What the server keeps for the slot, and when its limit will be reached, as the end of a sentence."""
    kept = f"Postgres keeps {size_in_words(slot.backlog.kept_bytes)} of WAL for it"
    if slot.backlog.invalidation not in (None, "wal_removed"):
        return loss(slot.backlog.invalidation)
    if slot.backlog.limit_bytes is None:
        return f"{kept}, without a limit (max_slot_wal_keep_size)"
    limit = f"the limit of {size_in_words(slot.backlog.limit_bytes)}"
    if slot.backlog.wal_status == "lost":
        return f"Postgres has removed WAL that it needs: {limit} was reached"
    if slot.seconds_to_limit is None:
        return f"{kept}, and {limit} is not near"
    return f"{kept}, and {limit} will be reached in about {in_words(slot.seconds_to_limit)}"
