"""docs/faults.md, generated from the `proves` markers of the tests.

    @pytest.mark.proves(wrong=..., seen=..., do=...)

The three texts are Markdown. An error class named in backticks in `seen` appears in the index of the page. The markers
are read from the source files, so no test module is imported. To write the page:
`CDC_VIEWS_GOLDEN=write pytest tests/unit/test_fault_page.py`.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from cdc_views import errors
from cdc_views.errors import CdcViewsError

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "faults.md"

# The sections of the page, and the test files whose markers fill each of them.
PARTS: Final = {
    "Services and processes": ("stack/test_engine.py", "stack/test_connector.py", "spark/test_engine_recovery.py",
                               "faults/test_crash_pairs.py", "stack/test_services.py", "stack/test_soak.py",
                               "stack/test_cut_property.py", "stack/test_copy.py", "stack/test_lost_rows.py",
                               "stack/test_source.py", "stack/test_read_ahead.py", "stack/test_watching.py"),
    "Two writers": ("stack/test_two_writers.py", "faults/test_two_writers.py", "faults/test_late_writer.py"),
    "The log": ("stack/test_log_faults.py", "stack/test_random_ddl.py", "stack/test_stopped_tables.py"),
    "Events": ("stack/test_bad_events.py", "spark/test_bad_events.py", "stack/test_replica_identity.py",
               "stack/test_types.py"),
    "The disk": ("faults/test_disk_full.py", "unit/test_store_disk.py", "unit/test_engine_maintenance.py"),
    "Reading": ("unit/test_reading.py", "unit/test_reading_moments.py", "unit/test_reading_changes.py",
                "unit/test_reading_timeline.py", "unit/test_reading_cache.py", "unit/test_reading_sql.py",
                "unit/test_query_processes.py", "unit/test_http_reading.py", "unit/test_http_kinds.py",
                "unit/test_http_sizes.py", "unit/test_http_safety.py", "unit/search/test_search_query.py",
                "unit/search/test_search_reading.py"),
    "Commands": ("unit/test_cli.py", "unit/test_replay_unfinished.py", "stack/test_rebuild.py", "stack/test_reset.py",
                 "unit/test_engine_requests.py", "stack/test_destroy.py"),
    "Settings, views and this machine": ("stack/test_bad_input.py", "unit/test_views_graph.py",
                                         "unit/test_plan_compiled.py", "stack/test_building.py",
                                         "spark/test_building_crash_pairs.py", "unit/test_engine_declared.py",
                                         "unit/test_engine_supervisor.py"),
}  # fmt: skip


# Errors that no user of the commands sees: groups that are never raised, and errors of the test harness and the oracle.
_GROUPS: Final = {"CdcViewsError", "BadInput", "EventError"}
_OF_TESTS: Final = {"BadTable", "BadChange", "FaultNotReached", "UnequalRows", "OracleError"}

_NAMED: Final = re.compile(r"`([A-Z]\w+)[`:]")


@dataclass(frozen=True)
class Proof:
    """What can go wrong, what the user sees then, what to do, and the test that proves it."""

    wrong: str
    seen: str
    do: str
    test: str

    @property
    def names(self) -> list[str]:
        """The error classes named in `seen`, as in `NotRunning` or `NotRunning: ...`."""
        return _NAMED.findall(self.seen)


@cache
def proofs(file: str) -> Sequence[Proof]:
    """The markers of a test file, in the order of the file."""
    return tuple(_proofs(file))


def _proofs(file: str) -> Iterator[Proof]:
    for statement in ast.parse((TESTS / file).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef):
            for mark in filter(_is_proof, statement.decorator_list):
                assert isinstance(mark, ast.Call)
                texts = {str(keyword.arg): str(ast.literal_eval(keyword.value)) for keyword in mark.keywords}
                yield Proof(**texts, test=f"{file}::{statement.name}")


def sections() -> dict[str, list[Proof]]:
    """All markers, by the section of the page."""
    return {part: [proof for file in files for proof in proofs(file)] for part, files in PARTS.items()}


def visible_errors() -> dict[str, type[CdcViewsError]]:
    """The error classes that a user of the commands can see, in alphabetical order."""
    found = {name: each for name, each in vars(errors).items()
             if isinstance(each, type) and issubclass(each, CdcViewsError)}  # fmt: skip
    of_tests = tuple(found[name] for name in _OF_TESTS)
    return {name: found[name] for name in sorted(found)
            if name not in _GROUPS and not issubclass(found[name], of_tests)}  # fmt: skip


def page() -> str:
    """The whole page."""
    by_section = sections()
    lines = [*_HEAD, *_index([proof for found in by_section.values() for proof in found])]
    numbers = itertools.count(1)
    for part, found in by_section.items():
        lines += ["", f"## {part}", ""]
        lines += ["| | what goes wrong | what you see | what to do | test |", "|---|---|---|---|---|"]
        for each, number in zip(found, numbers, strict=False):
            anchor = f'<a id="fault-{number}"></a>{number}'
            lines.append(f"| {anchor} | {each.wrong} | {each.seen} | {each.do} | `{each.test}` |")
    return "\n".join(lines) + "\n"


_HEAD: Final = (
    "# What can go wrong",
    "",
    "Find the name of your error in the index. The numbers lead to the cases: what went wrong, and what to do. An",
    "error has two lines:",
    "",
    "```",
    'SlotChanged: replication slot "cdc_views" is gone, and with it the changes since',
    'hint: run "cdc-views reset"',
    "```",
    "",
    "- **Readers keep the last published epoch**, as long as its files are there.",
    "- `cdc-views check` finds many causes before they stop an engine. `cdc-views check --fix` repairs what it can.",
    "- `cdc-views rebuild TABLE --from snapshot --swap` reads one table again from Postgres",
    "  ([rebuild.md](rebuild.md)).",
    "- `cdc-views reset` starts over with a new slot, new topics and a new snapshot ([reset.md](reset.md)).",
    "- `SlotChanged` and `LogDiscontinuity` of a running engine stay until a reset, in `_epochs/_broken.json` of the",
    "  warehouse, because a later start might find no trace of the loss.",
    "",
    "This page is generated from the tests (`tests/fault_page.py`). Each case names the test that proves it.",
)


def _index(found: Sequence[Proof]) -> list[str]:
    """The index by error name; an error without a case has its meaning only."""
    cases: Mapping[str, list[int]] = {name: [] for name in visible_errors()}
    for number, proof in enumerate(found, 1):
        for name in dict.fromkeys(proof.names):
            cases[name].append(number)
    lines = ["", "## Index by error name", "", "An error without cases is explained by its message and its hint.", ""]
    lines += ["| error | meaning | cases |", "|---|---|---|"]
    for name, error in visible_errors().items():
        meaning = (error.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        links = ", ".join(f"[{number}](#fault-{number})" for number in cases[name])
        lines.append(f"| `{name}` | {' '.join(meaning.split())} | {links} |")
    return lines


def _is_proof(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "proves"
