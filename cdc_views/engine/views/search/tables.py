"""The tables of search indexes: the postings and the totals of the documents that a view has.

They are derived from the view's rows, as internal tables that come after all views. An epoch commits them like any
view, and a search finds all three tables at one epoch. What is made of them depends on the analyzer, too: with another
one, their paths are others, and the next epoch fills them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.plan.compiled import CompiledView
from cdc_views.search import IndexOptions, postings_schema
from cdc_views.search.postings import DOCUMENT, ORDER, TOTALS_SCHEMA
from cdc_views.store.control import INTERNAL_VIEW_FOLDER
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.kinds import DEFAULT_KIND

PartName = Literal["postings", "totals"]

# Raise it when the same documents and options are to give other tables.
_FORM: Final = 1


@dataclass(frozen=True)
class SearchTable(CompiledView):
    """The postings or the totals of a search index, in the form of a view that has no SQL.

    `below` are the tables and views that the view of the documents reads.
    """

    part: PartName
    options: IndexOptions
    below: tuple[str, ...]

    @property
    def documents(self) -> str:
        """The view that has the documents."""
        return self.inputs[0]


def postings_name(documents: str) -> str:
    """The name of the postings of a view's documents."""
    return _name(documents, "postings")


def search_table(view: CompiledView, options: IndexOptions, part: PartName) -> SearchTable:
    """A table of the search index of a view."""
    of_view = view.definition
    name = _name(of_view.name, part)
    definition = ViewDefinition(
        name, None, DEFAULT_KIND, {}, "", of_view.file, of_view.name_line, of_view.name_column,
        of_view.name_line, of_view.name_column,
    )  # fmt: skip
    facts = (_FORM, view.fingerprint, options.analyzer.identity, part)
    return SearchTable(
        definition=definition,
        inputs=(of_view.name,),
        key=(DOCUMENT,) if part == "postings" else ("field",),
        fingerprint=hashlib.sha256(repr(facts).encode()).hexdigest()[:16],
        key_reason=f"it is derived from the rows of {of_view.name}",
        replacements=(),
        columns=None,
        sources={},
        schemas={},
        parsed=None,
        selected={},
        part=part,
        options=options,
        below=view.inputs,
    )


def search_spec(table: SearchTable, documents: TableSpec) -> TableSpec:
    """The Delta table of it; `documents` is that of the view."""
    name = table.definition.name
    path = f"{INTERNAL_VIEW_FOLDER}{name}/{table.fingerprint}"
    kind = {"kind": f"search_{table.part}", "analyzer": table.options.analyzer.identity}
    assert table.key is not None
    if table.part == "totals":
        return TableSpec(name, path, TOTALS_SCHEMA, table.key, kind=kind)
    schema: pa.Schema = postings_schema(documents.schema.field(table.options.key).type)
    return TableSpec(name, path, schema, table.key, kind=kind, sorted_by=ORDER)


def _name(documents: str, part: PartName) -> str:
    return f"{HIDDEN}{documents}_{part}"
