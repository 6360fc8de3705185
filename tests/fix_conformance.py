"""How often each operation of the conformance suite ran, shown in the summary of the test run."""

from __future__ import annotations

import pytest
from _pytest.terminal import TerminalReporter

_counts = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[_counts] = {}


@pytest.fixture(scope="session")
def conformance(pytestconfig: pytest.Config) -> dict[str, int]:
    """Operations that ran, by name; whoever runs one adds to it."""
    return pytestconfig.stash[_counts]


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Say what the suite did, if it ran."""
    if counts := config.stash[_counts]:
        steps = {name: count for name, count in counts.items() if not name.startswith("crash: ")}
        shown = ", ".join(f"{name} {count}" for name, count in steps.items())
        places = ", ".join(f"{name} {count}" for name, count in counts.items() if name not in steps)
        terminalreporter.write_line(f"conformance: {sum(steps.values())} steps: {shown}; {places}")
