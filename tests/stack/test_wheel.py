"""What the wheel holds, that it works where there is no checkout, and a project of it on real services."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from cdc_views.stack.local import LocalStack
from tests.fix_postgres import Database
from tests.fix_wheel import ROOT, Installed, build_wheel


def files_below(folder: Path) -> set[str]:
    return {
        str(file.relative_to(folder.parent))
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_wheel_of_the_sdist_holds_every_file_of_the_package_and_the_connectors(installed: Installed) -> None:
    wanted = files_below(ROOT / "cdc_views") | {f"cdc_views/{name}" for name in files_below(ROOT / "connectors")}
    with zipfile.ZipFile(installed.wheel) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == wanted


def test_wheel_of_a_checkout_is_that_of_the_sdist(installed: Installed, tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(ROOT, tmp_path)) as own, zipfile.ZipFile(installed.wheel) as other:
        assert {file.filename: file.CRC for file in own.infolist()} == {
            file.filename: file.CRC for file in other.infolist()
        }


def test_installed_wheel_makes_a_project_and_finds_its_files(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("cdc-views", "init", "shop", cwd=tmp_path).returncode == 0
    assert {file.name for file in (tmp_path / "shop").rglob("*")} == {"cdc-views.yaml", "views", "balances.sql"}
    code = (
        "import cdc_views.demo.data as data, cdc_views.demo.project as project, cdc_views.demo.check as check\n"
        "import cdc_views.engine.spark.settings as spark, cdc_views.stack.pins as pins\n"
        "import cdc_views.log.debezium.connector as connector\n"
        "files = [data.SCHEMA_FILE, project.VIEWS, check.POSTGRES_SQL, spark.LOG4J, pins.LOCK_FILE]\n"
        "for file in [*files, connector.template_file()]:\n"
        "    assert file.exists(), file\n"
        "    print(file)\n"
    )
    done = installed.run("python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(Path(line).is_relative_to(installed.package) for line in done.stdout.splitlines())


@pytest.mark.nightly
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
