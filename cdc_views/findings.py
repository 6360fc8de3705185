"""What `check` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """Something that a run needs and that is not so; `fix` is the SQL that mends it, if SQL can."""

    severity: Literal["error", "warning", "info"]
    subject: str
    problem: str
    remedy: str
    fix: str | None = None
