"""A generation: one unbroken history of the source and its log.

It is told by facts that change when the history breaks: the system identifier and timeline of
Postgres, the slot, and the ids of the topics. The facts are written into the control log; a start
that finds others refuses to go on, since offsets and LSNs of two histories cannot be compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdc_views.engine.epoch.steps import MARKER
from cdc_views.errors import RESET, BadConfig, LogDiscontinuity, SchemaChanged
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceIdentity, SourceTable
from cdc_views.store.control.control_log import ControlRecord

PLACEHOLDER: Final = "placeholder"
"""In the detail of a takeover: what the log's events have for unchanged values (log/placeholder.py)."""


def generation_facts(
    identity: SourceIdentity, slot: str, topics: dict[str, Any], sources: Sequence[SourceTable]
) -> dict[str, Any]:
    """What tells this generation from another, and the columns that its mirrors were made with, as JSON."""
    return {
        **_source_facts(identity, slot),
        "topics": topics,
        "tables": {str(source.name): source.mirror_fingerprint() for source in sources},
    }


def _source_facts(identity: SourceIdentity, slot: str) -> dict[str, Any]:
    return {"system_identifier": identity.system_identifier, "timeline": identity.timeline, "slot": slot}


def generation_name(facts: dict[str, Any]) -> str:
    """Twelve hexadecimal digits; part of the paths of mirrors."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def known_placeholder(takeover: ControlRecord | None) -> str | None:
    """The placeholder of the log that the mirrors were made from; None if there are none yet."""
    return None if takeover is None else takeover.detail.get(PLACEHOLDER)


def require_same_source(known: Mapping[str, Any], identity: SourceIdentity, slot: str) -> None:
    """Raises LogDiscontinuity, naming the fact that is another one now."""
    for fact, found in _source_facts(identity, slot).items():
        if known[fact] != found:
            raise LogDiscontinuity(
                f'source has {fact.replace("_", " ")} "{found}", wanted "{known[fact]}"',
                hint=f"this is not the database that the warehouse was made from; correct source.dsn, or {RESET}",
            )


def require_not_behind(end: Lsn, marker: int, published: ControlRecord | None) -> None:
    """The source, whose WAL ends there, has all that was published, its last marker too. Raises LogDiscontinuity.

    A restored server has the same identifier and may have the same timeline; Debezium would wait, and skip what comes
    until the WAL is where it was. Once the new WAL has passed the published position, only the marker tells.
    """
    if published is None:
        return
    hint = f"it goes on from an earlier state of itself (a restore); {RESET}"
    if published.position is not None and end < published.position:
        raise LogDiscontinuity(
            f"source is at position {end}, wanted at least the published {published.position}", hint=hint
        )
    if marker < published.detail.get(MARKER, 0):
        raise LogDiscontinuity(
            f"source is at marker {marker}, wanted at least the published {published.detail[MARKER]}", hint=hint
        )


def require_same_tables(known: Mapping[str, Any] | None, sources: Sequence[SourceTable]) -> None:
    """The mirrors have the columns that they were made with. Raises SchemaChanged, BadConfig for a new table."""
    for source in sources if known else ():
        assert known is not None
        fingerprint = known["tables"].get(str(source.name))
        if fingerprint is None:
            raise BadConfig(
                f'table "{source.name}" was not in this project when its warehouse was made',
                hint=f"{RESET}: it takes the new tables in",
            )
        if fingerprint != source.mirror_fingerprint():
            raise SchemaChanged(
                f'table "{source.name}" was changed since its mirror was made, or a column has another form in it now, '
                "by a setting (source.text_columns, source.decimal_columns) or by this version of cdc_views",
                hint=RESET,
            )
