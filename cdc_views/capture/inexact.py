"""Why one value of an event cannot be decoded. The column adds its name and makes an error of the tree."""

from __future__ import annotations


class InexactValueError(ValueError):
    """A value that the column's type in Delta cannot hold exactly; the text gives the reason, never the value."""


class DoesNotFitError(InexactValueError):
    """A number that does not fit the decimal type that source.decimal_columns gives its column."""


class OtherShapeError(ValueError):
    """JSON of another shape than Debezium writes for the type."""
