"""Where the classes of a JVM are archived, so that a later JVM starts in about half the time.

stack/class_archive.py makes the archives (class data sharing, JEP 350).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from cdc_views.host.locations import cache_folder


def class_archive(program: str, java: str, jars: Iterable[Path]) -> Path:
    """The file for an archive of a program's classes, by this `java`, from these jars or folders of jars."""
    # A JVM does not use an archive of another JVM, or one of jars that have changed since.
    files = [Path(java).resolve(), *jars]
    parts = [program, *(f"{file} {file.stat().st_mtime_ns}" for file in files if file.exists())]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"
