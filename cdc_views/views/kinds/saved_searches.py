"""Kind `saved_searches`: the rows of the SELECT are stored queries; the table has the documents that each one matches.

    CREATE MATERIALIZED VIEW post_alerts
    WITH (kind = 'saved_searches', index = 'post_search', document = 'post_id', query = 'query')
    AS SELECT id AS search_id, owner, query FROM searches

has the table of

    SELECT q.search_id, q.owner, d.post_id, CAST(NULL AS STRING) AS error FROM (
    SELECT id AS search_id, owner, query FROM searches
    ) AS q (search_id, owner, query)
    CROSS JOIN post_search AS d

but of these pairs only those whose document matches the query, and a row without a document for each query that cannot
be understood, with the reason in `error`. So this text gives the inputs, the columns and the key. The engine does not
run it: it matches queries and documents itself (engine/views/saved).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from cdc_views.errors import BadView
from cdc_views.search.analyzer import Analyzer
from cdc_views.search.query_index import ERROR
from cdc_views.views.kinds.kind import Kind, Options, ProvenKey
from cdc_views.views.kinds.options import Option, column
from cdc_views.views.quoting import quoted_name

_FORM = "columns of one table or view, as in SELECT id AS search_id, query FROM searches"


class SavedSearchesKind(Kind):
    """Pairs of a stored query and a document of a search index that it matches."""

    name: ClassVar[str] = "saved_searches"
    options: ClassVar[Mapping[str, Option]] = MappingProxyType(
        {
            "index": Option(column, is_required=True),
            "document": Option(column, is_required=True),
            "query": Option(column, is_required=True),
            "filter": Option(column),
        }
    )

    def check_select(self, options: Options, select: str) -> None:
        """Raise BadView unless the SELECT names columns of one table or view, and does nothing else."""
        query = _parsed(select)
        if query is not None and _columns(query) is None:
            hint = f"wanted {_FORM}; write a view of what else is needed, and read that one"
            raise BadView("the SELECT of saved searches does more than to name columns", hint=hint)

    def around(self, options: Options, columns: Sequence[str] | None) -> tuple[str, str]:
        """All pairs of a query and a document, with the columns of the query but its text and its filter."""
        values, names = options.values, list(columns or ())  # which check_select has required
        read = [options.spelled(each, values[each], names) for each in ("query", "filter") if values[each] and names]
        kept = [name for name in names if name not in read]
        if taken := {name.lower() for name in kept} & {ERROR, values["document"].lower()}:
            options.refuse("document", f'column "{min(taken)}" of the SELECT has the name of a column that is added')
        selected = ", ".join(f"q.{quoted_name(name)}" for name in kept)
        added = f"d.{quoted_name(values['document'])}, CAST(NULL AS STRING) AS {ERROR}"
        return (
            f"SELECT {selected or 'q.*'}, {added} FROM (\n",
            f") AS q ({', '.join(map(quoted_name, names))})\nCROSS JOIN {quoted_name(values['index'])} AS d",
        )

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        """The key of the queries, and the document."""
        document = options.values["document"]
        if proven.key is None:
            options.refuse("query", f"stored queries need a key: {proven.reason}", hint="select the key of the table")
        of_queries = tuple(name for name in proven.key if name.lower() != document.lower())
        if not of_queries:
            options.refuse("query", "stored queries need a key, and these are at most one row", hint="read a table")
        if len(of_queries) == len(proven.key):
            options.refuse("document", f'column "{document}" is not the key of the search index')
        return (*of_queries, next(name for name in proven.key if name not in of_queries))

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        """The index, the columns that identify a query, and the one that identifies a document."""
        assert key is not None
        for name in key:
            options.require_flat("query", f'key column "{name}"', types[name])
            if types[name] in ("float", "double"):
                options.refuse("query", f'key column "{name}" is of type {types[name]}, which is not exact')
        return {"index": options.values["index"], "query": list(key[:-1]), "document": key[-1]}

    def versions(self) -> tuple[str, ...]:
        """The analyzer: with another one, other documents match."""
        return (Analyzer().identity,)


def columns_read(select: str) -> list[str]:
    """The columns of its one table that a SELECT which the kind takes names, in their order."""
    query = _parsed(select)
    found = None if query is None else _columns(query)
    assert found is not None
    return found


def _parsed(select: str) -> exp.Expr | None:
    """The tree of a query; None if it is not understood, which is reported where the view is compiled."""
    try:
        return sqlglot.parse_one(select, dialect="spark")
    except (ParseError, RecursionError):
        return None


def _columns(query: exp.Expr) -> list[str] | None:
    """The columns of its one table that a query names; None if it does anything else."""
    if not isinstance(query, exp.Select) or _given(query) != {"expressions", "from_"}:
        return None
    table = query.args["from_"].this
    if not isinstance(table, exp.Table) or _given(table) - {"this", "db", "alias"} or table.alias_column_names:
        return None
    columns = [item.unalias() for item in query.selects]
    return [each.name for each in columns] if all(_is_column_of(table, each) for each in columns) else None


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _is_column_of(table: exp.Table, item: exp.Expr) -> bool:
    is_column = isinstance(item, exp.Column) and not item.is_star and len(item.parts) <= 2
    return is_column and item.text("table").lower() in ("", table.alias_or_name.lower())
