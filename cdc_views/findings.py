"""The findings of `check`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

PRINT: Final = 'let a DBA run what "cdc-views check --print-sql" prints'
FIX_OR_PRINT: Final = f'run "cdc-views check --fix", or {PRINT}'


@dataclass(frozen=True)
class Finding:
    """A requirement of a run that is not met, or a fact about it that is worth knowing.

    `fix` is the SQL that fixes it, if SQL can: statements that psql can run as they are, and more than once. Statements
    that must be one transaction are between BEGIN and COMMIT. `by_dba`: the SQL takes rights that the project's own
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
        """Whether `check --fix` can try to fix this."""
        return self.fix is not None and not self.by_dba

    @property
    def blocking(self) -> bool:
        """Whether a run is refused because of this, and `check --fix` cannot fix it."""
        return self.severity == "error" and not self.fixable


def summary(findings: Iterable[Finding]) -> str:
    """Return the subjects and problems on one line."""
    return "; ".join(f"{finding.subject}: {finding.problem}" for finding in findings)


def remedies(findings: Iterable[Finding]) -> str:
    """Return the remedies on one line, each once."""
    return "; ".join(dict.fromkeys(finding.remedy for finding in findings if finding.remedy))
