"""What the operating system refuses at the files of a warehouse is an error of ours, at every door."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cdc_views.cli.main import main
from cdc_views.engine.service.holder import holder
from cdc_views.engine.service.lock import WarehouseLock
from cdc_views.errors import DiskFull, WarehouseUnusable
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.sql import query
from cdc_views.store.control.control_log import ControlLog, read_control
from cdc_views.store.delta_log.entries import LOG_FOLDER, newest_version, put_entry, read_entry
from cdc_views.store.storage.disk import unusable_by, unusable_by_java
from tests.ledger import Ledger, MirrorEngine, published

pytestmark = pytest.mark.usefixtures("without_fsync")

REFUSED = ("EACCES", "EPERM", "EROFS", "EIO", "ENAMETOOLONG", "EMFILE", "ENFILE", "ENOTDIR", "ESTALE", "ENOTSUP")


@pytest.mark.parametrize("name", [*REFUSED, "ENOSPC", "EDQUOT"])
@pytest.mark.parametrize("call", ["fsync", "link"])
def test_entry_that_the_system_refuses_is_named_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    number = getattr(errno, name)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("cdc_views.store.storage.durable._is_on", True)
    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(WarehouseUnusable, match=r"cannot be used|no space left") as error:
        put_entry(tmp_path, 0, [{"txn": {}}])
    assert (error.value.errno, error.value.path, bool(error.value.hint)) == (number, str(tmp_path), True)
    assert isinstance(error.value, DiskFull) == (name in ("ENOSPC", "EDQUOT"))


Reader = Callable[[Path], object]
READERS: dict[str, Reader] = {
    "control log": read_control,
    "epoch": PublishedEpoch.latest,
    "lock": lambda root: WarehouseLock(root, 0).acquire(),
    "writer": lambda root: ControlLog.open(root, "w"),
    "version": lambda root: newest_version(root / "t"),
    "entry": lambda root: read_entry(root / "t", 3),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_warehouse_that_is_a_file_is_named(tmp_path: Path, reader: Reader) -> None:
    root = tmp_path / "lake"
    root.write_text("no folder")
    with pytest.raises(WarehouseUnusable, match=r'lake.*" cannot be used: (Not a directory|File exists)') as error:
        reader(root)
    assert error.value.hint


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_warehouse_with_a_name_that_is_too_long_is_named(tmp_path: Path, reader: Reader) -> None:
    with pytest.raises(WarehouseUnusable, match="cannot be used: File name too long"):
        reader(tmp_path / ("n" * 300))


def test_holder_of_a_warehouse_that_is_a_file_is_nobody(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("no folder")
    assert holder(tmp_path / "lake") is None


@pytest.fixture
def engine(tmp_path: Path) -> MirrorEngine:
    """An engine of mirrors alone that has published some epochs."""
    made = MirrorEngine(tmp_path / "lake", Ledger())
    made.start()
    made.epochs(2)
    return made


@pytest.mark.proves(
    wrong="The warehouse, or a folder of it, is removed, replaced by a file, or refused by the operating system",
    seen="`WarehouseUnusable` with the path, in the engine, the readers and every command",
    do="follow the hint, then start the engine again",
)
@pytest.mark.parametrize("folder", ["", "_epochs", "_epochs/_delta_log", "mirrors"])
def test_folder_that_is_removed_under_the_engine_stops_it_and_is_not_recreated(
    engine: MirrorEngine, folder: str
) -> None:
    shutil.rmtree(engine.root / folder)
    with pytest.raises(WarehouseUnusable, match="cannot be used: No such file or directory"):
        engine.epochs(2)
    assert not (engine.root / folder / LOG_FOLDER).exists()


@pytest.fixture
def no_files() -> Iterator[Callable[[], None]]:
    """Called, it leaves this process no further open file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def limit() -> None:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_more_open_files_is_named_and_later_the_engine_goes_on(
    engine: MirrorEngine, no_files: Callable[[], None]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    no_files()
    for use in (lambda: engine.epochs(1), lambda: read_control(engine.root), lambda: _ask(engine.root)):
        with pytest.raises(WarehouseUnusable, match="Too many open files"):
            use()
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    again = MirrorEngine(engine.root, engine.ledger)
    again.start()
    again.epochs(1)
    assert published(engine.root)[-1].epoch > 2


def _ask(root: Path) -> None:
    query(PublishedEpoch.latest(root), "SELECT count(*) FROM public.accounts")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Generic LocalFileSystem error: Unable to open file /x: Permission denied (os error 13)", errno.EACCES),
        ('Local path "/x" does not exist\nError: Os { code: 116, kind: StaleNetworkFileHandle }', errno.ESTALE),
        ("[Errno 5] Error reading bytes from file. Detail: [errno 5] Input/output error", errno.EIO),
    ],
)
def test_number_that_a_library_gives_only_as_a_text_is_found(text: str, number: int) -> None:
    found = unusable_by(ValueError(text), Path("/x"))
    assert found is not None
    assert found.errno == number


@pytest.mark.parametrize(
    ("trace", "number"),
    [
        ("org.apache.spark.SparkException: x\nCaused by: java.io.IOException: No space left on device", errno.ENOSPC),
        ("Caused by: java.io.FileNotFoundException: /lake/t/part-0 (Permission denied)\n\tat a.b", errno.EACCES),
        ("Caused by: java.nio.file.FileSystemException: /lake/x: Read-only file system", errno.EROFS),
        ("Caused by: java.nio.file.AccessDeniedException: /lake/x", errno.EACCES),
        ("java.io.FileNotFoundException: /lake/t/x (Too many open files)", errno.EMFILE),
        ("java.io.IOException: Input/output error", errno.EIO),
        ("java.io.IOException: Disk quota exceeded", errno.EDQUOT),
    ],
)
def test_number_of_what_java_throws_is_found(trace: str, number: int) -> None:
    found = unusable_by_java(trace, Path("/lake/t"))
    assert found is not None
    assert (found.errno, isinstance(found, DiskFull)) == (number, number in (errno.ENOSPC, errno.EDQUOT))


def test_row_value_that_reads_as_such_an_error_is_none() -> None:
    value = "java.lang.NumberFormatException: For input string: 'No space left on device'\n\tat a.b"
    assert unusable_by_java(value, Path("/lake/t")) is None
    assert unusable_by(ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Path("/lake")) is None


@pytest.mark.parametrize("command", [["status"], ["epochs"], ["query", "SELECT 1"], ["quarantine", "list"]])
def test_command_over_a_warehouse_that_cannot_be_used_names_it_without_a_traceback(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "cdc-views.yaml").write_text("warehouse: lake\n")
    (tmp_path / "lake").write_text("no folder")
    result = CliRunner().invoke(main, ["-C", str(tmp_path), *command])
    assert result.exit_code == 1, result.output
    assert f'WarehouseUnusable: "{tmp_path}/lake' in result.output
    assert "\nhint: " in result.output
