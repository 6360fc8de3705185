"""A service that is a shell script, healthy once it has written `ready` into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cdc_views.stack.services.service import Service, Steps

GOOD = "touch ready; exec sleep 600"
ENDS_AT_ONCE = "echo the reason; exit 3"
NEVER_HEALTHY = "echo thinking; exec sleep 600"
STUBBORN = "trap '' TERM; touch ready; while true; do sleep 0.1; done"
WITH_CHILD = "sleep 600 & touch ready; wait"


class ScriptedService(Service):
    def __init__(self, state: Path, port: int, script: str = GOOD, name: str = "scripted") -> None:
        self.name = name  # type: ignore[misc]  # a class has one name, these have many
        super().__init__(state, port)
        self.script = script

    def is_healthy(self) -> bool:
        return (self.folder / "ready").exists()

    def _prepare(self) -> Steps:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "ready").unlink(missing_ok=True)
        yield

    def _command(self) -> Sequence[str]:
        return ["/bin/sh", "-c", f"cd {self.folder}; {self.script}"]
