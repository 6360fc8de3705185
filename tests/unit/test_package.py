"""What the wheel says that it needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cdc_views.errors import BadConfig
from cdc_views.log.debezium import connector
from tests.fix_wheel import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
OPTIONAL = PROJECT["project"]["optional-dependencies"]


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
