"""One round: a history from the snapshot to the final damage, and its results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bench.command import tell
from bench.soak.alarms import Damage
from bench.soak.faults import FAULTS, WEIGHTS, Fault
from bench.soak.load import TABLES, Load
from bench.soak.readers import PinnedReader
from bench.soak.world import World, is_behind, is_beyond
from cdc_views.base.names import TableName
from cdc_views.errors import CheckFailed, FaultNotReached
from cdc_views.host.waiting import wait_until
from cdc_views.stack.services import process
from cdc_views.testing.epochs import EpochCheck
from cdc_views.testing.oracle import WalOracle

FIRST_EPOCH_LIMIT_S: Final = 240.0
RECOVERY_LIMIT_S: Final = 180.0
ALARM_LIMIT_S: Final = 120.0

# A query for each view, in Postgres's SQL, and written in another way than the view.
QUESTIONS: Final = {
    "bank": "SELECT a.total + s.total AS total, a.n + s.n AS holdings"
    " FROM (SELECT sum(balance) AS total, count(*) AS n FROM accounts) a,"
    " (SELECT sum(balance) AS total, count(*) AS n FROM savings) s",
    "spending": """-- key: account_id
SELECT a.id AS account_id, a.balance, o.n AS orders, o.amount FROM accounts a
JOIN (SELECT account_id, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY account_id) o
ON o.account_id = a.id""",
    "last_orders": """-- key: account_id, id
SELECT l.* FROM (SELECT DISTINCT account_id FROM orders) a
CROSS JOIN LATERAL (SELECT account_id, id, amount FROM orders o WHERE o.account_id = a.account_id
                    ORDER BY id DESC LIMIT 3) l""",
    "dearest": """-- key: shop, of_shop, sku
SELECT s.shop, i.shop AS of_shop, i.sku FROM (SELECT DISTINCT shop FROM items) s
JOIN items i ON i.price = (SELECT price FROM items o WHERE o.shop = s.shop ORDER BY price DESC LIMIT 1)""",
}


@dataclass
class Tally:
    """The results of all rounds; times in seconds."""

    versions: int = 0
    epochs: int = 0
    readings: int = 0
    kills: int = 0
    wrong: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    ways: dict[str, set[str]] = field(default_factory=dict)  # by view
    fired: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    recoveries_s: list[float] = field(default_factory=list)
    alarms_s: list[float] = field(default_factory=list)


class Round:
    """One round. Raises CheckFailed for an error without a fault, NotRunning if something does not recover."""

    def __init__(self, world: World, random: Random, rate: float, pause_s: float, tally: Tally) -> None:
        """`pause_s` is the average time from one fault to the next; `rate` is in transactions per second."""
        self._world = world
        self._random = random
        self._rate = rate
        self._pause_s = pause_s
        self._tally = tally

    def run(self, is_over: Callable[[int], bool], until_s: float, damage: Damage) -> None:
        """Run faults until a time of `time.monotonic()`, or until enough versions are checked. Then do the damage."""
        world, seed = self._world, self._random.randrange(1_000_000)
        with WalOracle(world.dsn, [f"public.{table}" for table in TABLES]) as oracle:
            check = EpochCheck(oracle, world.warehouse, QUESTIONS)
            reader = PinnedReader(world.warehouse, seed)
            try:
                self._run(seed, check, reader, is_over, until_s, damage)
            finally:
                self._count(reader, check)

    def _run(
        self, seed: int, check: EpochCheck, reader: PinnedReader, is_over: Callable[[int], bool], until_s: float,
        damage: Damage,
    ) -> None:  # fmt: skip
        world = self._world
        with ExitStack() as reading:
            with world.under_load(self._rate, seed) as load:
                world.start_engine()
                world.wait(lambda: world.published() is not None, FIRST_EPOCH_LIMIT_S, "the first epoch")
                reading.enter_context(reader)
                while time.monotonic() < until_s and not is_over(check.versions):
                    self._fault(self._random.choices(FAULTS, WEIGHTS)[0], load)
                    self._check(check)
                    world.pause(self._random.uniform(0, 2 * self._pause_s))
            committed = load.committed()
            world.wait(lambda: not is_behind(world.clock(), committed), RECOVERY_LIMIT_S, "all that was committed")
            self._check(check)
            with world.under_load(self._rate, seed + 1):
                self._damage(damage)
            world.stop_engine()
            if not damage.is_of_schema:
                self._check(check, damage.table)

    def _fault(self, fault: Fault, load: Load) -> None:
        world, committed, began = self._world, load.committed(), time.monotonic()
        killed_before, had_intent = world.killed_in_epoch, world.has_open_intent()
        tell(fault.name)
        try:
            fault.fire(world, self._random)
        except FaultNotReached as error:
            tell(f"{fault.name} did not come about: {error.message}")
            return
        self._tally.fired[fault.name] += 1
        # Everything published meanwhile is visible. If it is behind the earlier commits, there were unread events.
        if fault.kind == "kill" and (had_intent or is_behind(world.clock(), committed)):
            self._tally.kills += 1
        after = load.committed()
        world.wait(lambda: is_beyond(world.clock(), after), RECOVERY_LIMIT_S, f"an epoch after {fault.name}")
        # An engine that was killed at a point of its next start had two faults. The second one starts there.
        if fault.is_twofold:
            self._tally.kills += world.killed_in_epoch - killed_before
        took_s = time.monotonic() - max(began, world.killed_at_s)
        self._tally.recoveries_s.append(took_s)
        tell(f"{fault.name}: recovered after {took_s:.1f} s")

    def _damage(self, damage: Damage) -> None:
        world = self._world
        before = world.clock()
        world.wait(lambda: is_beyond(world.clock(), before), RECOVERY_LIMIT_S, "an epoch under load")
        world.let_end()
        damage.do(world)
        began = time.monotonic()
        stopped = TableName.parse(damage.table) if damage.table is not None else None
        if not wait_until(lambda: world.engine.pid is None or stopped in world.stopped(), ALARM_LIMIT_S):
            raise CheckFailed(
                f"{damage.name}: no alarm within {ALARM_LIMIT_S:.0f} s:\n{process.last_lines(world.engine.log_file)}"
            )
        took_s = time.monotonic() - began
        error = world.error() if stopped is None else world.stopped().get(stopped)
        if error not in damage.errors:
            raise CheckFailed(
                f"{damage.name}: reported as {error}, wanted {' or '.join(sorted(damage.errors))}:\n"
                f"{process.last_lines(world.engine.log_file)}"
            )
        if stopped is not None:
            now = world.clock()
            world.wait(lambda: is_beyond(world.clock(), now), RECOVERY_LIMIT_S, f"an epoch without {stopped}")
        self._tally.fired[damage.name] += 1
        self._tally.alarms_s.append(took_s)
        tell(f"{damage.name}: {error} after {took_s:.1f} s")

    def _check(self, check: EpochCheck, stopped: str | None = None) -> None:
        """Judge what was published since the last call. Nobody reads a stopped table."""
        found = (each for each in check.differences() if (each.table, each.difference.kind) != (stopped, "failed"))
        self._tally.wrong += map(str, found)
        for name, ways in self._world.ways().items():
            self._tally.ways.setdefault(name, set()).update(ways)
        tell(f"{check.epochs} epochs, {check.versions} versions checked, {len(self._tally.wrong)} wrong")

    def _count(self, reader: PinnedReader, check: EpochCheck) -> None:
        tally = self._tally
        tally.versions += check.versions
        tally.epochs += check.epochs
        tally.readings += reader.readings
        tally.broken += reader.broken
        tally.wrong += reader.failures
        tally.ended += self._world.ended
