"""Kafka Connect over REST.

The state that counts is the task's: the connector's own stays RUNNING when its task has failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests

from cdc_views.errors import ConnectorFailed, NotRunning
from cdc_views.lsn import Lsn

_POLL_S: Final = 0.2
_REBALANCE_LIMIT_S: Final = 60
# A restarted task can look well for seconds before it fails again at the same record.
SETTLE_S: Final = 10.0


@dataclass(frozen=True)
class TaskState:
    """The state of a connector's one task: RUNNING, FAILED, PAUSED, ..., or STARTING while there is none."""

    state: str
    trace: str | None = None

    @property
    def failure(self) -> str | None:
        """What a failed task says: the first line of its trace, and the first of its last cause."""
        if self.state != "FAILED":
            return None
        lines = (self.trace or "no trace").splitlines()
        causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
        return ": ".join(dict.fromkeys([lines[0], *causes[-1:]]))


class Connect:
    """A Connect worker's REST address."""

    def __init__(self, url: str, *, timeout_s: float = 15) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        # No proxy stands between us and the loopback, whatever the environment says.
        self._may_use_proxy = urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1")

    def put_connector(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or change its settings. Raises ConnectorFailed where the worker refuses them."""
        deadline = time.monotonic() + _REBALANCE_LIMIT_S
        while True:
            response = self._request("PUT", f"connectors/{quote(name)}/config", json=dict(config))
            # 409 while the workers rebalance; 404 while a worker starts.
            if response.status_code not in (404, 409) or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        if response.status_code >= 300:
            raise ConnectorFailed(
                f'Connect refuses the connector "{name}": {_message(response, config)}',
                hint='"cdc-views check" validates the settings one by one',
            )

    def delete_connector(self, name: str) -> None:
        """Delete the connector and its offsets if it is there; its slot and publication are the source's."""
        if self._request("PUT", f"connectors/{quote(name)}/stop").status_code < 300:
            self._wait(lambda: not self._tasks(name), 30)
            self._retried("DELETE", f"connectors/{quote(name)}/offsets")
        self._retried("DELETE", f"connectors/{quote(name)}")

    def restart_connector(self, name: str, *, only_failed: bool = False) -> None:
        """Restart the connector with its task; with `only_failed` none that is well."""
        chosen = "&onlyFailed=true" if only_failed else ""
        self._retried("POST", f"connectors/{quote(name)}/restart?includeTasks=true{chosen}")

    def stop_connector(self, name: str) -> None:
        """Stop the connector; it keeps its offsets and lets go of its slot, as a paused one does not."""
        self._retried("PUT", f"connectors/{quote(name)}/stop")

    def resume_connector(self, name: str) -> None:
        """Let a stopped connector go on."""
        self._retried("PUT", f"connectors/{quote(name)}/resume")

    def task_state(self, name: str) -> TaskState:
        """Read the task's state; 404 of a known connector means that it is starting. Raises NotRunning."""
        response = self._request("GET", f"connectors/{quote(name)}/status")
        if response.status_code != 200:
            return TaskState("STARTING")
        status = response.json()
        tasks = status.get("tasks", [])
        if not tasks:
            connector = status.get("connector", {})
            state = str(connector.get("state"))
            return TaskState("STARTING" if state == "RUNNING" else state, connector.get("trace"))
        return TaskState(tasks[0]["state"], tasks[0].get("trace"))

    def exists(self, name: str) -> bool:
        """Whether the worker knows the connector."""
        return self._request("GET", f"connectors/{quote(name)}").status_code == 200

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
        """Read the stored `lsn_commit`: the last commit whose changes are all in Kafka. Slow. Raises NotRunning."""
        response = self._answered(f"connectors/{quote(name)}/offsets")
        found = response.json().get("offsets", []) if response.status_code == 200 else []
        # A connector that has had other prefixes has an entry for each.
        commits = [each["offset"].get("lsn_commit") for each in found if each["partition"] == {"server": topic_prefix}]
        return None if not commits or commits[0] is None else Lsn(commits[0])

    def kafka_cluster(self) -> str:
        """Read the id of the Kafka cluster that the worker writes to. Raises NotRunning."""
        return str(self._answered("").json()["kafka_cluster_id"])

    def plugin_version(self, connector_class: str) -> str | None:
        """Read the version of a connector plugin, or None where the worker has none."""
        plugins = self._answered("connector-plugins").json()
        versions = [str(plugin["version"]) for plugin in plugins if plugin["class"] == connector_class]
        return versions[0] if versions else None

    def config_errors(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Let the worker and Debezium validate settings; errors by setting, without their values."""
        path = f"connector-plugins/{config['connector.class'].rpartition('.')[2]}/config/validate"
        response = self._request("PUT", path, json=dict(config))
        if response.status_code != 200:
            return {"connector.class": [_message(response, config)]}
        values = [entry["value"] for entry in response.json()["configs"]]
        password = config.get("database.password")
        return {
            value["name"]: [_hide(error, password) for error in value["errors"]] for value in values if value["errors"]
        }

    def _tasks(self, name: str) -> list[Any]:
        response = self._request("GET", f"connectors/{quote(name)}/status")
        return list(response.json().get("tasks", [])) if response.status_code == 200 else []

    def _task_state_or_starting(self, name: str) -> TaskState:
        try:
            return self.task_state(name)
        except NotRunning:
            return TaskState("STARTING")

    def _answered(self, path: str) -> requests.Response:
        """The answer to a question, once the worker can give one; 404 only if it knows of no such connector."""
        deadline = time.monotonic() + _REBALANCE_LIMIT_S
        while (response := self._request("GET", path)).status_code != 200 and not _is_unknown(response):
            if time.monotonic() > deadline:
                raise NotRunning(
                    f"Kafka Connect at {self._url} answers {response.status_code} to a question about {path}",
                    hint="see the log of Connect; it may be starting",
                )
            time.sleep(_POLL_S)
        return response

    def _retried(self, method: str, path: str) -> None:
        def done() -> bool:
            return self._request(method, path).status_code not in (409, 500)

        self._wait(done, _REBALANCE_LIMIT_S)

    @staticmethod
    def _wait(done: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not done() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

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
    """Raise ConnectorFailed with what the task says, if it has failed."""
    if (failure := task.failure) is not None:
        raise ConnectorFailed(
            f'the task of connector "{name}" has failed: {failure}',
            hint='see the log of Connect; "cdc-views check" looks for what is wrong',
        )


def _message(response: requests.Response, config: Mapping[str, str]) -> str:
    try:
        text = str(response.json().get("message", response.text))
    except ValueError:
        text = response.text
    return _hide(" ".join(text.split())[:2000], config.get("database.password"))


def _hide(text: str, secret: str | None) -> str:
    return text.replace(secret, "***") if secret else text


def _is_unknown(response: requests.Response) -> bool:
    """Whether the worker itself says 404: its HTTP server does so, too, until the worker has started."""
    with suppress(ValueError):
        return response.status_code == 404 and bool(response.json().get("error_code") == 404)
    return False
