"""What a disk may hold after a loss of power: a model of one folder that follows each fsync.

What was brought to the disk is there; what was not, may be. The model keeps the two ends, nothing of it is there, or
every name is, with content as far as that was brought, and one between: every name with half of the content that was
not. Names that were removed since are there in all of these, and gone in a fourth. It must not be asked about what a
process outside writes, but where that is brought to the disk by this one.
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
    """`states` are what may be found, three or four for each moment, oldest first; `take_all` resets them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._synced: dict[int, bytes] = {}  # by inode
        self._names: dict[str, int] = {}
        self.states: list[Content] = []
        self._link = os.link
        monkeypatch.setattr(os, "fsync", self._fsync)
        monkeypatch.setattr(os, "link", self._linked)
        self._unlink = os.unlink
        monkeypatch.setattr(os, "unlink", self._unlinked)

    def take_all(self) -> None:
        """What is there is on the disk: where a test begins."""
        self._names = self._present()
        self._synced = {inode: (self._folder / name).read_bytes() for name, inode in self._names.items()
                        if not (self._folder / name).is_dir()}  # fmt: skip
        self.states = []

    def lose_power(self) -> list[Content]:
        """What may be found if that happens now."""
        least = {name: inode for name, inode in self._names.items() if self._is_reachable(name)}
        present = self._present()
        every = least | present
        half = {inode: self._half(name) for name, inode in every.items() if inode not in self._synced}
        states = [self._content(least), self._content(every), self._content(every, half)]
        return states if least.keys() <= present.keys() else [*states, self._content(present)]

    def _fsync(self, descriptor: int) -> None:
        file = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not file.is_relative_to(self._folder):
            return
        self.states += self.lose_power()
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
        if target.is_relative_to(self._folder):
            self.states += self.lose_power()

    def _unlinked(self, file: str | Path, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None or not Path(file).is_relative_to(self._folder):
            self._unlink(file, dir_fd=dir_fd)
            return
        inode = os.stat(file).st_ino
        self._unlink(file)
        if inode in self._names.values() and inode not in self._present().values():
            # Its number may be given to a new file.
            number = -1 - len(self._synced)
            self._synced[number] = self._synced.pop(inode, b"")
            self._names = {name: number if other == inode else other for name, other in self._names.items()}
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
    for state in {tuple(sorted(state.items())): state for state in states}.values():
        shutil.rmtree(scratch, ignore_errors=True)
        for name, content in state.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(content)
        found.append(read(scratch))
    return found
