"""docs/types.md: its tables are those of the cases that the stack test runs. `CDC_VIEWS_GOLDEN=write` writes them."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from cdc_views.source.catalog import SourceColumn
from cdc_views.source.checks.refusals import has_placeholder
from tests.stack.type_cases import CASES, LARGE, MARKED, REFUSALS, REFUSED_KEYS, STOPS, Stop
from tests.unit.generated_page import compare_or_write, table

PAGE = Path(__file__).parents[2] / "docs" / "types.md"


def stop_name(stop: Stop) -> str:
    """The type, and the decimal that a setting gives it."""
    return f"`{stop.type}` as `{stop.decimal}`" if stop.decimal else f"`{stop.type}`"


def parts() -> dict[str, str]:
    """The generated parts of the page, by the name in the comment before them."""
    known = [case for case in CASES if not case.as_text and not case.decimal]
    return {
        "types": table(
            ("Postgres", "Delta", "form"), [(f"`{case.type}`", f"`{case.delta}`", case.form) for case in known]
        ),
        "stops": table(
            ("type", "value", "the column holds", "with `source.text_columns`"),
            [(name, ", ".join(f"`{stop.value}`" for stop in stops), problem, "flows" if flows else "")
             for (name, problem, flows), stops
             in groupby(STOPS, lambda stop: (stop_name(stop), stop.problem, stop.flows))],
        ),
        "refusals": table(
            ("column", "why"),
            [*((f"`{type_}`", problem) for type_, problem in REFUSALS),
             *((f"`{type_}` in a key", problem) for type_, problem in REFUSED_KEYS)],
        ),
        "marked": ", ".join(f"`{type_}`" for type_, _ in LARGE if type_ in MARKED) + ".\n",
    }  # fmt: skip


def test_tables_of_the_page_are_those_of_the_cases() -> None:
    compare_or_write(PAGE, parts())


def test_a_domain_over_an_array_has_no_mark() -> None:
    column = SourceColumn("c", 1, "_int4", -1, "int4", False, True)
    assert has_placeholder(column)
    assert not has_placeholder(SourceColumn("c", 1, "_int4", -1, "int4", False, True, domain=True))
