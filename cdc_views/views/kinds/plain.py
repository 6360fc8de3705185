"""Kind `sql`: the table equals the SELECT as it is written."""

from __future__ import annotations

from typing import ClassVar

from cdc_views.views.kinds.kind import Kind


class PlainKind(Kind):
    """A view without a shape of its own."""

    name: ClassVar[str] = "sql"
