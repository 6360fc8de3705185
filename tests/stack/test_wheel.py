"""A project of the installed wheel, in a folder of its own, on real services."""

from __future__ import annotations

import json
from pathlib import Path

from cdc_views.stack.local import LocalStack
from tests.fix_postgres import Database
from tests.fix_wheel import Installed


def test_wheel_checks_a_project_with_the_template_that_it_brings(
    installed: Installed, stack: LocalStack, database: Database, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, holder text, balance numeric(12, 2))")
    environment = {
        "CDC_VIEWS_SOURCE__DSN": database.dsn,
        "CDC_VIEWS_LOG__BOOTSTRAP_SERVERS": stack.addresses.bootstrap_servers,
        "CDC_VIEWS_LOG__CONNECT_URL": stack.addresses.connect_url,
        **{f"CDC_VIEWS_SOURCE__{name}": database.name for name in ("SLOT", "PUBLICATION")},
        **{f"CDC_VIEWS_LOG__{name}": database.name for name in ("CONNECTOR", "TOPIC_PREFIX")},
    }
    assert installed.run("cdc-views", "init", cwd=tmp_path).returncode == 0
    found = installed.run("cdc-views", "check", "--json", cwd=tmp_path, environment=environment)
    fixes = [json.loads(line)["fix"] for line in found.stdout.splitlines()]
    printed = installed.run(
        "cdc-views", "check", "--print-sql", "--role", "a reader", cwd=tmp_path, environment=environment
    )
    assert "REPLICA IDENTITY FULL" in "".join(filter(None, fixes))
    assert all(fix.strip() in printed.stdout for fix in fixes if fix)
    assert 'GRANT SELECT ON "public"."accounts" TO "a reader"' in printed.stdout
    # Connect validates what the template was made into.
    checked = installed.run("cdc-views", "check", "--fix", "--yes", cwd=tmp_path, environment=environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (installed.package / "connectors" / "postgres.json").rename(tmp_path / "postgres.json")
    try:
        checked = installed.run("cdc-views", "check", cwd=tmp_path, environment=environment)
    finally:
        (tmp_path / "postgres.json").rename(installed.package / "connectors" / "postgres.json")
    assert checked.returncode == 2
    assert "lacks connectors/postgres.json" in checked.stderr
