"""What `explain` shows of a view: how it is maintained, why, and the SQL that runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import Note
from cdc_views.plan.incremental import AddPlan, GroupPlan, Handle, Leaf, PatchPlan
from cdc_views.plan.incremental.maintenance import Maintenance


@dataclass(frozen=True)
class Explanation:
    """How a view is maintained.

    `key` is None if rows are told apart by their content; `sql` names the inputs as the manifest does; `internal` has
    the SELECT of each internal view by its name; `lookups` says what is looked up when an input changes.
    """

    view: str
    strategy: str
    reason: str
    key: tuple[str, ...] | None
    key_reason: str
    inputs: tuple[str, ...]
    sql: str
    internal: tuple[tuple[str, str], ...] = ()
    lookups: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def lines(self) -> list[str]:
        """Return the explanation as lines of text: one fact a line, then the SQL, then the differences from
        Postgres.
        """
        key = "none" if self.key is None else f"({', '.join(self.key)})"
        return [
            f"view: {self.view}",
            f"strategy: {self.strategy}: {self.reason}",
            f"key: {key}: {self.key_reason}",
            f"inputs: {', '.join(self.inputs) or 'none'}",
            *(["internal views:"] if self.internal else []),
            *(f"  {name}: {sql}" for name, sql in self.internal),
            *(["lookups:"] if self.lookups else []),
            *(f"  {line}" for line in self.lookups),
            "sql:",
            *(f"  {line}".rstrip() for line in self.sql.splitlines()),
            *(["differences from Postgres:"] if self.notes else []),
            *(line for note in self.notes for line in (f"  {note.problem()}", f"    {note.difference.write}")),
        ]


def explain(compiled: CompiledView, maintained: Maintenance, notes: tuple[Note, ...] = ()) -> Explanation:
    """Explain a compiled view and how it is maintained.

    `notes` are the places where Postgres would give another answer.
    """
    return Explanation(
        view=compiled.definition.name,
        strategy=maintained.strategy,
        reason=maintained.reason,
        key=compiled.key,
        key_reason=compiled.key_reason,
        inputs=compiled.inputs,
        sql=compiled.query({source: source for source in compiled.inputs}),
        internal=tuple((each.name, each.sql) for each in maintained.stored),
        lookups=tuple(_lookups(maintained)),
        notes=notes,
    )


def _lookups(maintained: Maintenance) -> Iterator[str]:
    if maintained.group_adds is not None:
        yield from _of_groups(maintained.group_adds)
    elif maintained.patch is not None:
        yield from _of_patch(maintained.patch)
    elif maintained.adds is not None:
        yield from _of_distincts(maintained.adds)
    elif maintained.keys is not None:
        for constant in maintained.keys.constants:
            yield f"if the value of {constant} changes, the whole query is run"
        for handle in maintained.keys.handles:
            yield from _of_find(handle, maintained.keys.leaves)
            yield f"the rows of affected ({_names(handle)}) are computed again from"
            yield from (f"  {lookup}" for lookup in handle.recompute)


def _names(handle: Handle) -> str:
    return ", ".join(name for part in handle.parts for name in part.names)


def _of_find(handle: Handle, leaves: Sequence[Leaf]) -> Iterator[str]:
    for leaf in leaves:
        yield f"a change of {leaf} affects ({_names(handle)})"
        yield from (f"  look up {lookup}" for lookup in handle.find[leaf.path])


def _of_groups(plan: GroupPlan) -> Iterator[str]:
    for leaf in plan.leaves:
        yield f"a change of {leaf} changes the totals of its ({', '.join(plan.found_by)})"
        yield from (f"  look up {lookup}" for lookup in plan.joined[leaf.path])


def _of_distincts(plan: AddPlan) -> Iterator[str]:
    for distinct in plan.distincts:
        yield f"({distinct.name}) is counted again for the values of changed rows, before and after"
        yield from (f"  look up {lookup}" for lookup in distinct.lookups)


def _of_patch(plan: PatchPlan) -> Iterator[str]:
    handle = plan.keys.handles[0] if plan.keys is not None else None
    if handle is not None:
        yield from _of_find(handle, plan.leaves)
    yield f"the stored rows{f' of affected ({_names(handle)})' if handle is not None else ''} are merged from"
    yield from (f"  {lookup}" for lookup in plan.kept)
    for leaf in plan.leaves:
        yield f"with the rows that are added to {leaf}"
        yield from (f"  and {lookup}" for lookup in plan.added[leaf.path])
    if handle is None:
        yield f"where they no longer give the first {plan.most}, the whole query is run"
        return
    yield f"where they no longer give the first {plan.most}, ({_names(handle)}) is computed again from"
    yield from (f"  {lookup}" for lookup in handle.recompute)
