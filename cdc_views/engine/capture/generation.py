"""A generation: one unbroken history of the source and its log.

It is identified by facts that change when the history breaks: the system identifier and timeline of Postgres, the slot,
and the ids of the topics. The facts are stored in the control log. A start that finds other facts refuses to continue,
since offsets and LSNs of two histories cannot be compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_views.base.lsn import Lsn
from cdc_views.errors import RESET, BadConfig, LogDiscontinuity, SchemaChanged
from cdc_views.source.catalog import SourceIdentity, SourceTable
from cdc_views.store.control import ControlRecord, CutDetail, TakeoverDetail


def generation_facts(
    identity: SourceIdentity, slot: str, topics: dict[str, Any], sources: Sequence[SourceTable]
) -> dict[str, Any]:
    """The facts that identify a generation, and the columns that its mirrors were created with, as JSON."""
    return {
        **_source_facts(identity, slot),
        "topics": topics,
        "tables": {str(source.name): source.mirror_fingerprint() for source in sources},
    }


def _source_facts(identity: SourceIdentity, slot: str) -> dict[str, Any]:
    return {"system_identifier": identity.system_identifier, "timeline": identity.timeline, "slot": slot}


def generation_name(facts: dict[str, Any]) -> str:
    """Twelve hexadecimal digits, which are part of the paths of mirrors."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def known_placeholder(takeover: ControlRecord | None) -> str | None:
    """The placeholder of the log that the mirrors were created from; None if there are no mirrors yet."""
    return None if takeover is None else TakeoverDetail.read(takeover).placeholder


def require_same_source(known: Mapping[str, Any], identity: SourceIdentity, slot: str) -> None:
    """Raise LogDiscontinuity, which names the fact, if the source is not the one that the facts describe."""
    for fact, found in _source_facts(identity, slot).items():
        if known[fact] != found:
            raise LogDiscontinuity(
                f'source has {fact.replace("_", " ")} "{found}", wanted "{known[fact]}"',
                hint=f"this is not the database that the warehouse was created from; correct source.dsn, or {RESET}",
            )


def require_not_behind(end: Lsn, marker: int, published: ControlRecord | None) -> None:
    """Raise LogDiscontinuity if the source lacks something that was published.

    `end` is the end of the source's WAL, and `marker` its last marker. A restored server has the same identifier and
    may have the same timeline; Debezium would wait, and skip all changes until the WAL is where it was. Once the new
    WAL has passed the published position, only the marker shows the restore.
    """
    if published is None:
        return
    hint = f"it continues from an earlier state of itself (a restore); {RESET}"
    if published.position is not None and end < published.position:
        raise LogDiscontinuity(
            f"source is at position {end}, wanted at least the published {published.position}", hint=hint
        )
    if marker < (wanted := CutDetail.read(published).marker or 0):
        raise LogDiscontinuity(f"source is at marker {marker}, wanted at least the published {wanted}", hint=hint)


def require_same_tables(known: Mapping[str, Any] | None, sources: Sequence[SourceTable]) -> None:
    """Raise SchemaChanged if the columns of a mirror have changed, and BadConfig for a table without a mirror."""
    for source in sources if known else ():
        assert known is not None
        fingerprint = known["tables"].get(str(source.name))
        if fingerprint is None:
            raise BadConfig(
                f'table "{source.name}" was not in this project when its warehouse was created',
                hint=f"{RESET}: it adds the new tables",
            )
        if fingerprint != source.mirror_fingerprint():
            raise SchemaChanged(
                f'table "{source.name}" has changed since its mirror was created, or a column is mirrored in '
                "another form now, because of a setting (source.text_columns, source.decimal_columns) or this version "
                "of cdc_views",
                hint=RESET,
            )
