"""An independent record of what the source committed, in commit order: its WAL, decoded by Postgres's test_decoding.

A second logical slot returns every committed change in commit order. The decoder shares no code with what it judges:
not with Debezium, Kafka or our own code. The grammar is that of contrib/test_decoding: names by quote_identifier,
values as the text of the type, quoted except for numbers and booleans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import ReplayFailed

Row = dict[str, str | None]
Key = tuple[str | None, ...]
State = dict[str, dict[Key, Row]]
"""Rows by table ("schema.table") and key; values as Postgres prints them."""

ROWS_PER_BATCH: Final = 5_000

_NAME = r'(?:"(?:[^"]|"")*"|[a-z_][a-z0-9_]*)'
_TABLE = rf"{_NAME}\.{_NAME}"
_CHANGE = re.compile(rf"table ({_TABLE}(?:, {_TABLE})*): (INSERT|UPDATE|DELETE|TRUNCATE):(.*)", re.DOTALL)
_TABLE_NAME = re.compile(rf"({_NAME})\.({_NAME})")
_COLUMN = re.compile(
    rf""" ({_NAME})\[(?:"(?:[^"]|"")*"|[^"\[\]]++|\[\])++\]:(B?'(?:[^']++|'')*+'|[^\s']++)""", re.DOTALL
)
_OLD, _NEW = " old-key:", " new-tuple:"
_UNCHANGED = "unchanged-toast-datum"
_OUTPUT = ("include-timestamp", "off", "skip-empty-xacts", "on")


@dataclass(frozen=True)
class WalChange:
    """One change.

    `old` has at least the replica identity columns of the old row, if the WAL has them separately from `new`. `new` is
    None for a delete and a truncate. `unchanged` are columns with unchanged out-of-line values, which `new` lacks.
    `together` are all tables that a TRUNCATE names.
    """

    table: TableName
    kind: str
    old: Row | None = None
    new: Row | None = None
    unchanged: tuple[str, ...] = ()
    together: tuple[TableName, ...] = ()


@dataclass(frozen=True)
class WalTransaction:
    """A committed transaction. It is part of the state at every position from `commit_end` on."""

    commit_end: Lsn
    changes: list[WalChange] = field(default_factory=list)


class WalSlot:
    """A slot with test_decoding, read over a connection to its database.

    The settings of the connection (DateStyle, TimeZone, bytea_output and others) decide how values are printed. The
    server keeps the WAL from the slot's position until the slot is read or dropped.
    """

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection = connection
        self._name = name

    @classmethod
    def create(cls, connection: psycopg.Connection[Any], name: str) -> WalSlot:
        """Create the slot. It returns what is committed from now on."""
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))
        return cls(connection, name)

    def transactions(self) -> list[WalTransaction]:
        """Decode everything committed since the last call. Raises ReplayFailed."""
        rows = self._connection.execute(
            "SELECT lsn::text, data FROM pg_logical_slot_get_changes(%s, NULL, NULL, VARIADIC %s::text[])",
            (self._name, list(_OUTPUT)),
        )
        return list(decoded(rows))

    def batches(self, upto: Lsn, rows: int = ROWS_PER_BATCH) -> Iterator[list[WalTransaction]]:
        """Decode the transactions that end at or before `upto`, about `rows` rows at a time. Raises ReplayFailed.

        The slot advances past a batch when the next one is requested. A batch that it has not passed is returned again.
        """
        while True:
            peeked = self._connection.execute(
                "SELECT lsn::text, data FROM pg_logical_slot_peek_changes(%s, %s::pg_lsn, %s, VARIADIC %s::text[])",
                (self._name, str(upto), rows, list(_OUTPUT)),
            ).fetchall()
            # Postgres stops after the record that reaches `upto`, so the last transaction may end after it.
            batch = [transaction for transaction in decoded(peeked) if transaction.commit_end <= upto]
            if not batch:
                return
            yield batch
            # Never to `upto` itself: inside a commit record, that would skip the commit.
            self._connection.execute(
                "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self._name, str(batch[-1].commit_end))
            )
            if len(peeked) < rows:
                return

    def drop(self) -> None:
        """Drop the slot."""
        self._connection.execute("SELECT pg_drop_replication_slot(%s)", (self._name,))


def decoded(rows: Iterable[tuple[str, str]]) -> Iterator[WalTransaction]:
    """The transactions in rows of test_decoding (LSN and text), in commit order. Raises ReplayFailed."""
    changes: list[WalChange] = []
    for lsn, text in rows:
        if text.startswith("BEGIN"):
            changes = []
        elif text.startswith("COMMIT"):
            # test_decoding reports a COMMIT with the LSN of the end of its record.
            yield WalTransaction(Lsn.parse(lsn), changes)
        elif not text.startswith("message: "):  # written by pg_logical_emit_message
            changes += _changes(text)


def states_at(
    positions: Iterable[Lsn], transactions: Iterable[WalTransaction], keys: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Lsn, State]]:
    """Replay to each position in order. `keys` has the key columns of the wanted tables, which are empty at first.

    A state is valid until the next one is requested.
    """
    state: State = {table: {} for table in keys}
    ordered = iter(transactions)
    pending = next(ordered, None)
    for position in sorted(positions):
        while pending is not None and pending.commit_end <= position:
            for change in pending.changes:
                if (table := str(change.table)) in keys:
                    _apply(state[table], change, keys[table])
            pending = next(ordered, None)
        yield position, state


def _apply(rows: dict[Key, Row], change: WalChange, key: tuple[str, ...]) -> None:
    if change.kind == "TRUNCATE":
        rows.clear()
        return
    before = change.old or change.new
    assert before is not None
    old = rows.pop(tuple(before[column] for column in key), {})
    if change.new is not None:
        new = change.new | {column: old[column] for column in change.unchanged}
        rows[tuple(new[column] for column in key)] = new


def _changes(text: str) -> Iterator[WalChange]:
    found = _CHANGE.fullmatch(text)
    if found is None:
        raise ReplayFailed("a line of test_decoding is not of a known form", hint="is the server's version supported?")
    tables, kind, rest = found.groups()
    if kind == "TRUNCATE":
        together = tuple(map(_table, _TABLE_NAME.finditer(tables)))
        yield from (WalChange(table, kind, together=together) for table in together)
        return
    [name] = _TABLE_NAME.finditer(tables)
    table = _table(name)
    old: Row | None = None
    if rest.startswith(_OLD):
        old, _, rest = _row(table, rest.removeprefix(_OLD))
        if not rest.startswith(_NEW):
            raise _unreadable(table)
        rest = rest.removeprefix(_NEW)
    new, unchanged, rest = _row(table, rest)
    if rest or not (new or unchanged):  # "(no-tuple-data)" ends here, too
        raise _unreadable(table)
    yield WalChange(table, kind, new, None) if kind == "DELETE" else WalChange(table, kind, old, new, unchanged)


def _row(table: TableName, text: str) -> tuple[Row, tuple[str, ...], str]:
    """The columns at the start of the text, the names of the unchanged ones, and the rest of the text."""
    row: Row = {}
    unchanged: list[str] = []
    end = 0
    while found := _COLUMN.match(text, end):
        name, value = _unquoted(found[1]), found[2]
        if value.endswith("'"):
            row[name] = value.removeprefix("B")[1:-1].replace("''", "'")
        elif value == _UNCHANGED:
            unchanged.append(name)
        else:
            row[name] = None if value == "null" else value
        end = found.end()
    return row, tuple(unchanged), text[end:]


def _table(found: re.Match[str]) -> TableName:
    return TableName(_unquoted(found[1]), _unquoted(found[2]))


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _unreadable(table: TableName) -> ReplayFailed:
    return ReplayFailed(
        f'table "{table}": a change in the WAL does not say which row it is of',
        hint="give the table a primary key, or another replica identity than NOTHING",
    )
