"""Regenerate `stack.lock`: `python -m cdc_views.stack.lock`. For maintainers, after a change of DIRECT.

Ivy resolves the direct coordinates with their POMs. Every resulting file is pinned by size and SHA-256. The licences
are those that the POMs name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cdc_views.stack.ivy import Dependency, retrieve
from cdc_views.stack.pins import LOCK_FILE, Group, Pin

KAFKA: Final = "4.3.1"
DEBEZIUM: Final = "3.7.0.Final"
POSTGRES: Final = "18.3.0"
DELTA: Final = "4.4.0"
# The binding for slf4j-api 1.7, which Kafka brings along, as it does log4j-core 2.25.4.
LOG4J: Final = "2.25.4"
PLATFORMS: Final = {"linux-amd64": True, "linux-arm64v8": False, "darwin-amd64": False, "darwin-arm64v8": False}

_POSTGRES_MODULE = "embedded-postgres-binaries-"
DIRECT: Final[tuple[Dependency, ...]] = (
    Dependency("org.apache.kafka", "kafka_2.13", KAFKA, transitive=True),
    Dependency("org.apache.kafka", "connect-runtime", KAFKA, transitive=True),
    Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J),
    Dependency("io.debezium", "debezium-connector-postgres", DEBEZIUM, "plugin", "tar.gz"),
    *(Dependency("io.zonky.test.postgres", _POSTGRES_MODULE + platform, POSTGRES) for platform in PLATFORMS),
    # Their other dependencies are jars of Spark.
    Dependency("io.delta", "delta-spark_4.2_2.13", DELTA),
    Dependency("io.delta", "delta-storage", DELTA),
    Dependency("io.delta", "delta-kernel-api", DELTA),
    Dependency("io.delta", "delta-kernel-defaults", DELTA),
    Dependency("io.delta", "delta-kernel-unitycatalog", DELTA),
)

_GROUPS: Final[dict[str, Group]] = {
    "io.debezium": "debezium",
    "io.zonky.test.postgres": "postgres",
    "io.delta": "delta",
}

# POMs spell a licence in many ways. These patterns map them to SPDX names.
_SPDX: Final = (
    (r"apache.*2", "Apache-2.0"),
    (r"classpath|CPE|CDDL\+GPL", "GPL-2.0-only WITH Classpath-exception-2.0"),
    (r"EPL|eclipse public", "EPL-2.0"),
    (r"EDL|eclipse distribution", "BSD-3-Clause"),
    (r"CDDL.*1\.1", "CDDL-1.1"),
    (r"CDDL", "CDDL-1.0"),
    (r"LGPL.*2\.1", "LGPL-2.1-only"),
    (r"MPL.*1\.1", "MPL-1.1"),
    (r"BSD.?2|BSD-2", "BSD-2-Clause"),
    (r"BSD", "BSD-3-Clause"),
    (r"go license", "BSD-3-Clause"),
    (r"MIT|jquery", "MIT"),
    (r"CC0|public domain", "CC0-1.0"),
    (r"W3C", "W3C"),
)


def make_lock(folder: Path) -> list[Pin]:
    """Fetch everything into `folder`, and return the pins."""
    files = retrieve(DIRECT, folder, lambda: None, with_poms=True)
    return sorted(_pins(files, folder / "cache"), key=lambda pin: (pin.group, pin.organisation, pin.file_name))


def _pins(files: Path, cache: Path) -> Iterator[Pin]:
    direct = {(dependency.organisation, dependency.name): dependency for dependency in DIRECT}
    for module in sorted(cache.glob("*/*/ivy-*.xml")):
        organisation, name = module.parts[-3:-1]
        revision = module.stem.removeprefix("ivy-")
        dependency = direct.get((organisation, name), Dependency(organisation, name, revision))
        pin = Pin(
            organisation, name, revision, dependency.classifier, dependency.extension,
            _GROUPS.get(organisation, "kafka"), _platform(name), PLATFORMS.get(_platform(name) or "", True),
            size=0, sha256="", licence="",
        )  # fmt: skip
        file = files / organisation / pin.file_name
        if not file.exists():  # a parent POM, or a revision that another one evicted
            continue
        content = file.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        yield dataclasses.replace(pin, size=len(content), sha256=sha256, licence=_licence(module))


def _platform(name: str) -> str | None:
    return name.removeprefix(_POSTGRES_MODULE) if name.startswith(_POSTGRES_MODULE) else None


def _licence(module: Path) -> str:
    found = [_spdx(element) for element in ElementTree.parse(module).iter("license")]
    if module.parts[-3] == "io.zonky.test.postgres":
        # The POM names the licence of the packaging; the package contains Postgres.
        found.insert(0, "PostgreSQL")
    if not found:
        raise SystemExit(f"no licence in {module}")
    return ", ".join(dict.fromkeys(found))


def _spdx(element: ElementTree.Element) -> str:
    text = f"{element.get('name')} {element.get('url')}"
    return next((spdx for pattern, spdx in _SPDX if re.search(pattern, text, re.IGNORECASE)), text.strip())


def main() -> None:
    """Write the lock."""
    with tempfile.TemporaryDirectory() as folder:
        pins = make_lock(Path(folder))
    entries = ",\n".join("  " + json.dumps(dataclasses.asdict(pin)) for pin in pins)
    LOCK_FILE.write_text(f'{{"files": [\n{entries}\n]}}\n')
    print(f"{LOCK_FILE.name}: {len(pins)} files, {sum(pin.size for pin in pins)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
