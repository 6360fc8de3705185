"""Which SQL is answered: one SELECT over published tables.

DuckDB itself parses the text, and the tree that it gives is searched. Everything that is neither a published table nor
computed from the query alone is refused: files, DuckDB's catalogs and settings, the environment, other databases. The
connection is locked down as well (query.py): it reads no file and no environment, whatever the text is. DuckDB's own
catalogs and settings are kept from it by this search only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import duckdb
import orjson

from cdc_views.base.names import HIDDEN
from cdc_views.errors import BadQuery

_TABLE_FUNCTIONS: Final = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
# The last ones are macros, which DuckDB replaces by a SELECT over its catalogs, and a function that plans any text.
_REFUSED_FUNCTIONS: Final = frozenset(
    {
        *("current_setting", "getenv", "getvariable", "nextval", "write_log"),
        *("format_type", "get_block_size", "json_serialize_plan", "pg_get_constraintdef", "pg_get_viewdef"),
    }
)
_SELECT_ONLY: Final = "queries are SELECT statements of DuckDB's SQL"


@dataclass(frozen=True)
class Statement:
    """A parsed SELECT: the tables that it names, each as the parts of its name, without those that WITH defines."""

    tables: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, database: duckdb.DuckDBPyConnection, sql: str) -> Self:
        """Parse and check a query. Raises BadQuery."""
        try:
            kinds = [statement.type for statement in database.extract_statements(sql)]
            [(text,)] = database.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
        except duckdb.Error as error:
            raise BadQuery(" ".join(str(error).split()), hint=_SELECT_ONLY) from None
        if len(kinds) != 1:
            raise BadQuery(f"found {len(kinds)} statements, wanted one", hint=_SELECT_ONLY)
        try:
            tree = orjson.loads(text)
        except orjson.JSONDecodeError:  # it has too many levels
            raise BadQuery("the statement is nested too deeply", hint="write it with fewer levels") from None
        if kinds[0] != duckdb.StatementType.SELECT or tree["error"]:
            hint = "PIVOT needs its values: PIVOT t ON x IN ('a', 'b') USING ..." if _is_pivot(kinds[0]) else None
            raise BadQuery(f"found a statement of type {kinds[0].name}, wanted SELECT", hint=hint or _SELECT_ONLY)
        for node in _nodes(tree):
            _require_allowed(node)
            _require_own_names(database, node)
        return cls(tuple(dict.fromkeys(_named(tree))))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def _named(tree: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The names of the tables in a tree, without those that a WITH around their place defines."""
    left: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while left:
        node, defined = left.pop()
        if isinstance(node, list):
            left += [(each, defined) for each in reversed(node)]
        elif isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                name = tuple(node["qualified_name"]["path"])
                if len(name) > 1 or name[0].lower() not in defined:
                    yield name
            left += reversed([*_parts(node, defined)])


def _parts(node: dict[str, Any], defined: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
    """The parts of a node, each with the names that are defined there by WITH; `defined` are those around the node."""
    for entry in node.get("cte_map", {}).get("map", ()):
        yield entry["value"], defined  # it sees those before it
        defined |= {entry["key"].lower()}
    is_recursive = node.get("type") == "RECURSIVE_CTE_NODE"
    inside = defined | {node["cte_name"].lower()} if is_recursive else defined
    for part, value in node.items():
        if part != "cte_map":
            # The first branch of a recursive CTE does not see the CTE itself.
            yield value, defined if is_recursive and part == "left" else inside


def _require_allowed(node: dict[str, Any]) -> None:
    kind = node.get("type")
    if kind == "TABLE_FUNCTION" and (name := _function(node["function"])) not in _TABLE_FUNCTIONS:
        raise BadQuery(
            f'table function "{name}" is not allowed: queries read published tables only',
            hint="allowed are " + ", ".join(sorted(_TABLE_FUNCTIONS)),
        )
    if kind == "FUNCTION" and (name := _function(node)) in _REFUSED_FUNCTIONS:
        raise BadQuery(
            f'function "{name}" is not allowed: queries read published tables only', hint="write the value instead"
        )
    if kind == "SHOW_REF" and node.get("query") is None:
        raise BadQuery("SHOW is not allowed: queries read published tables only", hint=_SELECT_ONLY)


def _require_own_names(database: duckdb.DuckDBPyConnection, node: dict[str, Any]) -> None:
    """Refuse a WITH that defines a name of DuckDB or of ours, which means another relation where the WITH ends."""
    for entry in node.get("cte_map", {}).get("map", ()):
        name = entry["key"]
        if name.lower().startswith(HIDDEN) or name.lower() in _names_of_duckdb(database):
            raise BadQuery(f'WITH cannot define "{name}", which is a name of the system', hint="choose another name")


def _names_of_duckdb(database: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The relations of DuckDB itself that can be named without a schema."""
    own = "SELECT view_name FROM duckdb_views() WHERE internal AND schema_name <> 'information_schema'"
    return frozenset(name.lower() for (name,) in database.execute(own).fetchall())


def _function(node: dict[str, Any]) -> str:
    return str(node["function_name"]).lower()


def _is_pivot(kind: Any) -> bool:
    return bool(kind == duckdb.StatementType.MULTI)
