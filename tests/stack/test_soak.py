"""A short soak: some hundred versions under faults at random, and none of them wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# Half of a core is the oracle's and the reader's, so two thousand take nine minutes here: `just soak`.
VERSIONS = 300
LIMIT_S = 900


@pytest.mark.proves(
    wrong="any of these at random, one after the other, under load",
    seen="every version that is published equals Postgres",
    do="`python -m bench.soak` does it for as long as you like",
)
@pytest.mark.timeout(LIMIT_S + 60)
def test_versions_under_faults_equal_postgres() -> None:
    command = [sys.executable, "-m", "bench.soak", "--minutes", "12", "--versions", str(VERSIONS), "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["wrong"], figures["bank_broken"]) == (0, 0), done.stderr
    assert figures["versions_checked"] >= VERSIONS
    assert figures["kills"] > 0
    assert figures["readings"] > 0
