"""Every golden pair: a view, and its key, inputs and query, or its error; or how it is maintained."""

from __future__ import annotations

import pytest

from tests.unit.golden import FOLDER, INCREMENTAL, cases, incremental_outcome, outcome, rewrite

FILES = sorted(FOLDER.glob("*.sql"))
for _file in FILES:
    rewrite(_file)
INCREMENTAL_FILES = sorted(INCREMENTAL.glob("*.sql"))
for _file in INCREMENTAL_FILES:
    rewrite(_file, incremental_outcome)
PAIRS = [pytest.param(*case, id=f"{file.stem}-{n}") for file in FILES for n, case in enumerate(cases(file), 1)]


@pytest.mark.parametrize(("view", "expected"), PAIRS)
def test_compile_view_of_a_golden_pair_gives_what_stands_below_it(view: str, expected: str) -> None:
    assert outcome(view) == expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [pytest.param(*c, id=f"{file.stem}-{n}") for file in INCREMENTAL_FILES for n, c in enumerate(cases(file), 1)],
)
def test_maintenance_of_a_golden_pair_is_what_stands_below_it(view: str, expected: str) -> None:
    assert incremental_outcome(view) == expected
