"""What is looked up when an input of a view changes, in words: a line for each lookup, below what causes it.

Where a table occurs several times in the query, each occurrence has its own name (incremental/leaf_names.py). A lookup
in which NULL matches NULL says so, unless no column of it may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cdc_views.plan.incremental import AddPlan, GroupPlan, Handle, KeysPlan, Leaf, Lookup, PatchPlan, Path
from cdc_views.plan.incremental.leaf_names import leaf_names
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.views.references import ParsedQuery


def lookup_lines(query: ParsedQuery | None, maintained: Maintenance) -> list[str]:
    """The lookups of a view; none for FULL."""
    if query is None:
        return []
    keys, patch = maintained.keys, maintained.patch
    if maintained.group_adds is not None:
        adds = maintained.group_adds
        lookups = [*adds.joined.values(), *(plan.lookups for plan in (keys, adds.affected) if plan is not None)]
        return list(_Words.over(query, adds.leaves, lookups).of_groups(adds))
    if patch is not None:
        lookups = [patch.kept, *patch.added.values(), keys.lookups if keys is not None else ()]
        return list(_Words.over(query, patch.leaves, lookups).of_patch(patch))
    if maintained.adds is not None:
        found = maintained.adds.affected
        lookups = [found.lookups if found is not None else ()]
        return list(_Words.over(query, maintained.adds.leaves, lookups).of_totals(maintained.adds))
    if keys is not None:
        return list(_Words.over(query, [*keys.leaves, *keys.constants], [keys.lookups]).of_keys(keys))
    return []


@dataclass(frozen=True)
class _Words:
    """The words for plans whose leaves have these names."""

    names: Mapping[Path, str]

    @classmethod
    def over(cls, query: ParsedQuery, leaves: Iterable[Leaf], lookups: Iterable[Iterable[Lookup]]) -> _Words:
        return cls(leaf_names(query, [*leaves, *(lookup.leaf for many in lookups for lookup in many)]))

    def of_keys(self, plan: KeysPlan) -> Iterator[str]:
        for constant in plan.constants:
            yield f"if the value of {self.names[constant.path]} changes, the whole query is run"
        for leaf in plan.leaves if not plan.handles else ():
            yield f"if {self.names[leaf.path]} changes, its row is read"
        for handle in plan.handles:
            yield from self._found(handle, plan.leaves)
            yield f"the rows of affected ({_columns(handle)}) are computed again from"
            yield from self._lookups("", handle.recompute)

    def of_groups(self, plan: GroupPlan) -> Iterator[str]:
        names = ", ".join(plan.found_by)
        kinds = {"lists": plan.lists, "totals": plan.totals}
        changed = " and ".join(kind for kind, found in kinds.items() if found)
        if plan.affected is not None:
            yield from self._of_affected(plan.affected)
        for leaf in plan.leaves if plan.joined else ():
            yield f"a change of {self.names[leaf.path]} changes the {changed} of its ({names})"
            yield from self._lookups("look up ", plan.joined[leaf.path])
        for each in plan.lists:
            if each.most is not None:
                yield from self._again(plan, f"where the first {each.most} of ({each.name}) do not follow")
        for extreme in plan.extremes:
            yield from self._again(plan, f"if the value of ({extreme.name}) is removed")

    def _again(self, plan: GroupPlan, case: str) -> Iterator[str]:
        """How groups are computed in a case in which they do not follow from the changed rows."""
        if plan.keys is None:
            yield f"{case}, the whole query is run"
            return
        (handle,) = plan.keys.handles
        yield f"{case}, ({_columns(handle)}) is computed again from"
        yield from self._lookups("", handle.recompute)

    def of_totals(self, plan: AddPlan) -> Iterator[str]:
        for leaf in plan.leaves if plan.joined else ():
            yield f"a change of {self.names[leaf.path]} changes the totals"
            yield from self._lookups("look up ", plan.joined[leaf.path])
        if plan.affected is not None:
            yield from self._of_affected(plan.affected)
        for extreme in plan.extremes:
            places = ", ".join(f"{self.names[each.leaf.path]}.{each.name}" for each in extreme.columns)
            follows = f"the next one is searched for in {places}" if places else "the whole query is run"
            yield f"if the value of ({extreme.name}) is removed, {follows}"
        for distinct in plan.distincts:
            yield f"({distinct.name}) is counted again for the values of changed rows, before and after"
            yield from self._lookups("look up ", distinct.handle.recompute if distinct.handle else distinct.lookups)

    def _of_affected(self, plan: KeysPlan) -> Iterator[str]:
        (handle,) = plan.handles
        yield from self._found(handle, plan.leaves)
        yield f"the totals over the rows of affected ({_columns(handle)}), before and after, are computed from"
        yield from self._lookups("", handle.recompute)

    def of_patch(self, plan: PatchPlan) -> Iterator[str]:
        handle = plan.keys.handles[0] if plan.keys is not None else None
        affected = f" of affected ({_columns(handle)})" if handle is not None else ""
        for leaf in plan.leaves:
            if (shown := plan.shown.get(leaf.path)) is not None:
                columns, key = (", ".join(name for name, _ in pairs) for pairs in (shown.columns, shown.key))
                names = ", ".join(name for _, name in shown.key)
                leaf_name = self.names[leaf.path]
                yield f"a change of only ({columns}) of {leaf_name} changes the stored rows by ({names}) from ({key})"
        if not plan.is_merged:
            yield from self._of_searched(plan)
            return
        if handle is not None:
            yield from self._found(handle, plan.leaves)
        yield f"the stored rows{affected} are merged from"
        yield from self._lookups("", plan.kept)
        for leaf in plan.leaves:
            yield f"with the rows that are added to {self.names[leaf.path]}"
            yield from self._lookups("and ", plan.added[leaf.path])
        if handle is None:
            yield f"where they no longer give the first {plan.most}, the whole query is run"
            return
        yield f"where they no longer give the first {plan.most}, ({_columns(handle)}) is computed again from"
        yield from self._lookups("", handle.recompute)

    def _of_searched(self, plan: PatchPlan) -> Iterator[str]:
        others = f" after {plan.offset} others" if plan.offset else ""
        if plan.order is not None:
            leaf = plan.order.column.leaf
            yield f"the first {plan.most}{others} are searched for in {self.names[leaf.path]}.{plan.order.column.name}"
            yield from self._lookups("and look up ", plan.added[leaf.path])
            yield "where they are not found, " + ("all rows are read" if leaf.is_stored else "the whole query is run")
            return
        (leaf,) = plan.leaves
        yield f"the first {plan.most}{others} are chosen from all rows of {self.names[leaf.path]}"

    def _found(self, handle: Handle, leaves: Iterable[Leaf]) -> Iterator[str]:
        for leaf in leaves:
            yield f"a change of {self.names[leaf.path]} affects ({_columns(handle)})"
            yield from self._lookups("look up ", handle.find[leaf.path])

    def _lookups(self, verb: str, lookups: Iterable[Lookup]) -> Iterator[str]:
        yield from dict.fromkeys(f"  {verb}{self._lookup(each)}" for each in lookups)

    def _lookup(self, lookup: Lookup) -> str:
        values = " or ".join(
            f"({', '.join(column.name for column in each)}) of {self._rows(each[0].leaf)}"
            for each in lookup.values.columns
        )
        may_be_null = not lookup.values.is_join and not lookup.leaf.never_null.issuperset(lookup.columns)
        null = ", NULL matches NULL" if may_be_null else ""
        return f"{self.names[lookup.leaf.path]} by ({', '.join(lookup.columns)}) from {values}{null}"

    def _rows(self, leaf: Leaf) -> str:
        """The rows that have the values of a lookup: those of a leaf, or what stands for one in a plan."""
        return self.names.get(leaf.path, f"the {leaf.source}")


def _columns(handle: Handle) -> str:
    return ", ".join(handle.names)
