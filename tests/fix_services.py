"""One native stack for all tests of a run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_views.stack.local import LocalStack


@pytest.fixture(scope="session")
def enterable_folder() -> Iterator[Path]:
    """A temporary folder that Postgres' user can enter: as root, pytest's own folders are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="cdc-views-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def stack(enterable_folder: Path) -> Iterator[LocalStack]:
    """Postgres, Kafka and Connect on free ports; their data are gone afterwards."""
    stack = LocalStack(enterable_folder / "stack", durable=False)
    with stack:
        yield stack
