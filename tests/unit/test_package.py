"""What the wheel holds, what it says that it needs, and that it works where there is no checkout."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cdc_views.errors import BadConfig
from cdc_views.log.debezium import connector
from tests.fix_wheel import ROOT, Installed, build_wheel

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
OPTIONAL = PROJECT["project"]["optional-dependencies"]


def files_below(folder: Path) -> set[str]:
    return {
        str(file.relative_to(folder.parent))
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def locked(lock: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (ROOT / lock).read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def imported(folder: Path) -> Iterator[str]:
    """The top-level names of absolute imports."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield (node.module or "").partition(".")[0]


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


def test_installation_without_the_template_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connector, "files", lambda package: tmp_path / package)
    with pytest.raises(BadConfig, match=r"lacks connectors/postgres\.json"):
        connector.template_file()


def test_every_import_is_of_a_declared_dependency() -> None:
    declared = {canonicalize_name(each.name) for each in DEPENDENCIES}
    extras = [text for extra, texts in OPTIONAL.items() if extra != "dev" for text in texts]
    declared |= {canonicalize_name(Requirement(text).name) for text in extras}
    declared.add("py4j")  # the part of pyspark that raises its errors: pyspark depends on one version of it
    providers = packages_distributions()
    for name in set(imported(ROOT / "cdc_views")) - {"cdc_views", *sys.stdlib_module_names}:
        assert {canonicalize_name(provider) for provider in providers[name]} & declared, name


@pytest.mark.parametrize("dependency", DEPENDENCIES, ids=lambda each: each.name)
def test_dependency_is_a_range_from_the_locked_version(dependency: Requirement) -> None:
    """What is tested is the lock; a range says no more than that later versions of a series are compatible."""
    assert {each.operator for each in dependency.specifier} == {">=", "<"}
    (least,) = [each.version for each in dependency.specifier if each.operator == ">="]
    name = canonicalize_name(dependency.name)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        versions = locked(lock)[name]
        assert least in versions
        assert all(dependency.specifier.contains(version) for version in versions)


def test_build_backend_is_locked_with_its_dependencies() -> None:
    (backend,) = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    for lock in ("requirements.lock", "requirements-dev.lock"):
        assert all(backend.specifier.contains(version) for version in locked(lock)[backend.name])
        assert {"packaging", "pathspec", "pluggy", "trove-classifiers", "setuptools"} <= locked(lock).keys()
