"""A view as the engine maintains it: its inputs, its key, its strategy, and its SQL over given relations.

The SQL that runs is the text of the view file, in which only the names of its inputs are replaced. So a parser that
slightly misunderstands a construct can refuse a view, but never change its meaning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import Selected, Visit, derive_key
from cdc_views.plan.facts.names import column_names
from cdc_views.plan.facts.order import Completion, OrderCompletion
from cdc_views.plan.facts.relation import RelationFacts
from cdc_views.plan.support import check_support
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.graph import ViewGraph
from cdc_views.views.kinds import FLAGS, KINDS, ProvenKey
from cdc_views.views.nesting import naming_deep_nesting
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery

# Part of every fingerprint: raise it if the same text is to be maintained in another way.
_FORM: Final = "1"
_FORM_WITHOUT_KEY: Final = "2"  # how the rows of such a view are hashed
_RENAMED: Final = "SELECT * FROM (\n"


@dataclass(frozen=True)
class Replacement:
    """A piece of the SQL that names an input: `sql[start:end]` becomes the relation of `source`, then `after`.

    If `source` is None, the piece becomes `after` alone.
    """

    start: int
    end: int
    source: str | None
    after: str


@dataclass(frozen=True)
class _Identity:
    """What decides the rows and the columns of a view's table; a view of another identity has another table.

    `engine` is the version of Spark, whose analyser gives the columns their types. What sqlglot proves about the query
    is in `key`. `options` are those that are not flags, since a flag changes no row, and the
    versions that the kind depends on. `tokens` are the text without layout and
    comments.
    """

    form: str
    engine: str
    columns: tuple[str, ...] | None
    kind: str
    options: tuple[tuple[str, str], ...]
    tokens: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    key: tuple[str, ...] | None
    shapes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    completions: tuple[Completion, ...]

    def fingerprint(self) -> str:
        """Return the name of the view's folder."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()[:16]


def fingerprint_with(facts: Iterable[str]) -> str:
    """The name of a folder that depends on several fingerprints."""
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


@cache  # it is read from a file, for each view
def engine_version() -> str:
    """Return the version of Spark that runs the views."""
    return version("pyspark")


@dataclass(frozen=True)
class CompiledView:
    """A view ready to run.

    `inputs` are named as in the manifest. `key` has the view's columns that identify a row; it is empty if the view has
    at most one row, and None if no key is proven: then rows are told apart by their content; `key_reason` explains it.
    `fingerprint` changes whenever the view's table must be rebuilt. `columns` are names
    for all columns of the SELECT: those that the view declares, or Postgres's names for columns without one; None if
    the SELECT names them all. `sources` maps the offset of each name of an input to that input. `schemas` has the
    columns of its inputs with their types in the source's catalog, where they are known. `selected` has what is known
    of each query in `parsed`, by the id of its node. A view that is refused must not be run: it has no `parsed`
    query, and only its name and its inputs are known.
    """

    definition: ViewDefinition
    inputs: tuple[str, ...]
    key: tuple[str, ...] | None
    fingerprint: str
    key_reason: str
    replacements: tuple[Replacement, ...]
    columns: tuple[str, ...] | None
    sources: Mapping[int, str] = field(repr=False)
    schemas: Mapping[str, Mapping[str, str]] = field(repr=False, compare=False)
    parsed: ParsedQuery | None = field(repr=False, compare=False)
    selected: Mapping[int, Selected] = field(repr=False, compare=False)

    @property
    def is_refused(self) -> bool:
        """Whether only the name and the inputs are known."""
        return self.parsed is None

    def query(self, relations: Mapping[str, str]) -> str:
        """Return the view's SQL with every input replaced by the relation of that name, given as Spark SQL."""
        return "".join(text for text, _ in self._pieces(relations))

    def offset_of(self, position: int, relations: Mapping[str, str]) -> int:
        """Return the offset in the view's own text of a position in `query(relations)`."""
        for text, (begin, end) in self._pieces(relations):
            if position < len(text):
                return begin + (position if self.definition.sql[begin:end] == text else 0)
            position -= len(text)
        return len(self.definition.sql)

    def fragment(self, relations: Mapping[str, str], span: tuple[int, int] | None) -> tuple[str, str]:
        """Return `file:line:column` and the text, as written, of a part of `query(relations)`; by default of the
        SELECT.

        The text is empty if nothing of the part is written in the view.
        """
        sql = self.definition.sql
        first, last = span if span is not None else (0, len(self.query(relations)))
        start, end, at = len(sql), 0, 0
        written = self.definition.written
        for text, (begin, stop) in self._pieces(relations):
            is_kept = sql[begin:stop] == text
            if begin < stop and first < at + len(text) and at < last:
                start = min(start, begin + max(0, first - at) if is_kept else begin)
                end = max(end, begin + min(len(text), last - at) if is_kept else stop)
            at += len(text)
        start, end = max(start, written[0]), min(end, written[1])
        return self.definition.place(start), sql[start:end]

    def _pieces(self, relations: Mapping[str, str]) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the parts of the query, each with the part of the view's text that it stands for."""
        sql, position = self.definition.sql, 0
        if self.columns is not None:
            yield _RENAMED, (0, 0)
        for piece in self.replacements:
            yield sql[position : piece.start], (position, piece.start)
            yield (relations[piece.source] if piece.source else "") + piece.after, (piece.start, piece.end)
            position = piece.end
        yield sql[position:], (position, len(sql))
        if self.columns is not None:
            names = ", ".join(map(_quoted, self.columns))
            # The line break ends a comment with which the text may end.
            yield f"\n) AS _cv_view({names})", (len(sql), len(sql))


def refused_view(definition: ViewDefinition, inputs: tuple[str, ...]) -> CompiledView:
    """Return a view of which only the name and the inputs are known."""
    return CompiledView(definition, inputs, None, "", "it is refused", (), None, {}, {}, None, {})


def compile_view(
    definition: ViewDefinition,
    graph: ViewGraph,
    schemas: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> CompiledView:
    """Compile a view of the graph. Raises UnsupportedView with file, line and column.

    `schemas` has the columns of inputs with their types in the source's catalog, `keys` the keys of inputs. Less can be
    proven about inputs that are missing from either.
    """
    with naming_deep_nesting(definition):
        return _compiled(graph.query(definition.name), graph, schemas, keys)


def _compiled(
    query: ParsedQuery,
    graph: ViewGraph,
    schemas: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> CompiledView:
    definition = query.definition
    inputs = graph.inputs(definition.name)
    known = frozenset(column.lower() for source in inputs for column in schemas.get(source, ()))
    check_support(query, known)
    orders = OrderCompletion(query)
    if definition.before:
        # The text that a kind adds may need a key to be ordered by. Its own error says so better.
        _kind_key(definition, _view_rows(query, graph, schemas, keys))
    selected: dict[int, Selected] = {}

    def visit(node: exp.Expr, found: Selected) -> None:
        selected[id(node)] = found
        orders.visit(node, found)

    rows = _view_rows(query, graph, schemas, keys, visit)
    completions = orders.completions()
    columns = definition.columns or column_names(query, rows)
    rows = rows if columns is None else rows.renamed(columns)
    key = _kind_key(definition, rows)
    shapes = tuple((source, tuple(sorted(schemas.get(source, {}).items()))) for source in inputs)
    identity = _Identity(
        form=_FORM_WITHOUT_KEY if key is None else _FORM,
        engine=engine_version(),
        columns=columns,
        kind=definition.kind,
        options=(
            *sorted(item for item in definition.options.items() if item[0] not in FLAGS),
            *(("", each) for each in KINDS[definition.kind].versions()),
        ),
        tokens=tuple((token.token_type.name, token.text) for token in query.tokens),
        inputs=inputs,
        key=key,
        shapes=shapes,
        completions=completions,
    )
    return CompiledView(
        definition=definition,
        inputs=inputs,
        key=key,
        fingerprint=identity.fingerprint(),
        key_reason=rows.reason,
        replacements=_replacements(query, graph, completions),
        columns=columns,
        sources={reference.start: graph.source(definition.name, reference) for reference in query.references},
        schemas={source: schemas[source] for source in inputs if source in schemas},
        parsed=query,
        selected=selected,
    )


def _kind_key(definition: ViewDefinition, rows: RelationFacts) -> tuple[str, ...] | None:
    """The key that the kind of a view gives to its table. Raises BadView."""
    columns = rows.columns if rows.columns is not None and all(rows.columns) else None
    key = None if rows.key is None else tuple(rows.spelling.get(name, name) for name in rows.key)
    return KINDS[definition.kind].key(definition.kind_options, ProvenKey(columns, key, rows.reason))


def _view_rows(
    query: ParsedQuery,
    graph: ViewGraph,
    schemas: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
    visit: Visit = lambda query, selected: None,
) -> RelationFacts:
    sources = {id(reference.node): graph.source(query.definition.name, reference) for reference in query.references}

    def rows_of(table: exp.Table) -> RelationFacts:
        source = sources[id(table)]
        columns, key = schemas.get(source), keys.get(source)
        return RelationFacts(
            None if columns is None else tuple(columns),
            {name.lower(): kind for name, kind in (columns or {}).items()},
            None if key is None else tuple(name.lower() for name in key),
            f'no key of "{source}" is known' if key is None else f'the key of "{source}"',
            nullable=columns is None,  # the key of a view may hold NULL
            spelling={name.lower(): name for name in (*(columns or ()), *(key or ()))},
        )

    return derive_key(query, rows_of, visit)


def _replacements(query: ParsedQuery, graph: ViewGraph, completions: Iterable[Completion]) -> tuple[Replacement, ...]:
    found = [
        Replacement(completion.end, completion.end, None, f", {', '.join(completion.columns)}")
        for completion in completions
    ]
    for reference in query.references:
        after = f" AS {quoted_name(reference.name)}" if reference.needs_alias else ""
        source = graph.source(query.definition.name, reference)
        found.append(Replacement(reference.start, reference.end, source, after))
    return tuple(sorted([*found, *_schema_prefixes(query)], key=lambda piece: piece.start))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _schema_prefixes(query: ParsedQuery) -> Iterator[Replacement]:
    """The `public.` of `public.orders.id`: the alias that stands for the table has no schema."""
    unaliased = {
        (reference.schema.lower(), reference.name.lower())
        for reference in query.references
        if reference.schema is not None and reference.needs_alias
    }
    for column in query.tree.find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if len(parts) > 1 and len(column.parts) > 2:
            schema, table = parts[:2]
            if (schema.name.lower(), table.name.lower()) in unaliased:
                yield Replacement(schema.meta["start"], table.meta["start"], None, "")
