"""`check --fix`: runs the SQL of the findings in the source, one finding after the other.

The application keeps running meanwhile. A statement that does not get its lock within LOCK_TIMEOUT_S fails, and tables
are scanned without blocking writes. Each finding is fixed on its own: if one fails, the earlier ones stay fixed. All of
the SQL can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from cdc_views.config import Settings
from cdc_views.errors import PreflightFailed
from cdc_views.findings import Finding
from cdc_views.source.checks.preflight import in_order
from cdc_views.source.connection import Connection, connect

LOCK_TIMEOUT_S: Final = 5
LIMITS: Final = f"SET lock_timeout = '{LOCK_TIMEOUT_S}s';\nSET statement_timeout = 0;\n"

OnFix = Callable[[Finding, str | None], None]


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings whose SQL the project's role can try to run, in the order in which it must run."""
    return [finding for finding in in_order(findings) if finding.fixable]


def fix_source(settings: Settings, findings: Sequence[Finding], on_fix: OnFix = lambda finding, failure: None) -> None:
    """Run the SQL of the fixable findings.

    `on_fix` is called after each finding, with None or with the reason why it could not be fixed. A warning that cannot
    be fixed remains a warning. Raises PreflightFailed at the first error that could not be fixed.
    """
    with connect(settings.source.dsn.get_secret_value()) as connection:
        connection.execute(sql.SQL(LIMITS))
        for finding in fixable(findings):
            failure = _fix(connection, finding)
            on_fix(finding, failure)
            if failure is not None and finding.severity == "error":
                raise PreflightFailed(f"{finding.subject}: {finding.problem}: {failure}", hint=finding.remedy)


def _fix(connection: Connection, finding: Finding) -> str | None:
    """Run the SQL of a finding. Return the reason of a failure, or None."""
    assert finding.fix is not None
    warnings: list[str] = []

    def collect(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(collect)
    try:
        connection.execute(sql.SQL(finding.fix))
    except psycopg.errors.LockNotAvailable:
        warnings.append(f"not locked within {LOCK_TIMEOUT_S} s: other sessions use the table; try again")
    except psycopg.errors.InsufficientPrivilege as error:
        warnings.append(f"the role may not fix the source: {error.diag.message_primary}")
    except psycopg.Error as error:
        warnings.append(error.diag.message_primary or type(error).__name__)
    finally:
        connection.remove_notice_handler(collect)
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()  # the statement failed between BEGIN and COMMIT
    return "; ".join(warnings) or None
