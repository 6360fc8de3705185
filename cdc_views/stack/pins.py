"""The pinned files of the stack, from `stack.lock`."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_args

Group = Literal["kafka", "debezium", "postgres", "delta"]

GROUPS: Final[tuple[Group, ...]] = get_args(Group)
LOCK_FILE: Final = Path(__file__).with_name("stack.lock")


@dataclass(frozen=True)
class Pin:
    """One file of a Maven repository. `size` is in bytes; `platform` is None for a file that all platforms need."""

    organisation: str
    name: str
    revision: str
    classifier: str | None
    extension: str
    group: Group
    platform: str | None
    tested: bool
    size: int
    sha256: str
    licence: str

    @property
    def file_name(self) -> str:
        """The name of the file in a repository."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{classifier}.{self.extension}"


def read_lock(file: Path = LOCK_FILE) -> tuple[Pin, ...]:
    """Read the pinned files of all platforms, in the order of the lock."""
    return tuple(Pin(**entry) for entry in json.loads(file.read_text())["files"])


def this_platform() -> str:
    """Return this platform as the archives of Postgres name it, for example `linux-amd64`."""
    machine = platform.machine().lower()
    names = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64v8", "arm64": "arm64v8"}
    return f"{platform.system().lower()}-{names.get(machine, machine)}"


@cache
def pins() -> tuple[Pin, ...]:
    """Return the files that this machine needs."""
    here = this_platform()
    return tuple(pin for pin in read_lock() if pin.platform in (None, here))
