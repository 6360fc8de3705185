"""Every golden pair: a view, and its key, inputs and query, or its error."""

from __future__ import annotations

import pytest

from tests.unit.golden import FOLDER, cases, outcome, rewrite

FILES = sorted(FOLDER.glob("*.sql"))
for _file in FILES:
    rewrite(_file)
PAIRS = [pytest.param(*case, id=f"{file.stem}-{n}") for file in FILES for n, case in enumerate(cases(file), 1)]


@pytest.mark.parametrize(("view", "expected"), PAIRS)
def test_compile_view_of_a_golden_pair_gives_what_stands_below_it(view: str, expected: str) -> None:
    assert outcome(view) == expected
