"""What the two Java services share: JVM flags, class path, log configuration, properties files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cdc_views.host.class_archive import class_archive
from cdc_views.stack.fetch import kafka_jars
from cdc_views.stack.java import java_command

# Both services run for days with heaps of this size. A JVM that is out of memory had better exit. Debezium converts
# times in arrays through the JVM's time zone, where some of them may not exist; in UTC all exist.
FLAGS: Final = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Duser.timezone=UTC")

# In the first minutes under a small load, the second compiler takes half of the CPU time of Kafka and Connect.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1"

# Everything goes to the console, which is the service's log file. The loggers below repeat themselves endlessly in a
# healthy stack, so they log warnings only.
_LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %m (%c{1})%n
"""
_QUIETER: Final = (
    "org.apache.kafka.common.config.AbstractConfig",
    "org.apache.kafka.clients",
    "org.apache.kafka.connect.runtime.AbstractWorkerSourceTask",
    "org.apache.kafka.connect.runtime.rest.RestServer",
    "org.apache.kafka.storage.internals.log",
    "kafka.log",
    "org.eclipse.jetty",
    "org.glassfish",
)

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def java(main: str, *arguments: str, logging: Path, short_lived: bool) -> list[str]:
    """Return the command for a class of Kafka, to run in `environment()`. `short_lived`: it runs for minutes only."""
    archive = service_archive(main)
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    flags = [*FLAGS, *shared, *([_SHORT_LIVED] if short_lived else [])]
    return [java_command(), *flags, f"-Dlog4j2.configurationFile={logging}", main, *arguments]


def service_archive(main: str) -> Path:
    """The file for an archive of the classes of a service. Kafka's tools use that of the broker."""
    program = "kafka" if main.startswith("kafka.") else main
    return class_archive(program, java_command(), kafka_jars())


def environment() -> dict[str, str]:
    """Return the class path as an environment variable, which keeps the command readable in process lists."""
    return {"CLASSPATH": os.pathsep.join(map(str, kafka_jars()))}


def write_logging(file: Path) -> None:
    """Write the configuration of Log4j."""
    quieter = [f"logger.{i}.name = {name}\nlogger.{i}.level = WARN\n" for i, name in enumerate(_QUIETER)]
    file.write_text(_LOGGING + "".join(quieter))


def write_properties(file: Path, properties: Mapping[str, str | int]) -> None:
    """Write a .properties file, which Java reads as Latin-1. Values must not contain line breaks."""
    lines = [f"{name}={_escaped(str(value))}\n" for name, value in properties.items()]
    file.write_text("".join(lines), encoding="ascii")


def _escaped(value: str) -> str:
    return _NOT_ASCII.sub(
        lambda found: re.sub("....", r"\\u\g<0>", found[0].encode("utf-16-be", "surrogatepass").hex()),
        value.replace("\\", "\\\\"),
    )
