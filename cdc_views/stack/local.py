"""The stack in one state folder: three services, their ports, and the file with their addresses."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from cdc_views.config import STACK_FILE
from cdc_views.errors import BadConfig, ServiceFailed
from cdc_views.host import signals
from cdc_views.host.locations import cache_folder
from cdc_views.host.os_lock import try_lock
from cdc_views.host.waiting import wait_until
from cdc_views.stack import fetch
from cdc_views.stack.folders import make_shared, write_private
from cdc_views.stack.java import java_command
from cdc_views.stack.services import process
from cdc_views.stack.services.connect import Connect
from cdc_views.stack.services.kafka import Kafka, Relay
from cdc_views.stack.services.ports import choose_ports, forget_ports, keep_ports
from cdc_views.stack.services.postgres import Postgres
from cdc_views.stack.services.service import Service, Steps, run

_LOCK_FILE = "lock"
_LOCK_LIMIT_S = 180.0


@dataclass(frozen=True)
class Addresses:
    """The addresses of the services. The DSN contains the password."""

    dsn: str = dataclasses.field(repr=False)
    bootstrap_servers: str
    connect_url: str


class LocalStack:
    """Postgres, Kafka and Connect of one state folder, whichever process started them.

    `ports` gives some of ports.NAMES; the others are free ports, chosen once and remembered in the folder.
    `durable=False` runs Postgres without fsync. A `short_lived` stack takes less CPU time in its first minutes.
    `kafka_relay` is where Kafka's clients are directed. `connect_settings` are further settings of the worker. As a
    context manager, it starts the stack, and at the end stops the services that did not run before.
    """

    def __init__(
        self,
        state: Path,
        ports: Mapping[str, int] | None = None,
        durable: bool = True,
        short_lived: bool = False,
        kafka_relay: Relay | None = None,
        connect_settings: Mapping[str, str | int] | None = None,
    ) -> None:
        self.state = state.absolute()
        self._wanted_ports = dict(ports or {})
        self._durable = durable
        self._short_lived = short_lived
        self._kafka_relay = kafka_relay
        self._connect_settings = connect_settings
        self._use(choose_ports(self.state, self._wanted_ports))

    def _use(self, ports: Mapping[str, int]) -> None:
        self.postgres = Postgres(self.state, ports["postgres"], durable=self._durable)
        is_short = self._short_lived
        self.kafka = Kafka(self.state, ports["kafka"], ports["controller"], self._kafka_relay, short_lived=is_short)
        address = self.kafka.bootstrap_servers
        self.connect = Connect(self.state, ports["connect"], address, self._connect_settings, short_lived=is_short)

    @property
    def services(self) -> tuple[Service, ...]:
        """The services, in the order of the data flow."""
        return (self.postgres, self.kafka, self.connect)

    @property
    def addresses(self) -> Addresses:
        """The addresses for clients. They exist once Postgres has been started for the first time."""
        return Addresses(self.postgres.dsn, self.kafka.bootstrap_servers, self.connect.url)

    def is_running(self) -> bool:
        """Whether all three run and are healthy."""
        return all(service.pid is not None and service.is_healthy() for service in self.services)

    def up(self, on_progress: Callable[[str], None] = lambda _: None, *, progress_bar: bool = True) -> None:
        """Start the services that do not run, and wait until all are healthy. `on_progress` gets a line per service.

        Fetches files that the cache lacks. After any error or interruption, the services that were started here are
        stopped again. Raises BadConfig, DownloadFailed, JavaMissing, PortInUse and ServiceFailed.
        """
        java_command()
        self._refuse_commas()
        with signals.interrupting(), self._locked():
            fetch.fetch(progress_bar)
            self._kill_helpers()
            before = [service.name for service in self.services if service.pid is not None]
            # Checked before they are remembered, so that a wrong port that was given once is not kept.
            self._use(choose_ports(self.state, self._wanted_ports))
            for service in self.services:
                if service.name not in before:
                    service.refuse_taken_ports()
            self._settle_ports(before)
            try:
                run(
                    self._starting(on_progress, self.postgres),
                    self._starting(on_progress, self.kafka, self.connect),
                )
                self._write_addresses()
            except BaseException:
                with signals.deferred():
                    self._stop([service for service in self.services if service.name not in before])
                raise

    def down(self, *, purge: bool = False) -> list[str]:
        """Stop all services, including those that another process started. `purge` deletes their data.

        Returns what could not be deleted, with the reason.
        """
        if not self.state.exists():
            return []
        with self._locked(), signals.deferred():
            self._stop(self.services)
            (self.state / STACK_FILE).unlink(missing_ok=True)
            return self._purge() if purge else []

    def __enter__(self) -> Self:
        self._before = [service.name for service in self.services if service.pid is not None]
        self.up(progress_bar=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._before:
            self.down()
            return
        with self._locked(), signals.deferred():
            self._stop([service for service in self.services if service.name not in self._before])

    def _starting(self, on_progress: Callable[[str], None], *services: Service) -> Steps:
        for service in services:
            began = time.monotonic()
            was_running = service.pid is not None
            yield from service.starting()
            took = "was running" if was_running else f"{time.monotonic() - began:.1f} s"
            on_progress(f"{service.name}: port {service.port}, {took}")

    def _stop(self, services: Sequence[Service]) -> None:
        # Connect first: it writes to Kafka and holds Postgres' WAL senders.
        run(*(service.stopping() for service in services if service is self.connect))
        run(*(service.stopping() for service in services if service is not self.connect))
        self._kill_helpers()

    def _kill_helpers(self) -> None:
        """Kill initdb and the like, which run only if an `up` was killed."""
        names = {service.name for service in self.services}
        for file in self.state.glob("*.pid"):
            if file.stem not in names:
                process.kill(process.PidFile(file))

    def _purge(self) -> list[str]:
        left = []
        # Delete only our own folders: the state folder may hold other things.
        for name in ("logs", *(service.name for service in self.services)):
            folder = self.state / name
            try:
                shutil.rmtree(folder)
            except OSError as error:
                if folder.exists():
                    left.append(f'"{folder}": {error.strerror}')
        if not self.kafka.folder.exists():  # its data hold the port of the controller
            forget_ports(self.state)
        return left

    def _refuse_commas(self) -> None:
        for variable, folder in (("CDC_VIEWS_STATE", self.state), ("CDC_VIEWS_CACHE", cache_folder())):
            if "," in str(folder):
                raise BadConfig(
                    f'the folder "{folder}" has a comma, which separates folders in settings of Kafka',
                    hint=f"set {variable} to another folder",
                )

    def _settle_ports(self, running: Sequence[str]) -> None:
        """Use the ports that the folder remembers: another process may have chosen them since."""
        self._use(keep_ports(self.state, self._wanted_ports, running, formatted=self.kafka.is_formatted))

    def _write_addresses(self) -> None:
        write_private(self.state / STACK_FILE, json.dumps(dataclasses.asdict(self.addresses)))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_shared(self.state)
            lock = (self.state / _LOCK_FILE).open("w")
        except OSError as error:
            raise BadConfig(
                f'the state folder "{self.state}" cannot be written: {error.strerror}',
                hint="set CDC_VIEWS_STATE to another folder",
            ) from None
        with lock:
            if not wait_until(lambda: try_lock(lock), _LOCK_LIMIT_S):
                raise ServiceFailed(
                    f'another process has been starting or stopping the stack in "{self.state}" '
                    f"for {_LOCK_LIMIT_S:.0f} s"
                )
            yield
