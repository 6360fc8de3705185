"""The operator in the recipe of docs/architecture.md is one that works."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from cdc_views.plan.incremental import operators, restrictions
from cdc_views.plan.incremental.columns import Leaf, LeafColumn, Origin
from cdc_views.plan.incremental.operators import Grouping, Operator, Scan
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, Values

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
LEAF = Leaf((0,), "public.t", {"id": "int64", "k": "int32", "weight": "double"})
KEYS = Leaf((-1,), "affected keys 1", {"k": "int32"})
K = frozenset({LeafColumn(LEAF, "k")})
BY_K = Restriction((K,), Values(((LeafColumn(KEYS, "k"),),), is_join=False))


@pytest.fixture
def passed_on() -> Iterator[Any]:
    """The class in the page."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    module: Any = ModuleType("recipe")
    names = {"dataclass": dataclass, "Operator": Operator, "Leaf": Leaf, "Origin": Origin, "Lookup": Lookup}
    vars(module).update(names, Restriction=Restriction, Sequence=Sequence, Iterable=Iterable)
    sys.modules["recipe"] = module
    exec("from __future__ import annotations\n" + dedent(found[1]), vars(module))
    yield module.PassedOn
    del sys.modules["recipe"]


def test_operator_of_the_recipe_passes_both_rules_on(passed_on: Any) -> None:
    operator: Operator = passed_on(Scan(LEAF))
    assert operator.leaves == {LEAF}
    assert operator.passable() == Scan(LEAF).passable()
    assert operator.restrict([BY_K]) == [Lookup(LEAF, ("k",), BY_K.values)]
    assert operator.find(LEAF, [K]) == []


def test_operator_of_the_recipe_stands_below_others(passed_on: Any) -> None:
    grouping = Grouping(passed_on(Scan(LEAF)), frozenset({K}), "GROUP BY", passes_rows=False)
    assert grouping.passable() == [{K}]
    assert grouping.find(LEAF, [K]) == []
    with pytest.raises(NotIncremental, match="GROUP BY"):
        grouping.restrict([])


def test_names_in_the_recipe_are_those_of_the_code() -> None:
    recipe = PAGE.read_text(encoding="utf-8").split("### Add an operator")[1]
    assert all(
        name in operators.__all__ for name in ("Scan", "Grouping", "Dependent", "SetOperation") if name in recipe
    )
    assert hasattr(restrictions, "only")
    files = re.findall(r"`((?:tests|plan)/[\w/]+\.py)`", recipe)
    root = PAGE.parents[1]
    assert files
    assert [name for name in files if not ((root / name).exists() or (root / "cdc_views" / name).exists())] == []
