"""What `check` finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

PRINT: Final = 'let a DBA run what "cdc-views check --print-sql" prints'
FIX_OR_PRINT: Final = f'run "cdc-views check --fix", or {PRINT}'


@dataclass(frozen=True)
class Finding:
    """Something that a run needs and that is not so.

    `fix` is the SQL that fixes it, if SQL can: statements that psql runs as they are, and that may be run again. What
    must be one transaction is within BEGIN and COMMIT. `by_dba` says that the SQL takes rights that the project's own
    role cannot have, so that `check --fix` cannot run it.
    """

    severity: Literal["error", "warning", "info"]
    subject: str
    problem: str
    remedy: str
    fix: str | None = None
    by_dba: bool = False

    @property
    def fixable(self) -> bool:
        """Whether `check --fix` can try to fix it."""
        return self.fix is not None and not self.by_dba

    @property
    def blocking(self) -> bool:
        """Whether a run is refused for it, and `check --fix` can do nothing about it."""
        return self.severity == "error" and not self.fixable


def summary(findings: Iterable[Finding]) -> str:
    """Subjects and problems as one line."""
    return "; ".join(f"{finding.subject}: {finding.problem}" for finding in findings)


def remedies(findings: Iterable[Finding]) -> str:
    """Remedies as one line, each once."""
    return "; ".join(dict.fromkeys(finding.remedy for finding in findings if finding.remedy))
