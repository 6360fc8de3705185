"""The jars of Spark's Kafka source, which only the textbook baseline needs. They are fetched once and checked.

Spark 4.2.0 asks for spark-token-provider-kafka-0-10 4.2.0, which is not in the public repository (2026-11-21). The
source loads and reads with version 4.1.0-preview1.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cdc_views.errors import DownloadFailed
from cdc_views.host.locations import cache_folder
from cdc_views.stack.fetch import FILES_VARIABLE
from cdc_views.stack.folders import make_shared
from cdc_views.stack.ivy import Dependency, retrieve

SHA256: Final[Mapping[Dependency, str]] = {
    Dependency(
        "org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"
    ): "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    Dependency(
        "org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"
    ): "ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b",
    Dependency(
        "org.apache.kafka", "kafka-clients", "3.9.2"
    ): "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    Dependency(
        "org.apache.commons", "commons-pool2", "2.13.1"
    ): "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}


def kafka_source_jars() -> list[Path]:
    """The four jars, in the cache. Raises DownloadFailed."""
    kept = cache_folder() / "bench"
    wanted = {dependency: kept / sha256 / _file_name(dependency) for dependency, sha256 in SHA256.items()}
    missing = [dependency for dependency, file in wanted.items() if not file.exists()]
    if missing:
        make_shared(kept)
        with tempfile.TemporaryDirectory(dir=kept) as folder:
            found = _offline() or retrieve(missing, Path(folder), lambda: None)
            for dependency in missing:
                [file] = found.rglob(_file_name(dependency))
                _keep(file, wanted[dependency], SHA256[dependency])
    return list(wanted.values())


def _offline() -> Path | None:
    folder = os.environ.get(FILES_VARIABLE)
    return Path(folder) if folder else None


def _file_name(dependency: Dependency) -> str:
    return f"{dependency.name}-{dependency.revision}.{dependency.extension}"


def _keep(file: Path, target: Path, sha256: str) -> None:
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != sha256:
        raise DownloadFailed(f'"{file.name}" is not the pinned file: found SHA-256 {found}, wanted {sha256}')
    make_shared(target.parent)
    # Renamed when complete: another process may read it at any moment.
    shutil.copyfile(file, target.with_suffix(".part"))
    target.with_suffix(".part").replace(target)
