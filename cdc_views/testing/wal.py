"""An independent answer to what the source held at a position: its WAL, decoded by Postgres' own test_decoding.

A second logical slot, made while the tables are empty, gives every committed change in commit order;
replaying those whose commit ends at or before a position gives the rows at that position. It shares
no code with what it judges: neither Debezium, nor Kafka, nor our decoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from cdc_views.lsn import Lsn

Row = dict[str, str | None]
Key = tuple[str | None, ...]
State = dict[str, dict[Key, Row]]
"""Rows by table ("schema.table") and key; values as Postgres prints them."""

_CHANGE = re.compile(r"^table (?P<table>.+?): (?P<kind>INSERT|UPDATE|DELETE|TRUNCATE): (?P<rest>.*)$", re.DOTALL)
_VALUE = re.compile(
    r"""(?P<name>"(?:[^"]|"")+"|[^\s\[]+)\[(?:[^\[\]]|\[\])+\]:(?P<value>B?'(?:[^']|'')*'|[^\s]+)""", re.DOTALL
)
_UNCHANGED = "unchanged-toast-datum"


@dataclass(frozen=True)
class WalChange:
    """One change: `old` has at least the key of the row before, where it is known; `new` is None for a delete."""

    table: str
    kind: str
    old: Row | None
    new: Row | None


@dataclass(frozen=True)
class WalTransaction:
    """One committed transaction; it is part of the state at every position from `commit_end` on."""

    commit_end: Lsn
    changes: list[WalChange] = field(default_factory=list)


class WalSlot:
    """A slot of our own with test_decoding; dropped at the end."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection = connection
        self._name = name
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))

    def transactions(self) -> list[WalTransaction]:
        """Decode everything that was committed since the last call."""
        rows = self._connection.execute(
            "SELECT lsn::text, data FROM pg_logical_slot_get_changes(%s, NULL, NULL, 'include-timestamp', 'off')",
            (self._name,),
        ).fetchall()
        return list(_transactions(rows))

    def drop(self) -> None:
        """Drop the slot."""
        self._connection.execute("SELECT pg_drop_replication_slot(%s)", (self._name,))


def states_at(
    positions: Iterable[Lsn], transactions: Iterable[WalTransaction], keys: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Lsn, State]]:
    """Replay to each position, in their order; `keys` are the tables wanted and their key columns.

    The state is valid until the next one is asked for.
    """
    state: State = {table: {} for table in keys}
    ordered = iter(transactions)
    pending = next(ordered, None)
    for position in sorted(positions):
        while pending is not None and pending.commit_end <= position:
            for change in pending.changes:
                if change.table in keys:
                    _apply(state[change.table], change, keys[change.table])
            pending = next(ordered, None)
        yield position, state


def _apply(rows: dict[Key, Row], change: WalChange, key: tuple[str, ...]) -> None:
    if change.kind == "TRUNCATE":
        rows.clear()
        return
    before = change.old or change.new
    assert before is not None
    old = rows.pop(tuple(before[column] for column in key), None)
    if change.new is not None:
        new = dict(change.new)
        for column, value in new.items():
            if value == _UNCHANGED and old is not None:
                new[column] = old[column]
        rows[tuple(new[column] for column in key)] = new


def _transactions(rows: Iterable[tuple[str, str]]) -> Iterator[WalTransaction]:
    changes: list[WalChange] = []
    for lsn, text in rows:
        if text.startswith("BEGIN"):
            changes = []
        elif text.startswith("COMMIT"):
            # test_decoding gives a COMMIT the LSN at which its record ends.
            yield WalTransaction(Lsn.parse(lsn), changes)
        else:
            changes.append(_change(text))


def _change(text: str) -> WalChange:
    match = _CHANGE.match(text)
    assert match, "not a change of test_decoding"
    table, kind, rest = match["table"].replace('"', ""), match["kind"], match["rest"]
    if kind == "TRUNCATE":
        return WalChange(table, kind, None, None)
    if kind == "DELETE":
        return WalChange(table, kind, _row(rest), None)
    if rest.startswith("old-key: "):
        old, _, new = rest.removeprefix("old-key: ").partition(" new-tuple: ")
        return WalChange(table, kind, _row(old), _row(new))
    return WalChange(table, kind, None, _row(rest))


def _row(text: str) -> Row:
    row: Row = {}
    for match in _VALUE.finditer(text):
        name, value = match["name"], match["value"]
        if name.startswith('"'):
            name = name[1:-1].replace('""', '"')
        if value == "null":
            row[name] = None
        elif value.endswith("'"):
            row[name] = value.removeprefix("B")[1:-1].replace("''", "'")
        else:
            row[name] = value
    return row
