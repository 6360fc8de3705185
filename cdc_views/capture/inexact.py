"""Why one value of an event cannot be decoded; the column adds its name and makes an error of the tree of it."""

from __future__ import annotations


class InexactValueError(ValueError):
    """A value that the column's type in Delta cannot hold exactly; says why, never the value."""


class OtherShapeError(ValueError):
    """JSON of another shape than Debezium writes for the type."""
