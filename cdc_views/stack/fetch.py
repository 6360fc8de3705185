"""The pinned files in the cache: fetched once, checked once, found by their hash.

`<cache>/files/<sha256>/<file name>` exists only if the file has the pinned size and SHA-256.
`<cache>/unpacked/<sha256>` exists only if the archive was unpacked completely. Both are renamed into place. Offline,
`$CDC_VIEWS_FILES` is a folder with the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cdc_views.errors import BadConfig, CdcViewsError, DownloadFailed, StackError
from cdc_views.host.locations import cache_folder
from cdc_views.host.os_lock import try_lock
from cdc_views.host.waiting import wait_until
from cdc_views.stack import ivy
from cdc_views.stack.folders import make_shared
from cdc_views.stack.pins import GROUPS, Group, Pin, pins, read_lock, this_platform

FILES_VARIABLE: Final = "CDC_VIEWS_FILES"
_TEMPORARY = "fetch-"
_LOCK_LIMIT_S: Final = 3600.0
_SUFFIXES = {".jar", ".gz", ".part"}  # .part: Ivy is fetching it


def fetch(progress: bool = True, groups: Collection[Group] = GROUPS) -> None:
    """Fetch the missing files of these groups into the cache. Uses no network if none is missing.

    `progress` draws a bar on stderr. Raises DownloadFailed; files that passed their check are kept.
    """
    if not missing(groups):
        return
    with _locked_cache() as cache:
        wanted = missing(groups)
        if not wanted:
            return
        with tempfile.TemporaryDirectory(dir=cache, prefix=_TEMPORARY) as folder, _bar(wanted, progress) as on_wait:
            found = _offline_files(wanted) if os.environ.get(FILES_VARIABLE) else _online(wanted, Path(folder), on_wait)
            for pin in wanted:
                _keep(pin, found[pin], Path(folder))


def missing(groups: Collection[Group] = GROUPS) -> list[Pin]:
    """Return this platform's files that the cache does not hold."""
    return [pin for pin in pins() if pin.group in groups and not _stored(pin).exists()]


def delta_jars() -> list[Path]:
    """Return the jars of Delta, for Spark. Fetches missing ones."""
    return _group("delta")


def kafka_jars() -> list[Path]:
    """Return the jars of the broker and of Connect. Fetches missing ones."""
    return _group("kafka")


def plugin_folder() -> Path:
    """Return the folder for Connect's `plugin.path`, with Debezium. Fetches and unpacks it if it is missing."""
    return _unpacked("debezium", _unpack_tar)


def postgres_home() -> Path:
    """Return a folder with `bin/postgres` that every user may read. Fetches and unpacks it if it is missing."""
    return _unpacked("postgres", _unpack_jar_of_tar)


def _stored(pin: Pin) -> Path:
    return cache_folder() / "files" / pin.sha256 / pin.file_name


def _group(group: Group) -> list[Path]:
    fetch(groups=[group])
    files = [_stored(pin) for pin in pins() if pin.group == group]
    if not files:
        known = ", ".join(sorted({pin.platform for pin in read_lock() if pin.platform}))
        raise StackError(
            f'there is no archive of {group} for "{this_platform()}", only for {known}',
            hint="use services of your own: stack: none in cdc-views.yaml",
        )
    return files


@contextlib.contextmanager
def _locked_cache() -> Iterator[Path]:
    """Let one process fetch at a time, and remove what a killed one left."""
    cache = cache_folder()
    try:
        make_shared(cache)
        lock = (cache / "lock").open("w")
    except OSError as error:
        raise BadConfig(
            f'the cache "{cache}" cannot be written: {error.strerror}', hint="set CDC_VIEWS_CACHE to another folder"
        ) from None
    with lock:
        if not wait_until(lambda: try_lock(lock), _LOCK_LIMIT_S):
            raise DownloadFailed(f'another process has been filling the cache "{cache}" for {_LOCK_LIMIT_S:.0f} s')
        for remains in cache.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(remains, ignore_errors=True)
        try:
            yield cache
        except OSError as error:
            raise DownloadFailed(f'"{error.filename or cache}" cannot be written: {error.strerror}') from error


def _offline_files(wanted: Sequence[Pin]) -> dict[Pin, Path]:
    folder = Path(os.environ[FILES_VARIABLE])
    there = {file.name: file for file in sorted(folder.rglob("*")) if file.is_file()}
    absent = [pin.file_name for pin in wanted if pin.file_name not in there]
    if absent:
        raise DownloadFailed(
            f'"{folder}" lacks {len(absent)} of {len(wanted)} files, the first is "{absent[0]}"',
            hint=f"put the files that stack.lock lists there, or unset {FILES_VARIABLE}",
        )
    return {pin: there[pin.file_name] for pin in wanted}


def _online(wanted: Sequence[Pin], folder: Path, on_wait: Callable[[Path], None]) -> dict[Pin, Path]:
    dependencies = [
        ivy.Dependency(pin.organisation, pin.name, pin.revision, pin.classifier, pin.extension) for pin in wanted
    ]
    files = ivy.retrieve(dependencies, folder, lambda: on_wait(folder / "cache"))
    return {pin: files / pin.organisation / pin.file_name for pin in wanted}


def _keep(pin: Pin, file: Path, folder: Path) -> None:
    """Copy a file into the cache if it is the pinned one."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DownloadFailed(f'"{pin.file_name}" cannot be read: {error.strerror}') from None
    found = hashlib.sha256(content).hexdigest()
    if (len(content), found) != (pin.size, pin.sha256):
        raise DownloadFailed(
            f'"{pin.file_name}" is not the pinned file: '
            f"found {len(content)} bytes with SHA-256 {found}, wanted {pin.size} bytes with {pin.sha256}",
            hint="the file was not kept; try again, and if that does not help, do not trust its source",
        )
    checked = folder / pin.sha256
    checked.mkdir()
    (checked / pin.file_name).write_bytes(content)
    checked.chmod(0o755)
    (checked / pin.file_name).chmod(0o644)
    _put(checked, cache_folder() / "files" / pin.sha256)


def _put(folder: Path, target: Path) -> None:
    """Rename a folder into place. Another process may already have done so."""
    make_shared(target.parent)
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _unpacked(group: Group, unpack: Callable[[Path, Path], None]) -> Path:
    archive = _group(group)[0]
    target = cache_folder() / "unpacked" / archive.parent.name
    if not target.exists():
        with _locked_cache() as cache, tempfile.TemporaryDirectory(dir=cache, prefix=_TEMPORARY) as folder:
            content = Path(folder) / "content"
            content.mkdir(mode=0o755)
            content.chmod(0o755)
            unpack(archive, content)
            _put(content, target)
    return target


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        _extract(tar, folder)


def _unpack_jar_of_tar(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as jar:
        name = next(name for name in jar.namelist() if name.endswith(".txz"))
        with jar.open(name) as packed, lzma.open(packed) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as tar:
            _extract(tar, folder)


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    # Python before 3.11.4, as in Debian 12, has no filters. The archive is the pinned one, so that is safe.
    tar.extraction_filter = getattr(tarfile, "data_filter", None)
    tar.extractall(folder)


@contextlib.contextmanager
def _bar(wanted: Sequence[Pin], progress: bool) -> Iterator[Callable[[Path], None]]:
    """Draw a bar of the files and bytes in Ivy's cache."""
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    total = sum(pin.size for pin in wanted)
    with Progress(*columns, console=Console(stderr=True), disable=not progress) as bar:
        task = bar.add_task(f"fetching {len(wanted)} files", total=total)

        def on_wait(cache: Path) -> None:
            files = [file for file in cache.rglob("*") if file.suffix in _SUFFIXES]
            sizes = [size for file in files if (size := _size(file)) is not None]
            bar.update(task, completed=min(sum(sizes), total), description=f"fetching {len(sizes)}/{len(wanted)} files")

        yield on_wait
        bar.update(task, completed=total, description=f"fetched {len(wanted)} files")


def _size(file: Path) -> int | None:
    # Ivy renames a partial file once it is complete, possibly right now.
    try:
        return file.stat().st_size if file.is_file() else None
    except OSError:
        return None


if __name__ == "__main__":
    try:
        fetch(groups=[group for group in GROUPS if group in sys.argv[1:]] or GROUPS)
    except CdcViewsError as error:
        sys.exit(f"{type(error).__name__}: {error}")
