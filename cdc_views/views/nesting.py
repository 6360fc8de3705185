"""Queries that are nested more deeply than the parsers' stacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cdc_views.errors import UnsupportedView
from cdc_views.views.definition import ViewDefinition


@contextmanager
def naming_deep_nesting(definition: ViewDefinition) -> Iterator[None]:
    """Turn a RecursionError of the block into UnsupportedView."""
    try:
        yield
    except RecursionError:
        raise nested_too_deeply(definition) from None


def nested_too_deeply(definition: ViewDefinition) -> UnsupportedView:
    """Return the error of a query that overflows the stack of whoever reads it."""
    return UnsupportedView(
        f"{definition.place()}: the query is nested too deeply", hint="write parts of it as views of their own"
    )
