"""cdc_views as its users get it: the wheel that is built from the sdist, installed into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMIT_S = 120


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel; it sees the packages that cdc_views depends on, and no checkout of cdc_views."""

    wheel: Path
    folder: Path

    @property
    def package(self) -> Path:
        """The package's folder."""
        return next(self.folder.glob("lib/*/site-packages")) / "cdc_views"

    def run(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        program, *rest = arguments
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CDC_VIEWS_"))}
        return subprocess.run(
            [self.folder / "bin" / program, *rest],
            cwd=cwd, env={**inherited, **(environment or {})}, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip


def build_sdist(folder: Path) -> Path:
    """Build the sdist from the checkout."""
    _python("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder))
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def build_wheel(source: Path, folder: Path) -> Path:
    """Build the wheel from a checkout or an sdist, without a network."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(build_sdist(folder / "sdist"), folder)
    place = folder / "environment"
    venv.create(place, symlinks=True)
    made = Installed(wheel, place)
    _pip("--python", str(place / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    # A path that a .pth file adds is searched, but its own .pth files, by which a checkout is found, are not read.
    (made.package.parent / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return made


def _pip(*arguments: str) -> None:
    _python("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", *arguments)


def _python(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
