"""The ports of a stack: given ones, or free ones that are chosen once and remembered in the state folder."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from cdc_views.errors import BadConfig
from cdc_views.stack.services.service import is_free

NAMES: Final = ("postgres", "kafka", "controller", "connect")

_FILE = "ports.json"
# Below the ephemeral ports: an outgoing connection could take one of those while its service restarts.
_RANGE: Final = range(20_000, 30_000)


def choose_ports(state: Path, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return a port for each of NAMES: the wanted, the remembered, or a free one. Writes nothing. Raises BadConfig."""
    if unknown := set(wanted) - set(NAMES):
        raise BadConfig(f'there is no port named "{min(unknown)}", only {", ".join(NAMES)}')
    chosen = {**_remembered(state), **wanted}
    for name in NAMES:
        chosen.setdefault(name, free_port(exclude=chosen.values()))
    for name, port in wanted.items():
        for other in NAMES:
            if other != name and chosen[other] == port:
                raise BadConfig(f"port {port} is wanted for {name}, and is that of {other}", hint="give another port")
    return chosen


def keep_ports(state: Path, wanted: Mapping[str, int], running: Collection[str], *, formatted: bool) -> dict[str, int]:
    """Choose ports and remember them. Raises BadConfig for a port that cannot change now.

    `running` are the services that run. `formatted`: Kafka's data exist, and they hold the controller's port.
    """
    remembered = _remembered(state)
    for name, port in wanted.items():
        fixed = formatted if name == "controller" else name in running
        if fixed and port != remembered.get(name, port):
            raise BadConfig(
                f"port {port} is wanted for {name}, which already uses {remembered[name]}",
                hint='run "cdc-views down" first; for the controller "cdc-views down --purge", which deletes the data',
            )
    chosen = choose_ports(state, wanted)
    if chosen != remembered:
        new = state / f"{_FILE}.new"
        new.write_text(json.dumps(chosen))
        new.replace(state / _FILE)
    return chosen


def forget_ports(state: Path) -> None:
    """Forget the ports, so that the next stack chooses new ones."""
    (state / _FILE).unlink(missing_ok=True)


def _remembered(state: Path) -> dict[str, int]:
    try:
        return dict(json.loads((state / _FILE).read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return {}


def free_port(exclude: Collection[int]) -> int:
    """Return a port that nobody listens on and that is not in `exclude`."""
    return next(port for port in random.sample(_RANGE, 1000) if port not in exclude and is_free(port))
