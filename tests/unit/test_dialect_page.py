"""The tables of docs/dialect.md are generated from tests/dialect_cases.py. `CDC_VIEWS_GOLDEN=write` writes them."""

from __future__ import annotations

from pathlib import Path

from cdc_views.plan.dialect import DIFFERENCES
from tests.dialect_cases import CASES, SAME
from tests.unit.generated_page import compare_or_write, table

PAGE = Path(__file__).parents[2] / "docs" / "dialect.md"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def test_tables_of_the_page_are_those_of_the_cases() -> None:
    rows = []
    for name, difference in DIFFERENCES.items():
        for number, case in enumerate(case for case in CASES if case.difference == name):
            words = (f"Spark {difference.spark}; Postgres {difference.postgres}", difference.write)
            rows.append((*(words if number == 0 else ("", "")), code(case.postgres), code(case.spark),
                         code(case.in_spark), code(case.in_postgres)))  # fmt: skip
    head = ("difference", "what to do", "Postgres", "the same in Spark", "in Spark", "in Postgres")
    compare_or_write(PAGE, {
        "differences": table(head, rows),
        "same": ", ".join(map(code, SAME)) + ".\n",
    })  # fmt: skip
