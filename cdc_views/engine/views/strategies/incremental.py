"""What strategies that begin with the changed rows of the inputs have alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa

from cdc_views import metrics
from cdc_views.engine.views.inputs import Inputs, InputVersions
from cdc_views.engine.views.queries.small_queries import SmallQueries
from cdc_views.engine.views.strategies.results import require_columns
from cdc_views.engine.views.view_tables import BOX, own_columns
from cdc_views.metrics import WhyFull
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental import AddPlan, GroupPlan, KeysPlan, Leaf, PatchPlan, Path
from cdc_views.plan.incremental.maintenance import LeafText
from cdc_views.store.warehouse import Counts, RowsChanged, TableSpec, Warehouse

Plan = TypeVar("Plan", KeysPlan, AddPlan, GroupPlan, PatchPlan)


class TooMany(Exception):
    """The change is so large that the whole query is cheaper, or it does not decide the rows; the message says why.

    `why` says so in the record of the epoch.
    """

    def __init__(self, message: str, why: WhyFull = "large change") -> None:
        super().__init__(message)
        self.why: WhyFull = why


@dataclass(frozen=True)
class Incremental(Generic[Plan]):
    """A view to update by a plan. `versions` are those of its inputs, `base` is the version of its stored rows.

    `deltas` replace what has changed in some leaves.
    """

    view: CompiledView
    spec: TableSpec
    base: int
    plan: Plan
    text: LeafText
    inputs: Inputs
    versions: dict[str, InputVersions]
    warehouse: Warehouse
    queries: SmallQueries
    deltas: Mapping[Path, RowsChanged] = field(default_factory=dict)

    def by_keys(self, plan: KeysPlan) -> Incremental[KeysPlan]:
        """The same view, to update by its plan for KEYS."""
        this = cast("Incremental[Any]", self)
        return replace(this, plan=plan)

    def of(self, leaf: Leaf) -> InputVersions:
        """The versions of the input that a leaf reads."""
        return self.versions[leaf.source]

    def used(self, leaf: Leaf) -> frozenset[str]:
        """The columns of a leaf whose change matters: any of them if the text names none, as count(*)."""
        return self.text.used[leaf.source] or frozenset(self.of(leaf).columns)

    def delta(self, leaf: Leaf) -> RowsChanged:
        """The rows of a leaf that the epoch removes and adds, in the columns that matter. Raises TooMany."""
        if leaf.path in self.deltas:
            return self.deltas[leaf.path]
        of, used = self.of(leaf), self.used(leaf)
        if of.old == of.new:
            nothing = pa.schema([field for field in of.spec.schema if field.name in used]).empty_table()
            return RowsChanged(nothing, nothing)
        delta = self.inputs.delta(of, used)
        if delta is None:
            raise TooMany(f'"{leaf}" has more changed rows than the driver looks up')
        return delta

    def stored_counts(self, keys: pa.Table) -> Counts | None:
        """How many stored rows each of the keys has; None if they are too many for the driver, or for its index."""
        return self.warehouse.counts(self.spec, self.base, keys)

    def run(self, sets: Sequence[Mapping[Path, pa.Table]]) -> pa.Table:
        """Run the view's text over each set of rows of its leaves, in one query.

        Returns the view's columns with their types, and the number of the set in the column BOX.
        """
        numbered = {(number, path): rows for number, each in enumerate(sets) for path, rows in each.items()}

        def query(relation: Callable[[tuple[int, Path]], str]) -> str:
            return "\nUNION ALL\n".join(self._text_over(number, relation) for number in range(len(sets)))

        try:
            found = self.queries.run(query, numbered, self.view, [*own_columns(self.view, self.spec), BOX])
        except OSError as error:
            # It is not the warehouse that cannot be written.
            raise TooMany(f"the rows cannot be handed to Spark: {error.strerror}", "error") from error
        metrics.count(rows_recomputed=found.num_rows)
        rows = found.drop_columns([BOX])
        require_columns(rows.schema, self.spec)
        return rows.cast(self.spec.schema).append_column(BOX, found.column(BOX))

    def _text_over(self, number: int, relation: Callable[[tuple[int, Path]], str]) -> str:
        text = self.text.query(lambda path: relation((number, path)))
        # The line break ends a comment with which the text may end.
        return f"SELECT *, {number} AS {BOX} FROM (\n{text}\n)"
