"""A value that somebody gives, as a column of a table stores it."""

from __future__ import annotations

import pyarrow as pa

from cdc_views.base.python_values import far_scalar, python_value


def exact_scalar(value: object, kind: pa.DataType) -> pa.Scalar:
    """The value in an Arrow type. Raises ValueError unless it is one of this type, and stays the same.

    Arrow takes true and 1.5 as the integer 1, a time as its day, and a time without a zone as UTC. A far time is given
    as its text (python_values.py).
    """
    if isinstance(value, str) and (far := far_scalar(value, kind)) is not None:
        return far
    try:
        stored = pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None
    is_changed = not pa.types.is_floating(kind) and python_value(stored) != value
    if is_changed or (isinstance(value, bool) and not pa.types.is_boolean(kind)):
        raise ValueError(f"the value is no {kind}")
    return stored
