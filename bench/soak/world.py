"""The target of the faults: services, a database under load, and an engine that is restarted when it ends."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from psycopg.conninfo import make_conninfo

from bench.command import tell
from bench.rig import create_database, drop_database, write_project
from bench.soak.load import SHELVES, TABLES, Load
from bench.soak.proxy import HOST, Proxy
from cdc_views import errors, faults
from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.config import INTERPRETED, SHORT_LIVED, Settings, load_settings
from cdc_views.demo.programs import Program, engine
from cdc_views.engine.capture.readiness import fix
from cdc_views.engine.capture.start import forget_capture
from cdc_views.engine.service.patience import AWAY
from cdc_views.errors import CheckFailed, NothingPublished, NotRunning, ServiceKilled, WarehouseLocked
from cdc_views.host.waiting import wait_until
from cdc_views.source.connection import connect
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services import process
from cdc_views.stack.services.service import Service
from cdc_views.store.control import (
    PUBLISHING,
    ControlRecord,
    PublishedDetail,
    TableVersion,
    last_published,
    read_control,
)
from cdc_views.store.reading import read_table

SCHEMA: Final = Path(__file__).with_name("schema.sql")
VIEWS: Final = {
    "bank": """CREATE MATERIALIZED VIEW bank (total, holdings) AS
SELECT sum(balance), count(balance)
FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) both_kinds;
""",
    "spending": """CREATE MATERIALIZED VIEW spending (account_id, balance, orders, amount) AS
SELECT a.id, a.balance, count(o.id), sum(o.amount)
FROM accounts a JOIN orders o ON o.account_id = a.id
GROUP BY a.id, a.balance;
""",
    "last_orders": """CREATE MATERIALIZED VIEW last_orders AS
SELECT account_id, id, amount
FROM (SELECT account_id, id, amount, row_number() OVER (PARTITION BY account_id ORDER BY id DESC) AS place FROM orders)
WHERE place <= 3;
""",
    "dearest": """CREATE MATERIALIZED VIEW dearest (shop, of_shop, sku) AS
SELECT m.shop, i.shop, i.sku
FROM (SELECT shop, max(price) AS price FROM items GROUP BY shop) m JOIN items i ON i.price = m.price;
""",
}
# How epochs keep each of them. "dearest" has an internal view.
WAYS: Final = {"bank": "add", "spending": "keys", "last_orders": "patch", "dearest": "keys", "_cv_dearest_1": "keys"}
BANK_TOTAL: Final = 40_000

# Errors with which an engine may end while a service is down. Its supervisor starts it again.
PASSING: Final = frozenset(error.__name__ for error in (*AWAY, WarehouseLocked, ServiceKilled))

_POLL_S: Final = 0.2  # not shorter: this loop takes CPU from the engine
_ERROR: Final = re.compile(r"^(\w+): ", re.MULTILINE)
_KNOWN: Final = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}


class World:
    """The world of one round: its own database, slot, topics and warehouse."""

    def __init__(
        self, stack: LocalStack, networks: Mapping[str, Proxy], folder: Path, memory: str, leftovers: ExitStack
    ) -> None:
        self.stack = stack
        self.networks = networks
        self.name = f"soak_{uuid4().hex[:10]}"
        self.folder = folder / self.name
        self.ended: Counter[str] = Counter()
        self._memory = memory
        self._of_worker = {} if stack.connect.exactly_once else {"offsets_topic": stack.connect.offsets_topic}
        self._started_at = 0
        self._pid: int | None = None
        self._is_supervised = False
        self.killed_at_s = 0.0  # when the engine was last found killed, in `time.monotonic()`
        self.killed_in_epoch = 0  # how often it was found killed with an open epoch
        self._clock: tuple[TableVersion, dict[int, int]] | None = None
        self.dsn = create_database(stack, self.name)
        leftovers.callback(self._forget)
        with connect(self.dsn, pinned=FOR_SQL_OF_USERS) as source:
            source.execute(f"SET soak.shelves = {SHELVES}".encode())
            source.execute(SCHEMA.read_text().encode())
        self._create_project()
        self.settings: Settings = load_settings(self.folder)
        fix(self.settings)
        self.engine: Program = engine(self.folder)

    def _create_project(self) -> None:
        self.folder.mkdir()
        (self.folder / "views").mkdir()
        for name, text in VIEWS.items():
            (self.folder / "views" / f"{name}.sql").write_text(text)
        dsn = make_conninfo(self.dsn, host=HOST, port=self.networks["postgres"].port)
        write_project(
            self.folder, dsn, self.stack.addresses, self.name, [f"public.{table}" for table in TABLES],
            log={"transaction_timeout_ms": 5000, **self._of_worker},
            engine={"driver_memory": self._memory, "spark_conf": {**SHORT_LIVED, **INTERPRETED}},
            # Short enough for everything to be removed by upkeep within the run.
            upkeep={"keep_hours": 0.05, "keep_epochs": 500, "sweep_versions": 20, "keep_records": 1200},
        )  # fmt: skip

    @property
    def warehouse(self) -> Path:
        """The folder of the Delta tables."""
        return self.settings.warehouse

    def start_engine(self, fault: str | None = None) -> None:
        """Start the engine, and restart it until `let_end`. `fault` arms a fault point for this start only."""
        self._is_supervised = True
        self._started_at = self.engine.log_file.stat().st_size if self.engine.log_file.exists() else 0
        armed = self.engine if fault is None else engine(self.folder, {faults.VARIABLE: fault})
        armed.start()
        self._pid = armed.pid

    def stop_engine(self) -> None:
        """Stop the engine, and do not restart it."""
        self._is_supervised = False
        self.engine.stop()

    def let_end(self) -> None:
        """Do not restart the engine any more."""
        self._is_supervised = False

    def error(self) -> str | None:
        """The name of the error with which the engine ended, or `killed`; None while it runs."""
        if self.engine.pid is not None:
            return None
        assert self._pid is not None
        if process.exit_status(self._pid) == -signal.SIGKILL:
            return "killed"
        with self.engine.log_file.open() as log:
            log.seek(self._started_at)
            text = log.read()
        if "Traceback (most recent call last)" in text:
            return "Traceback"
        names = [name for name in _ERROR.findall(text) if name in _KNOWN]
        return names[-1] if names else "nothing"

    def supervise(self) -> None:
        """Start the engine if it has ended. Raises CheckFailed for an error that nothing here can cause."""
        if not self._is_supervised or (error := self.error()) is None:
            return
        self.ended[error] += 1
        if error == "killed":
            self.killed_at_s = time.monotonic()
            self.killed_in_epoch += self.has_open_intent()
        elif error not in PASSING:
            raise CheckFailed(
                f'the engine has ended with "{error}":\n{process.last_lines(self.engine.log_file)}',
                hint=f'its log is "{self.engine.log_file}"',
            )
        self.start_engine()

    def wait(self, condition: Callable[[], bool], limit_s: float, what: str) -> None:
        """Wait, and keep the engine running meanwhile. Raises NotRunning."""

        def is_met() -> bool:
            if not (met := condition()):
                self.supervise()
            return met

        if not wait_until(is_met, limit_s, _POLL_S):
            raise NotRunning(
                f"{what} did not come within {limit_s:.0f} s; the engine's log ends:\n"
                f"{process.last_lines(self.engine.log_file)}"
            )

    def pause(self, seconds: float) -> None:
        """Let this time pass."""
        until = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() >= until, seconds + 60, "the end of a pause")

    def restart(self, service: Service) -> None:
        """Restart a service that has ended."""
        for _ in service.starting():
            self.supervise()
            time.sleep(_POLL_S)

    def published(self) -> ControlRecord | None:
        """The record that readers see; None before the first epoch."""
        try:
            return last_published(self.warehouse)
        except NothingPublished:
            return None

    def stopped(self) -> dict[TableName, str]:
        """The stopped tables in the published epoch, with their errors."""
        record = self.published()
        stopped = {} if record is None else PublishedDetail.read(record).stopped_tables
        return {name: why.error for name, why in stopped.items()}

    def clock(self) -> dict[int, int]:
        """By writer: its last published transaction."""
        record = self.published()
        if record is None:
            return {}
        table = record.tables["public.clock"]
        if self._clock is None or self._clock[0] != table:
            rows = read_table(self.warehouse, table.path, table.version).to_pylist()
            self._clock = table, {row["writer"]: row["n"] for row in rows}
        return self._clock[1]

    def ways(self) -> dict[str, set[str]]:
        """The ways in which views were updated, by view, in the epochs that the control log has."""
        found: dict[str, set[str]] = {}
        for record in (each for each in read_control(self.warehouse) if each.kind in PUBLISHING):
            for name, way in PublishedDetail.read(record).ways.get("view", {}).items():
                found.setdefault(name, set()).update(way.split("+"))
        return found

    def has_open_intent(self) -> bool:
        """Whether an epoch has been started and not published."""
        kinds = (each.kind for each in reversed(read_control(self.warehouse)))
        return next((kind for kind in kinds if kind in ("intent", "publish", "abandon")), None) == "intent"

    @contextmanager
    def under_load(self, rate: float, seed: int) -> Iterator[Load]:
        """Run writers while the block runs."""
        load = Load(self.dsn, rate, seed)
        load.start()
        try:
            yield load
        finally:
            load.stop()

    def _forget(self) -> None:
        try:
            forget_capture(self.settings)
        except NotRunning as error:  # the reason is the error that ended the round
            tell(f"what was captured stays: {error.message}")
            return
        drop_database(self.stack, self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def is_beyond(clock: Mapping[int, int], committed: Mapping[int, int]) -> bool:
    """Whether a later transaction of every writer is published."""
    return all(clock.get(writer, 0) > n for writer, n in committed.items())


def is_behind(clock: Mapping[int, int], committed: Mapping[int, int]) -> bool:
    """Whether some of these transactions are not published."""
    return any(clock.get(writer, 0) < n for writer, n in committed.items())
