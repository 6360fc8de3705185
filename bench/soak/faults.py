"""Faults from which everything must recover by itself.

Services and the engine are killed or stopped, networks fail, and a DBA makes changes that change no row.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, LiteralString

import psutil

from bench.soak.proxy import Mode
from bench.soak.world import World
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.demo.programs import Program
from cdc_views.errors import FaultNotReached
from cdc_views.source.connection import connect
from cdc_views.stack.services import process
from cdc_views.stack.services.service import Service

NETWORKS: Final = ("postgres", "kafka")
MODES: Final[tuple[Mode, ...]] = ("cut", "held", "half_open", "slow")
STOPPED_S: Final = (1.0, 8.0)  # how long a process is stopped, or a network is held

# Fault points of an engine that continues after another one, and then runs.
POINTS: Final = (
    "takeover.after_record", "takeover.after_fence", "recovery.after_intent", "epoch.after_cut", "epoch.after_intent",
    "mirrors.after_first_commit", "epoch.after_mirrors", "views.after_first_commit", "epoch.before_publish",
    "epoch.after_publish", "upkeep.after_data_file", "upkeep.after_compaction", "upkeep.after_checkpoint",
    "upkeep.after_first_log_file", "upkeep.after_first_removed_file", "upkeep.after_control_file",
)  # fmt: skip

# Changes to captured tables by DBAs and other projects that change neither rows nor events.
HARMLESS: Final[Sequence[Sequence[LiteralString]]] = (
    ["CREATE INDEX ON orders (account_id)", "COMMENT ON TABLE orders IS 'indexed'", "ANALYZE orders"],
    ["ALTER TABLE notes ALTER body SET STATISTICS 50", "ALTER TABLE items ALTER price SET DEFAULT 1"],
    ["DROP PUBLICATION IF EXISTS other", "CREATE PUBLICATION other FOR TABLE orders, items"],
    ["ALTER TABLE items DISABLE TRIGGER ALL", "ALTER TABLE items ENABLE TRIGGER ALL"],
    ["CREATE TABLE IF NOT EXISTS unrelated (id int)", "ALTER TABLE unrelated ADD COLUMN IF NOT EXISTS v int",
     "TRUNCATE unrelated"],
)  # fmt: skip

Fire = Callable[[World, Random], None]


@dataclass(frozen=True)
class Fault:
    """`fire` returns when the fault is over, as far as an operator or a supervisor handles it.

    A `kill` counts if there was something to lose at that moment. Raises FaultNotReached if it did not happen. A
    twofold kill is followed by another one later, if its point is reached.
    """

    name: str
    kind: Literal["kill", "stop", "network", "ddl"]
    fire: Fire
    is_twofold: bool = False


def _kill_engine(world: World, random: Random) -> None:
    _running(world.engine)
    world.engine.kill()


def _kill_python(world: World, random: Random) -> None:
    process.send([_running(world.engine)], signal.SIGKILL)


def _kill_jvm(world: World, random: Random) -> None:
    process.send(_jvms(world), signal.SIGKILL)


def _kill_at_point(world: World, random: Random) -> None:
    """Kill the engine, and let the next one kill itself at a point: two crashes, the second perhaps much later."""
    _kill_engine(world, random)
    world.start_engine(f"{random.choice(POINTS)}:kill@{random.choice((1, 1, 2, 5))}")


def _stop(pids: Callable[[World], Sequence[int]]) -> Fire:
    def fire(world: World, random: Random) -> None:
        stopped = pids(world)
        process.send(stopped, signal.SIGSTOP)
        world.pause(random.uniform(*STOPPED_S))
        process.send(stopped, signal.SIGCONT)

    return fire


def _killed(service: Callable[[World], Service], signum: signal.Signals = signal.SIGKILL) -> Fire:
    def fire(world: World, random: Random) -> None:
        found = service(world)
        pid = _running(found)
        if signum == signal.SIGKILL:
            found.kill()
        else:
            process.send([pid], signum)
            world.wait(lambda: found.pid is None, 60, f"the end of {found.name}")
        world.pause(random.uniform(0, 2))
        world.restart(found)

    return fire


def _harmless_ddl(world: World, random: Random) -> None:
    with connect(world.dsn, pinned=FOR_SQL_OF_USERS) as source:
        for statement in random.choice(HARMLESS):
            source.execute(statement)


def _network(target: str, mode: Mode) -> Fault:
    def fire(world: World, random: Random) -> None:
        network = world.networks[target]
        connections = network.set(mode)
        world.pause(random.uniform(*STOPPED_S))
        network.set("open")
        _require(connections > 0, "nobody was connected")

    return Fault(f"{target}_network_{mode}", "network", fire)


def _running(what: Program | Service) -> int:
    """The pid of a process. Raises FaultNotReached if it does not run."""
    pid = what.pid
    if pid is None:
        raise FaultNotReached(f"{what.name} was not running")
    return pid


def _family(of: Callable[[World], Program | Service]) -> Callable[[World], Sequence[int]]:
    """A process, and all that it has started."""
    return lambda world: process.family(_running(of(world)))


def _jvms(world: World) -> list[int]:
    jvms = [pid for pid in process.family(_running(world.engine)) if _name(pid) == "java"]
    _require(bool(jvms), "the engine had no JVM")
    return jvms


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise FaultNotReached(problem)


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


def _postgres(world: World) -> Service:
    return world.stack.postgres


def _kafka(world: World) -> Service:
    return world.stack.kafka


def _connect(world: World) -> Service:
    return world.stack.connect


FAULTS: Final = (
    Fault("engine_killed", "kill", _kill_engine),
    Fault("python_killed", "kill", _kill_python),
    Fault("jvm_killed", "kill", _kill_jvm),
    Fault("engine_killed_at_point", "kill", _kill_at_point, is_twofold=True),
    Fault("connect_killed", "kill", _killed(_connect)),
    Fault("kafka_killed", "kill", _killed(_kafka)),
    Fault("postgres_killed", "kill", _killed(_postgres)),
    Fault("postgres_immediate", "kill", _killed(_postgres, signal.SIGQUIT)),
    Fault("postgres_fast", "kill", _killed(_postgres, signal.SIGINT)),
    Fault("engine_stopped", "stop", _stop(_family(lambda world: world.engine))),
    Fault("python_stopped", "stop", _stop(lambda world: [_running(world.engine)])),
    Fault("jvm_stopped", "stop", _stop(_jvms)),
    Fault("connect_stopped", "stop", _stop(_family(_connect))),
    Fault("kafka_stopped", "stop", _stop(_family(_kafka))),
    Fault("postgres_stopped", "stop", _stop(_family(_postgres))),
    *(_network(target, mode) for target in NETWORKS for mode in MODES),
    Fault("harmless_ddl", "ddl", _harmless_ddl),
)

# Eight of ten faults are kills, because an engine loses most by them.
_SHARES: Final = {"kill": 16, "stop": 1, "network": 1, "ddl": 2}
_COUNTS: Final = Counter(fault.kind for fault in FAULTS)
WEIGHTS: Final = tuple(_SHARES[fault.kind] / _COUNTS[fault.kind] for fault in FAULTS)
