"""Kafka Connect over REST.

The state that counts is the task's: the connector's own stays RUNNING when its task has failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests

from cdc_views.base.lsn import Lsn
from cdc_views.errors import ConnectorFailed, NotRunning
from cdc_views.host.waiting import wait_while

_POLL_S: Final = 0.2
_REBALANCE_LIMIT_S: Final = 60.0
_STOP_LIMIT_S: Final = 30.0
# 404 while a worker starts, 409 while the workers rebalance.
_PASSING: Final = frozenset({404, 409})
# A restarted task can look healthy for seconds before it fails again at the same record.
SETTLE_S: Final = 10.0


@dataclass(frozen=True)
class TaskState:
    """The state of a connector's one task: RUNNING, FAILED, PAUSED, ..., or STARTING while there is none."""

    state: str
    trace: str | None = None

    @property
    def failure(self) -> str | None:
        """The message of a failed task: the first line of its trace, and the first of its last cause."""
        if self.state != "FAILED":
            return None
        lines = (self.trace or "no trace").splitlines()
        causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
        return ": ".join(dict.fromkeys([lines[0], *causes[-1:]]))


class ConnectClient:
    """The REST API of a Connect worker."""

    def __init__(self, url: str, *, timeout_s: float = 15) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        # Never use a proxy for the loopback, whatever the environment says.
        self._may_use_proxy = urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1")

    def put_connector(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or change its settings. Raises ConnectorFailed if the worker refuses them."""
        # The answer repeats settings, including the password.
        self._ordered("PUT", f"connectors/{quote(name)}/config", secret=config.get("database.password"),
                      json=dict(config))  # fmt: skip

    def delete_connector(self, name: str) -> None:
        """Delete the connector and its offsets if it exists; its slot and publication belong to the source.

        Raises ConnectorFailed if anything of it is left.
        """
        if self._ordered("PUT", f"connectors/{quote(name)}/stop", may_be_unknown=True):
            self._await_no_tasks(name)
            # 400 until the worker that answers knows that the connector is stopped.
            self._ordered("DELETE", f"connectors/{quote(name)}/offsets", passing=(400,), may_be_unknown=True)
            self._ordered("DELETE", f"connectors/{quote(name)}", may_be_unknown=True)

    def restart_connector(self, name: str, *, only_failed: bool = False) -> None:
        """Restart the connector with its task; with `only_failed`, only what has failed. Raises ConnectorFailed."""
        chosen = "&onlyFailed=true" if only_failed else ""
        self._ordered("POST", f"connectors/{quote(name)}/restart?includeTasks=true{chosen}")

    def stop_connector(self, name: str) -> None:
        """Stop the connector; it keeps its offsets and releases its slot, which a paused connector does not.

        Raises ConnectorFailed.
        """
        self._ordered("PUT", f"connectors/{quote(name)}/stop")

    def task_state(self, name: str) -> TaskState:
        """Return the state of the task; 404 for a known connector means that it is starting.

        Raises NotRunning, ConnectorFailed.
        """
        response = self._request("GET", f"connectors/{quote(name)}/status")
        if _is_passing(response):
            return TaskState("STARTING")
        status = self._content(response, f"connectors/{name}/status")
        tasks = status.get("tasks", [])
        if not tasks:
            connector = status.get("connector", {})
            state = str(connector.get("state"))
            return TaskState("STARTING" if state == "RUNNING" else state, connector.get("trace"))
        return TaskState(tasks[0]["state"], tasks[0].get("trace"))

    def exists(self, name: str) -> bool:
        """Whether the worker knows the connector. Raises NotRunning, ConnectorFailed."""
        return self._answered(f"connectors/{quote(name)}") is not None

    def config(self, name: str) -> dict[str, str] | None:
        """The settings of a connector, with its password; None if the worker does not know it.

        Raises NotRunning, ConnectorFailed.
        """
        found: dict[str, str] | None = self._answered(f"connectors/{quote(name)}/config")
        return found

    def wait_running(self, name: str, limit_s: float = 60, *, settle_s: float = 0) -> None:
        """Wait until the task runs, and has run for `settle_s`. Raises ConnectorFailed."""
        deadline, since = time.monotonic() + limit_s, None
        while True:
            task = self._task_state_or_starting(name)
            require_not_failed(name, task)
            now = time.monotonic()
            since = (since or now) if task.state == "RUNNING" else None
            if since is not None and now - since >= settle_s:
                return
            if now > deadline:
                raise ConnectorFailed(
                    f'the task of connector "{name}" is {task.state} after {limit_s:.0f} s, wanted RUNNING',
                    hint="see the log of Connect",
                )
            time.sleep(_POLL_S)

    def stored_commit(self, name: str, topic_prefix: str) -> Lsn | None:
        """Return the stored `lsn_commit`: the end of the last commit whose changes are all in Kafka. Slow.

        Raises NotRunning, ConnectorFailed.
        """
        found = (self._answered(f"connectors/{quote(name)}/offsets") or {}).get("offsets", [])
        # A connector that has had other prefixes has an entry for each.
        commits = [each["offset"].get("lsn_commit") for each in found if each["partition"] == {"server": topic_prefix}]
        return None if not commits or commits[0] is None else Lsn(commits[0])

    def kafka_cluster(self) -> str:
        """Return the id of the Kafka cluster that the worker writes to. Raises NotRunning, ConnectorFailed."""
        return str((self._answered("") or {}).get("kafka_cluster_id"))

    def plugin_version(self, connector_class: str) -> str | None:
        """Return the version of a connector plugin, or None if the worker does not have it.

        Raises NotRunning, ConnectorFailed.
        """
        plugins = self._answered("connector-plugins") or []
        versions = [str(plugin["version"]) for plugin in plugins if plugin["class"] == connector_class]
        return versions[0] if versions else None

    def config_errors(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Have the worker and Debezium validate settings; return errors by setting, without their values."""
        path = f"connector-plugins/{config['connector.class'].rpartition('.')[2]}/config/validate"
        response, password = self._request("PUT", path, json=dict(config)), config.get("database.password")
        if response.status_code != 200:
            return {"connector.class": [_message(response, password)]}
        values = [entry["value"] for entry in self._content(response, path)["configs"]]
        return {
            value["name"]: [_hide(error, password) for error in value["errors"]] for value in values if value["errors"]
        }

    def _await_no_tasks(self, name: str) -> None:
        """Wait until no task of a stopped connector is left. Raises ConnectorFailed, NotRunning."""
        path = f"connectors/{quote(name)}/status"
        if tasks := wait_while(lambda: (self._answered(path) or {}).get("tasks", []), _STOP_LIMIT_S, _POLL_S):
            raise ConnectorFailed(
                f'connector "{name}" has {len(tasks)} tasks {_STOP_LIMIT_S:.0f} s after its stop, wanted none',
                hint="see the log of Connect",
            )

    def _task_state_or_starting(self, name: str) -> TaskState:
        try:
            return self.task_state(name)
        except NotRunning:
            return TaskState("STARTING")

    def _answered(self, path: str) -> Any:
        """Return the content of the answer to a GET request; None if the worker knows no such connector.

        Repeats the request while the worker answers 5xx, or that it is starting or rebalancing. Raises NotRunning after
        a minute of that, ConnectorFailed for any other answer.
        """
        response = self._settled("GET", path, lambda found: _is_passing(found) and not _is_unknown(found))
        if _is_unknown(response):
            return None
        if _is_passing(response):
            raise NotRunning(
                f"Kafka Connect at {self._url} answers {response.status_code} to GET "
                f"/{path} for {_REBALANCE_LIMIT_S:.0f} s: {_message(response)}",
                hint="see the log of Connect; it may be starting",
            )
        return self._content(response, path)

    def _content(self, response: requests.Response, path: str) -> Any:
        """Return the JSON of an answer. Raises ConnectorFailed if it is not a good one."""
        if response.status_code == 200:
            with suppress(ValueError):
                return response.json()
        found = "no JSON" if response.status_code == 200 else _message(response)
        raise ConnectorFailed(
            f"Kafka Connect at {self._url} answers {response.status_code} to GET /{path}: {found}",
            hint="check that log.connect_url is the address of a Connect worker that we may use",
        )

    def _ordered(
        self,
        method: str,
        path: str,
        *,
        passing: Collection[int] = (),
        may_be_unknown: bool = False,
        secret: str | None = None,
        **arguments: Any,
    ) -> bool:
        """Have something done; False if the worker knows no such connector and `may_be_unknown` is set.

        Repeats the request while the worker answers 5xx, one of `passing`, or that it is starting or rebalancing.
        Raises ConnectorFailed if it is not done, NotRunning if there is no answer.
        """

        def may_pass(found: requests.Response) -> bool:
            is_answer = may_be_unknown and _is_unknown(found)
            return not is_answer and (_is_passing(found) or found.status_code in passing)

        response = self._settled(method, path, may_pass, **arguments)
        if response.status_code < 300:
            return True
        if may_be_unknown and _is_unknown(response):
            return False
        how_long = f" for {_REBALANCE_LIMIT_S:.0f} s" if may_pass(response) else ""
        raise ConnectorFailed(
            f"Kafka Connect at {self._url} answers {response.status_code} to {method} /{path}{how_long}: "
            f"{_message(response, secret)}",
            hint='see the log of Connect; "cdc-views check" validates the settings one by one',
        )

    def _settled(
        self, method: str, path: str, is_passing: Callable[[requests.Response], bool], **arguments: Any
    ) -> requests.Response:
        """Return the first answer that is not a passing one, or the last one after a while."""
        deadline = time.monotonic() + _REBALANCE_LIMIT_S
        while is_passing(response := self._request(method, path, **arguments)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return response

    def _request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        try:
            with requests.Session() as session:
                session.trust_env = self._may_use_proxy
                return session.request(method, f"{self._url}/{path}", timeout=self._timeout_s, **arguments)
        except requests.RequestException as error:
            raise NotRunning(
                f"Kafka Connect does not answer at {self._url}: {type(error).__name__}",
                hint='start it ("cdc-views up" for the native stack), or correct log.connect_url',
            ) from None


def require_not_failed(name: str, task: TaskState) -> None:
    """Raise ConnectorFailed with the task's message if the task has failed."""
    if (failure := task.failure) is not None:
        raise ConnectorFailed(
            f'the task of connector "{name}" has failed: {failure}',
            hint='see the log of Connect; "cdc-views check" looks for what is wrong',
        )


def _message(response: requests.Response, secret: str | None = None) -> str:
    try:
        text = str(response.json().get("message", response.text))
    except (ValueError, AttributeError):
        text = response.text
    return _hide(" ".join(text.split())[:2000], secret) or "no message"


def _hide(text: str, secret: str | None) -> str:
    return text.replace(secret, "***") if secret else text


def _is_passing(response: requests.Response) -> bool:
    """Whether the answer may soon be another one: the workers are starting or rebalancing, or one of them failed."""
    return response.status_code in _PASSING or response.status_code >= 500


def _is_unknown(response: requests.Response) -> bool:
    """Whether the worker itself answers 404; its HTTP server does too until the worker has started."""
    with suppress(ValueError, AttributeError):
        return response.status_code == 404 and bool(response.json().get("error_code") == 404)
    return False
