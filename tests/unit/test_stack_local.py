from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cdc_views.errors import BadConfig, JavaMissing, PortInUse, ServiceFailed
from cdc_views.stack import fetch, local
from cdc_views.stack.local import Addresses, LocalStack
from cdc_views.stack.services.ports import choose_ports, keep_ports
from tests.unit.scripted_service import ENDS_AT_ONCE, GOOD, ScriptedService


class ScriptedStack(LocalStack):
    """A stack of shell scripts; `last` is that of Connect."""

    last = GOOD
    addresses = Addresses("postgresql://somewhere/app", "somewhere:1", "http://somewhere")

    def _use(self, ports: Mapping[str, int]) -> None:
        scripts = {"postgres": GOOD, "kafka": GOOD, "connect": self.last}
        for name, script in scripts.items():
            setattr(self, name, ScriptedService(self.state, ports[name], script, name))
        self.kafka.is_formatted = False  # type: ignore[misc]


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedStack]:
    monkeypatch.setattr(local, "java_command", lambda: "java")
    monkeypatch.setattr(fetch, "fetch", lambda _: None)
    stack = ScriptedStack(tmp_path / "state")
    yield stack
    stack.down()


def pids(stack: LocalStack) -> list[int | None]:
    return [service.pid for service in stack.services]


def test_up_all_healthy_writes_addresses_for_the_owner_only(scripted: ScriptedStack) -> None:
    scripted.up()
    file = scripted.state / "stack.json"
    assert json.loads(file.read_text()) == {
        "dsn": "postgresql://somewhere/app",
        "bootstrap_servers": "somewhere:1",
        "connect_url": "http://somewhere",
    }
    assert file.stat().st_mode & 0o777 == 0o600


def test_up_twice_reuses_what_runs(scripted: ScriptedStack) -> None:
    scripted.up()
    first = pids(scripted)
    messages: list[str] = []
    scripted.up(messages.append)
    assert pids(scripted) == first
    assert all(message.endswith("was running") for message in messages)


def test_up_one_service_fails_the_others_are_stopped(scripted: ScriptedStack) -> None:
    scripted.last = ENDS_AT_ONCE
    with pytest.raises(ServiceFailed, match="connect ended while it was starting"):
        scripted.up()
    assert pids(scripted) == [None, None, None]
    assert not (scripted.state / "stack.json").exists()


def test_up_one_service_fails_what_ran_before_goes_on(scripted: ScriptedStack) -> None:
    scripted.up()
    before = scripted.postgres.pid
    scripted.connect.kill()
    scripted.last = ENDS_AT_ONCE
    with pytest.raises(ServiceFailed):
        scripted.up()
    assert scripted.postgres.pid == before


def test_up_port_taken_starts_nothing(scripted: ScriptedStack) -> None:
    with socket.create_server(("127.0.0.1", scripted.connect.port)):
        scripted = ScriptedStack(scripted.state, {"connect": scripted.connect.port})
        with pytest.raises(PortInUse, match="for connect belongs to another process"):
            scripted.up()
    assert list(scripted.state.glob("*.pid")) == []


def test_up_without_java_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaMissing):
        LocalStack(tmp_path / "state").up()
    assert not (tmp_path / "state").exists()


def test_up_state_folder_that_cannot_be_made_is_bad_config(scripted: ScriptedStack, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(BadConfig, match=r"the state folder .* cannot be written"):
        ScriptedStack(tmp_path / "a-file" / "state").up()


def test_up_in_a_folder_with_a_comma_is_bad_config(scripted: ScriptedStack, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="has a comma"):
        ScriptedStack(tmp_path / "a,b").up()
    assert not (tmp_path / "a,b").exists()


def test_down_services_of_another_object_ends_them(scripted: ScriptedStack) -> None:
    scripted.up()
    ScriptedStack(scripted.state).down()
    assert pids(scripted) == [None, None, None]
    assert not (scripted.state / "stack.json").exists()


def test_down_purge_deletes_only_what_is_ours(scripted: ScriptedStack) -> None:
    scripted.up()
    (scripted.state / "somebody's").touch()
    scripted.down(purge=True)
    assert sorted(file.name for file in scripted.state.iterdir()) == ["lock", "somebody's"]


def test_down_purge_that_cannot_delete_says_so_and_keeps_the_ports(
    scripted: ScriptedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.up()
    of_python = os.unlink

    def refusing(path: str, **others: int) -> None:
        if path == "ready":
            raise PermissionError(errno.EACCES, "Permission denied")
        of_python(path, **others)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refusing)
        left = scripted.down(purge=True)
    assert f'"{scripted.kafka.folder}": Permission denied' in left
    assert (scripted.state / "ports.json").exists()
    assert scripted.down(purge=True) == []
    assert not (scripted.state / "ports.json").exists()


def test_down_nothing_there_makes_no_folder(tmp_path: Path) -> None:
    LocalStack(tmp_path / "state").down()
    assert not (tmp_path / "state").exists()


def test_context_services_end_with_it(scripted: ScriptedStack) -> None:
    with scripted:
        assert scripted.is_running()
    assert pids(scripted) == [None, None, None]


def test_context_services_that_ran_before_go_on(scripted: ScriptedStack) -> None:
    scripted.up()
    with ScriptedStack(scripted.state):
        pass
    assert scripted.is_running()


def test_keep_ports_are_the_same_the_next_time(tmp_path: Path) -> None:
    first = keep_ports(tmp_path, {}, [], formatted=False)
    assert len(set(first.values())) == 4
    assert choose_ports(tmp_path, {}) == first


def test_keep_ports_of_a_running_service_cannot_change(tmp_path: Path) -> None:
    keep_ports(tmp_path, {"kafka": 20001}, [], formatted=False)
    with pytest.raises(BadConfig, match="port 20002 is wanted for kafka, which already uses 20001"):
        keep_ports(tmp_path, {"kafka": 20002}, ["kafka"], formatted=False)


def test_keep_ports_controller_of_existing_data_cannot_change(tmp_path: Path) -> None:
    keep_ports(tmp_path, {"controller": 20001}, [], formatted=False)
    with pytest.raises(BadConfig, match="port 20002 is wanted for controller, which already uses 20001"):
        keep_ports(tmp_path, {"controller": 20002}, [], formatted=True)


@pytest.mark.parametrize("wanted", [{"postgres": 20001, "kafka": 20001}, {"postgres": 20002}])
def test_choose_ports_of_two_services_are_not_the_same(tmp_path: Path, wanted: dict[str, int]) -> None:
    keep_ports(tmp_path, {"connect": 20002}, [], formatted=False)
    with pytest.raises(BadConfig, match=r"port 2000. is wanted for postgres, and is that of (kafka|connect)"):
        choose_ports(tmp_path, wanted)


def test_choose_ports_unknown_name_is_bad_config(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match='no port named "kafak"'):
        choose_ports(tmp_path, {"kafak": 1})
