"""Two runs that share the files of tests: every test is run by one of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests import sharing
from tests.sharing import Claims

FILES = ("test_a", "test_b", "test_c")
TEST = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module", autouse=True)
def log():
    with Path("log").open("a") as file:
        file.write(f"{Path(__file__).stem} begins\\n")
        yield
        file.write(f"{Path(__file__).stem} ends\\n")

@pytest.mark.parametrize("number", range(2))
def test(number):
    pass
"""


def test_file_goes_to_the_run_that_asks_first(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert [one.is_ours("tests/a.py"), other.is_ours("tests/a.py"), other.is_ours("tests/b.py")] == [True, False, True]
    assert [one.is_ours("tests/a.py"), one.is_ours("tests/b.py")] == [True, False]


def test_run_takes_the_files_that_are_left(tmp_path: Path) -> None:
    shutil.copy(sharing.__file__, tmp_path / "conftest.py")
    for name in FILES:
        (tmp_path / f"{name}.py").write_text(TEST)
    claims = tmp_path / "claims"
    claims.mkdir()
    assert Claims(claims).is_ours("test_b.py")  # by the other run
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--share", str(claims)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    assert log == ["test_a begins", "test_a ends", "test_c begins", "test_c ends"]
