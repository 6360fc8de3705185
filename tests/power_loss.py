"""What a disk may hold after a loss of power: a model of one folder that follows each fsync.

What was brought to the disk is there; what was not, may be. The model keeps the two ends, nothing of it is there, or
every name is, with content as far as that was brought, and one between: every name with half of the content that was
not. It must not be asked about what a process outside writes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

Content = dict[str, bytes]


class Disk:
    """Use `watch` first; `states` are what may be found, three for each moment, oldest first."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._synced: dict[int, bytes] = {}  # by inode
        self._names: dict[str, int] = {}
        self.states: list[Content] = []
        self._link = os.link
        monkeypatch.setattr(os, "fsync", self._fsync)
        monkeypatch.setattr(os, "link", self._linked)

    def take_all(self) -> None:
        """What is there is on the disk: where a test begins."""
        self._names = self._present()
        self._synced = {inode: (self._folder / name).read_bytes() for name, inode in self._names.items()
                        if not (self._folder / name).is_dir()}  # fmt: skip
        self.states = []

    def lose_power(self) -> list[Content]:
        """What may be found if that happens now."""
        least = {name: inode for name, inode in self._names.items() if self._is_reachable(name)}
        every = least | self._present()
        half = {inode: self._half(name) for name, inode in every.items() if inode not in self._synced}
        return [self._content(least), self._content(every), self._content(every, half)]

    def _fsync(self, descriptor: int) -> None:
        self.states += self.lose_power()
        file = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if file.is_dir():
            inside = {self._name(each): os.stat(each).st_ino for each in file.iterdir()}
            gone = [name for name in self._names if Path(name).parent == Path(self._name(file)) and name not in inside]
            self._names |= inside
            for name in gone:
                del self._names[name]
        else:
            self._synced[os.fstat(descriptor).st_ino] = file.read_bytes()
        self.states += self.lose_power()

    def _linked(self, source: Path, target: Path) -> None:
        self._link(source, target)
        self.states += self.lose_power()

    def _present(self) -> dict[str, int]:
        return {self._name(each): os.stat(each).st_ino for each in self._folder.rglob("*")}

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self._folder)) if file != self._folder else "."

    def _is_reachable(self, name: str) -> bool:
        return all(str(folder) in self._names for folder in Path(name).parents if str(folder) != ".")

    def _half(self, name: str) -> bytes:
        file = self._folder / name
        content = file.read_bytes() if file.is_file() else b""
        return content[: len(content) // 2]

    def _content(self, names: dict[str, int], unsynced: Mapping[int, bytes] = MappingProxyType({})) -> Content:
        return {name: self._synced.get(inode, unsynced.get(inode, b"")) for name, inode in names.items()
                if not (self._folder / name).is_dir()}  # fmt: skip


def found_after(states: list[Content], scratch: Path, read: Callable[[Path], object]) -> list[object]:
    """What `read` finds in a folder that holds each of these states."""
    found = []
    for state in states:
        shutil.rmtree(scratch, ignore_errors=True)
        for name, content in state.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(content)
        found.append(read(scratch))
    return found
