"""Plays a random history through the harness, and compares every view with its SQL after every epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from cdc_views.errors import UnequalRows, ViewFailed
from cdc_views.testing import Explanation, ViewChanges, ViewHarness, assert_equal
from tests.view_shapes.changes import Epoch
from tests.view_shapes.shape import View
from tests.view_shapes.tables import TABLES


def declare(harness: ViewHarness, views: Iterable[View]) -> dict[str, Explanation]:
    """Declare the views, parents first."""
    return {view.name: harness.create_view(view.statement) for view in views}


def with_parents(views: Mapping[str, View], names: Iterable[str]) -> dict[str, View]:
    """The named views and those that they read; of `views`, which has parents first, and in its order."""
    wanted = set(names)
    for view in reversed(list(views.values())):
        if view.name in wanted:
            wanted |= view.reads
    return {view.name: view for view in views.values() if view.name in wanted}


def tables_below(views: Mapping[str, View], names: Iterable[str]) -> set[str]:
    """The tables that the named views read, directly or through other views."""
    return {read for view in with_parents(views, names).values() for read in view.reads} & TABLES.keys()


def without_readers(views: Mapping[str, View]) -> list[str]:
    """The views that no other view reads: they can be dropped and declared again."""
    read = {name for view in views.values() for name in view.reads}
    return [name for name in views if name not in read]


def check_history(
    harness: ViewHarness, views: Mapping[str, View], epochs: Sequence[Epoch], late: Collection[str] = ()
) -> None:
    """Run the epochs, from empty tables to empty tables, with views that are declared already.

    The `late` views are dropped, and declared again after the first epoch, over the rows that are there then.
    Raises UnequalRows with the views that differ from their SQL, and the changes that they saw.
    """
    for name in late:
        harness.drop_view(name)
    for number, epoch in enumerate(epochs, start=1):
        harness.apply_transactions(epoch)
        present = [view for view in views.values() if view.name in harness.views]
        changed = reached(epoch, present)
        for name in {view.name for view in present} - changed:
            assert harness.changes(name) == ViewChanges([], []), f'view "{name}" changed without a cause'
        absent = [view for view in views.values() if view.name not in harness.views]
        declare(harness, absent)
        changed.update(view.name for view in absent)
        if problems := unequal(harness, changed):
            texts = [*problems.values(), f"in epoch {number} of {len(epochs)}:", *changes_below(epoch, views, problems)]
            raise UnequalRows("\n".join(texts))


def reached(epoch: Epoch, views: Iterable[View]) -> set[str]:
    """The views that read a table with changes, directly or through other views; `views` has parents first."""
    moved = {change.table for transaction in epoch for change in transaction}
    found: set[str] = set()
    for view in views:
        if view.reads & (moved | found):
            found.add(view.name)
    return found


def unequal(harness: ViewHarness, names: Iterable[str]) -> dict[str, str]:
    """What is wrong with the views, by name: rows that differ from those of the SQL run from scratch, or a failure."""
    problems = {}
    for name, wanted in harness.recomputed_all(sorted(names)).items():
        try:
            assert_equal(harness.rows(name), wanted, f'view "{name}"')
        except (UnequalRows, ViewFailed) as error:
            problems[name] = error.message
    return problems


def changes_below(epoch: Epoch, views: Mapping[str, View], names: Iterable[str]) -> list[str]:
    """The changes of an epoch that the named views saw, as lines."""
    tables = {table for view in with_parents(views, names).values() for table in view.reads}
    return [f"  {change}" for transaction in epoch for change in transaction if change.table in tables]
