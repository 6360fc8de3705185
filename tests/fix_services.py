"""One native stack for all tests of a run, or Postgres alone where no test of the run needs more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.connect import Connect
from cdc_views.stack.services.ports import free_port
from cdc_views.stack.services.postgres import Postgres

AT_LEAST_ONCE: Mapping[str, str | int] = {
    "exactly.once.source.support": "disabled", "offset.flush.interval.ms": 500,
}  # fmt: skip


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
    stack = LocalStack(enterable_folder / "stack", durable=False, short_lived=True)
    with stack:
        yield stack


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, enterable_folder: Path) -> Iterator[Postgres]:
    """The stack's Postgres if a selected test needs the stack, else a server that starts in 2 s, without a JVM."""
    if any("stack" in getattr(item, "fixturenames", ()) for item in request.session.items):
        stack: LocalStack = request.getfixturevalue("stack")
        yield stack.postgres
        return
    state = enterable_folder / "postgres-alone"
    state.mkdir()
    server = Postgres(state, free_port(exclude=()), durable=False)
    server.start()
    yield server
    server.stop()


@contextmanager
def second_worker(stack: LocalStack, folder: Path, settings: Mapping[str, str | int]) -> Iterator[Connect]:
    """A worker beside the stack's, of a group of its own; it is gone afterwards."""
    name = f"worker_{uuid4().hex[:8]}"
    own = {"group.id": name, **{f"{what}.storage.topic": f"{name}_{what}s" for what in ("config", "offset", "status")}}
    state = folder / name
    state.mkdir()
    worker = Connect(
        state, free_port(exclude=()), stack.addresses.bootstrap_servers, {**own, **settings}, short_lived=True
    )
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture
def at_least_once(stack: LocalStack, enterable_folder: Path) -> Iterator[Connect]:
    """A second worker that delivers at least once."""
    with second_worker(stack, enterable_folder, AT_LEAST_ONCE) as worker:
        yield worker


@pytest.fixture(params=["exactly once", "at least once"])
def worker(request: pytest.FixtureRequest, stack: LocalStack) -> Connect:
    """The worker that delivers: the stack's own, or a second one."""
    if request.param == "exactly once":
        return stack.connect
    found: Connect = request.getfixturevalue("at_least_once")
    return found


def log_settings_for(worker: Connect) -> dict[str, str]:
    """What a project's `log` says of its worker."""
    fallback = {} if worker.exactly_once else {"offsets_topic": worker.offsets_topic}
    return {"connect_url": worker.url, **fallback}
