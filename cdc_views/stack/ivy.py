"""Apache Ivy, one of pyspark's jars: it fetches files from a Maven repository and needs nothing but Java.

No repository is named here. Ivy knows the public one; `$CDC_VIEWS_IVY_SETTINGS` can name an Ivy settings file with a
company's own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from cdc_views.errors import BadConfig, DownloadFailed
from cdc_views.stack.java import java_command

SETTINGS_VARIABLE: Final = "CDC_VIEWS_IVY_SETTINGS"
_ATTEMPTS = 3

# Without POMs and the repository's checksums, a third of the requests is enough. We check our own SHA-256.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="net" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers><ibiblio name="public" m2compatible="true" timeoutConstraint="net" {options}/></resolvers>
</ivysettings>
"""
_FILES_ONLY = 'usepoms="false" useMavenMetadata="false" checksums=""'


@dataclass(frozen=True)
class Dependency:
    """A file, or with `transitive` a module and all its runtime dependencies."""

    organisation: str
    name: str
    revision: str
    classifier: str | None = None
    extension: str = "jar"
    transitive: bool = False

    def to_xml(self) -> str:
        """Return the XML element for an Ivy file."""
        place = f"org={quoteattr(self.organisation)} name={quoteattr(self.name)} rev={quoteattr(self.revision)}"
        if self.transitive:
            return f'<dependency {place} conf="default->runtime,master"/>'
        kind = f"type={quoteattr(self.extension)} ext={quoteattr(self.extension)}"
        classifier = f" m:classifier={quoteattr(self.classifier)}" if self.classifier else ""
        artifact = f"<artifact name={quoteattr(self.name)} {kind}{classifier}/>"
        # The configuration "default" exists with and without a POM.
        return f'<dependency {place} transitive="false" conf="default->default">{artifact}</dependency>'


def retrieve(
    dependencies: Sequence[Dependency], folder: Path, on_wait: Callable[[], None], *, with_poms: bool = False
) -> Path:
    """Fetch files into `folder` and return the folder that holds them as `<organisation>/<file name>`.

    Ivy's own cache (`cache/`) and log are also written to `folder`. `on_wait` is called a few times per second.
    Raises DownloadFailed with the end of Ivy's log.
    """
    command = _command(dependencies, folder, with_poms)
    log = folder / "ivy.log"
    for _ in range(_ATTEMPTS):
        # Ivy's cache keeps the files that an earlier attempt fetched.
        if _run(command, log, on_wait) == 0:
            return folder / "files"
    problems = [line.strip() for line in log.read_text(errors="replace").splitlines() if "::" in line or "ERR" in line]
    raise DownloadFailed(
        "the pinned files could not be fetched:\n" + "\n".join(problems[-12:]),
        hint=f"behind a proxy, set JAVA_TOOL_OPTIONS; for a company's repository, set {SETTINGS_VARIABLE}; "
        "offline, set CDC_VIEWS_FILES to a folder with the files",
    )


def _command(dependencies: Sequence[Dependency], folder: Path, with_poms: bool) -> list[str]:
    ivy_file = folder / "ivy.xml"
    ivy_file.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '<info organisation="cdc-views" module="stack"/>\n<dependencies>\n'
        + "\n".join(dependency.to_xml() for dependency in dependencies)
        + "\n</dependencies>\n</ivy-module>\n"
    )
    pattern = f"{folder}/files/[organisation]/[artifact]-[revision](-[classifier]).[ext]"
    return [java_command(), f"-Divy.home={folder}", "-jar", str(_ivy_jar()),
            "-settings", str(_settings(folder, with_poms)), "-cache", str(folder / "cache"),
            "-ivy", str(ivy_file), "-retrieve", pattern]  # fmt: skip


def _settings(folder: Path, with_poms: bool) -> Path:
    if chosen := os.environ.get(SETTINGS_VARIABLE):
        if not Path(chosen).is_file():
            raise BadConfig(f'{SETTINGS_VARIABLE} is "{chosen}", which is not a file')
        return Path(chosen).absolute()
    settings = folder / "ivysettings.xml"
    settings.write_text(_SETTINGS.format(options="" if with_poms else _FILES_ONLY))
    return settings


def _ivy_jar() -> Path:
    # Importing pyspark would take a second, and only its path is needed.
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "pyspark is a dependency of this package"
    assert spec.origin is not None
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def _run(command: list[str], log: Path, on_wait: Callable[[], None]) -> int:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            while True:
                try:
                    return process.wait(0.2)
                except subprocess.TimeoutExpired:
                    on_wait()
        finally:
            process.kill()
            process.wait()
