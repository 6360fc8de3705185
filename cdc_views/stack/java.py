"""Java, the one requirement that the user installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from cdc_views.errors import JavaMissing, ServiceKilled
from cdc_views.host.exit_status import signal_of

OLDEST: Final = 17
_HINT = f"install Java {OLDEST} or later and set JAVA_HOME or PATH to it"


def java_command() -> str:
    """Return the path of a recent enough `java`, from JAVA_HOME or else PATH. Raises JavaMissing, ServiceKilled."""
    java = _find()
    version = _major_version(java)
    if version < OLDEST:
        raise JavaMissing(f'"{java}" is Java {version}, wanted {OLDEST} or later', hint=_HINT)
    return java


def _find() -> str:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise JavaMissing(f'JAVA_HOME is "{home}", which holds no bin/java', hint=_HINT)
        return str(java.absolute())  # the services have another working directory
    if found := shutil.which("java"):
        return str(Path(found).absolute())
    raise JavaMissing("no java on PATH, and JAVA_HOME is not set", hint=_HINT)


@cache
def _major_version(java: str) -> int:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f'"{java}" cannot be run: {error}', hint=_HINT) from None
    if (signal_name := signal_of(run.returncode)) is not None:
        raise ServiceKilled(f'"{java} -version" was ended by {signal_name}', hint="try again")
    # `openjdk version "17.0.15" ...`; up to Java 8 it was `java version "1.8.0_392"`.
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    if not match:
        # The stub on macOS prints no version.
        raise JavaMissing(f'"{java} -version" names no version', hint=_HINT)
    return int(match[1])
