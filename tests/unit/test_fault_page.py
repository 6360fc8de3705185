"""docs/faults.md is what the tests say that prove it."""

from __future__ import annotations

import os
import re

from cdc_views import errors
from tests.fault_page import PAGE, PARTS, TESTS, page, proofs

NAMED = re.compile(r"`([A-Z]\w+)`")


def test_page_is_made_from_the_tests() -> None:
    if os.environ.get("CDC_VIEWS_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_errors_that_the_page_names_exist() -> None:
    seen = [name for files in PARTS.values() for file in files for proof in proofs(file)
            for name in NAMED.findall(proof.seen)]  # fmt: skip
    assert seen
    assert [name for name in seen if not hasattr(errors, name)] == []


def test_no_proof_is_left_out() -> None:
    files = [file for file in TESTS.rglob("test_*.py") if "\n@pytest.mark.proves(" in file.read_text(encoding="utf-8")]
    marked = {str(file.relative_to(TESTS)) for file in files}
    assert marked == {file for files in PARTS.values() for file in files if any(proofs(file))}
