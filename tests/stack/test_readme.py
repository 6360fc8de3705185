"""The README's tour, run line by line as a newcomer would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.page_blocks import block

ROOT = Path(__file__).parents[2]


def tour() -> str:
    """The shell lines below the README's mark."""
    return block("README.md", "tour")


@pytest.fixture
def shell(state_folder: Path, tmp_path: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The second compiler of the JVMs pays off after some minutes.
    java = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return {**os.environ, **java, "PATH": path, "CDC_VIEWS_STATE": str(state_folder), "COLUMNS": "200"}


def test_tour_of_the_readme_shows_the_balances_of_both_epochs(shell: dict[str, str], tmp_path: Path) -> None:
    script = "set -euo pipefail\ntrap 'cdc-views down >&2' EXIT\n" + tour()
    # From stdin, as from a terminal: a command that reads its input would take the lines after it.
    done = subprocess.run(
        ["bash", "-s"], input=script, cwd=tmp_path, env=shell, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"ada +2 +120\.00\n *bob +1 +5\.00", done.stdout), done.stdout
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert rows == [
        {"holder": "ada", "accounts": 2, "total": "70.00"},
        {"holder": "bob", "accounts": 1, "total": "55.00"},
    ]
    assert re.search(r"public\.accounts +0 +0 +0 .*\n *balances +0 +0 +0", done.stdout), done.stdout
    assert re.search(r"ada +2 +70\.00\n *bob +1 +55\.00", done.stdout), done.stdout
    assert "swapped in epoch" in done.stderr
    assert "strategy: ADD" in done.stdout


def test_readme_names_only_files_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
