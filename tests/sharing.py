"""Runs side by side that share the files of tests: each file is run by the one that claims it first.

So all end at about the same time, however long each file takes. Each run is `pytest --share FOLDER` with all of the
files, in an order of its own. FOLDER is empty at the beginning.
"""

from __future__ import annotations

from pathlib import Path

import pytest


class Claims:
    """The files of tests that this run has claimed: each file goes to the run that asks first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, bool] = {}

    def is_ours(self, file: str) -> bool:
        """Claim a file, unless another run has claimed it."""
        if file not in self._known:
            self._known[file] = self._claim(file)
        return self._known[file]

    def _claim(self, file: str) -> bool:
        try:
            (self._folder / file.replace("/", "--")).mkdir()
        except FileExistsError:
            return False
        return True


CLAIMS = pytest.StashKey[Claims]()


def file_of(item: pytest.Item) -> str:
    """The file of a test, as in its id."""
    return item.nodeid.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=Path, metavar="FOLDER", help="Run only files that no other run has claimed here.")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--share"):
        config.stash[CLAIMS] = Claims(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests of the files that this run claims; a file is claimed when the last test before it begins."""
    claims = session.config.stash.get(CLAIMS, None)
    if claims is None or session.testsfailed or session.config.option.collectonly:
        return None
    ours = (item for item in session.items if claims.is_ours(file_of(item)))
    item = next(ours, None)
    while item is not None:
        following = next(ours, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True
