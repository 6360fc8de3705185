"""A short soak: some versions under faults at random, and none of them wrong. `just nightly`: two thousand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.soak.world import WAYS

ROOT = Path(__file__).parent.parent.parent
VERSIONS = int(os.environ.get("CDC_VIEWS_SOAK_VERSIONS", "40"))
LIMIT_S = 1200


@pytest.mark.proves(
    wrong="Any of these faults at random, one after the other, under load",
    seen="no error: every published version equals Postgres",
    do="nothing; `python -m bench.soak` repeats this for as long as you like",
)
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.nightly
def test_versions_under_faults_equal_postgres() -> None:
    options = ["--minutes", "15", "--versions", str(VERSIONS), "--pause", "8", "--seed", "7"]
    command = [sys.executable, "-m", "bench.soak", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["wrong"], figures["bank_broken"]) == (0, 0), done.stderr
    assert figures["versions_checked"] >= VERSIONS
    assert figures["kills"] > 0
    assert {name for name, way in WAYS.items() if way in figures["ways"][name]} == set(WAYS), figures["ways"]
    assert figures["readings"] > 0
