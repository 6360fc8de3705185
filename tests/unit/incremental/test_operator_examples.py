"""The docstring of each operator has a view and the lookups that a change causes: these are those of the planner."""

from __future__ import annotations

import importlib
import pkgutil
from textwrap import dedent

import pytest

from cdc_views.plan.incremental import operators
from cdc_views.plan.lookups import lookup_lines
from tests.unit.golden import compiled, maintained

WITHOUT = {"operator", "equalities"}  # which are no operators
MODULES = [module.name for module in pkgutil.iter_modules(operators.__path__) if module.name not in WITHOUT]


@pytest.mark.parametrize("module", MODULES)
def test_lookups_in_the_docstring_are_those_of_the_planner(module: str) -> None:
    text = importlib.import_module(f"{operators.__name__}.{module}").__doc__
    paragraphs = [dedent(each) for each in (text or "").split("\n\n") if each.startswith("    ")]
    place = next(number for number, each in enumerate(paragraphs) if each.startswith("SELECT "))
    view = compiled(f"CREATE MATERIALIZED VIEW v AS {paragraphs[place]}")
    assert paragraphs[place + 1].splitlines() == lookup_lines(view.parsed, maintained(view))


def test_docstring_of_the_package_names_every_module() -> None:
    listed = [line.split()[0] for line in (operators.__doc__ or "").splitlines() if ".py  " in line]
    assert sorted(listed) == sorted(f"{name}.py" for name in [*MODULES, *WITHOUT])
