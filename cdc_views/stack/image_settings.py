"""Write the settings of the Docker images: `python -m cdc_views.stack.image_settings FOLDER`.

They are those of the native stack, but for the addresses where the services listen. docker/<service>/start adds the
addresses that are known only when a container starts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cdc_views.stack.services import connect, jvm, kafka, postgres

CONTROLLER = "127.0.0.1:9093"


def write_settings(folder: Path) -> None:
    """Write the configuration files of all three services."""
    folder.mkdir(parents=True)
    settings = postgres.SETTINGS | {"listen_addresses": "*"}
    lines = (f"{name} = '{value}'\n" for name, value in settings.items())
    (folder / "postgresql.conf").write_text("".join(lines))
    (folder / "initdb.options").write_text("".join(f"{option}\n" for option in postgres.INITDB_OPTIONS))
    jvm.write_properties(
        folder / "server.properties",
        {
            **kafka.SETTINGS,
            # Other containers use the first listener, and the host uses the second. Each gets its own address back.
            "listeners": f"PLAINTEXT://:9092,HOST://:19092,CONTROLLER://{CONTROLLER}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": CONTROLLER,
        },
    )
    jvm.write_properties(folder / "fence.properties", kafka.fencing(CONTROLLER))
    jvm.write_properties(folder / "worker.properties", {**connect.SETTINGS, "listeners": "http://:8083"})
    jvm.write_logging(folder / "log4j2.properties")
    (folder / "java.options").write_text("".join(f"{flag}\n" for flag in jvm.FLAGS))


if __name__ == "__main__":
    write_settings(Path(sys.argv[1]))
