"""What the two Java services share: flags, class path, log configuration, properties files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cdc_views.stack.fetch import kafka_jars
from cdc_views.stack.java import java_command

# With -server heaps of this size both run for days; a JVM that is out of memory is better dead. Debezium moves
# the times in arrays by way of Java's zone, in which some of them may not exist.
FLAGS: Final = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Duser.timezone=UTC")

# In the first minutes the second compiler takes half of the processor that Kafka and Connect take under a small load.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1"

# Everything to the console, which is the service's log file. What is quieter here repeats itself for
# ever in a stack that works.
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


def java(main: str, *arguments: str, logging: Path, short_lived: bool) -> list[str]:
    """A command that runs a class of Kafka's, for minutes if it is `short_lived`; `environment` goes with it."""
    flags = [*FLAGS, _SHORT_LIVED] if short_lived else FLAGS
    return [java_command(), *flags, f"-Dlog4j2.configurationFile={logging}", main, *arguments]


def environment() -> dict[str, str]:
    """The class path; in the environment it does not make the command unreadable in lists of processes."""
    return {"CLASSPATH": os.pathsep.join(map(str, kafka_jars()))}


def write_logging(file: Path) -> None:
    """Log4j's configuration."""
    quieter = [f"logger.{i}.name = {name}\nlogger.{i}.level = WARN\n" for i, name in enumerate(_QUIETER)]
    file.write_text(_LOGGING + "".join(quieter))


def write_properties(file: Path, properties: Mapping[str, str | int]) -> None:
    """A .properties file; values without line ends."""
    lines = [f"{name}={str(value).replace(chr(92), chr(92) * 2)}\n" for name, value in properties.items()]
    file.write_text("".join(lines))
