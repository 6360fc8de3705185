"""`docker-compose up`: one system for all tests of this file, which run in the order that they have here."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest

from docker import DockerClient
from tests.docker.system import SERVICES, System

# The first test waits for the images to be built.
pytestmark = pytest.mark.timeout(1800)

KILLED = 137


def test_lines_of_the_readme_pasted_on_a_machine_without_the_system_answer_and_replay(system: System) -> None:
    shown, errors = system.pasted
    assert re.search(r"user_id +orders .*\n(\d+ .*\n){5}", shown), shown
    assert "swapped in epoch" in errors, errors
    assert re.search(r"post_search +0 +0 +0", shown), shown
    system.assert_equal_to_postgres()


def test_up_makes_every_service_healthy_with_ports_of_this_machine_only(system: System) -> None:
    assert set(system.health().values()) == {"healthy"}
    bindings = [
        binding
        for service in SERVICES
        for ports in system.container(service).attrs["HostConfig"]["PortBindings"].values()
        for binding in ports
    ]
    assert {binding["HostIp"] for binding in bindings} == {"127.0.0.1"}
    assert len(bindings) == 4


def test_health_of_the_engine_is_that_an_epoch_was_published_lately(system: System) -> None:
    engine = system.container("engine")
    check = engine.attrs["Config"]["Healthcheck"]["Test"]
    assert check == ["CMD", "cdc-views", "status", "--published-within", "60"]
    assert engine.exec_run(check[1:]).exit_code == 0
    done = engine.exec_run([*check[1:-1], "0"])
    assert done.exit_code == 3
    assert "NotRunning: epoch " in done.output.decode()


def test_commits_from_the_host_are_answered_by_a_query(system: System) -> None:
    query = "SELECT * FROM order_totals ORDER BY amount DESC LIMIT 1"
    [(user,)] = system.execute("SELECT max(user_id) FROM orders")
    [(order,)] = system.execute(
        f"INSERT INTO orders (user_id, status, ordered_at) VALUES ({user}, 'paid', now()) RETURNING id"
    )
    system.execute(
        "INSERT INTO order_items (order_id, line, product_id, quantity, unit_price) "
        f"VALUES ({order}, 1, 1, 1000, 99999.99)"
    )
    system.committed += 2
    system.catch_up()
    first = system.query(query)[0]
    assert first["user_id"] == user
    assert Decimal(first["amount"]) >= Decimal("99999990.00")


def test_page_answers_the_host_with_what_is_published_to_whoever_has_the_token(system: System) -> None:
    assert "<html" in system.get("/", has_token=False).text
    assert system.get("/epoch", has_token=False).status_code == 401
    [published] = system.query("SELECT name FROM public.products WHERE id = 2")
    assert json.loads(system.get("/views/product_cache/cache/2").json()["document"])["name"] == published["name"]
    status = system.get("/status").json()
    assert [stage["name"] for stage in status["stages"]]


def test_workload_from_the_host_leaves_tables_and_views_equal_to_postgres(system: System) -> None:
    system.work(seed=1)
    system.assert_equal_to_postgres()


def test_warehouse_mounted_read_only_is_read_by_another_user(system: System, client: DockerClient) -> None:
    shown = client.containers.run(
        "cdc-views/cdc-views",
        ["query", "SELECT count(*) AS rows FROM public.users", "--json"],
        volumes={system.warehouse_volume: {"bind": "/warehouse", "mode": "ro"}},
        working_dir="/demo", user="nobody", environment={"HOME": "/tmp"}, network_mode="none", remove=True,
    )  # fmt: skip
    assert shown.decode() == f'{{"rows": {system.execute("SELECT count(*) FROM users")[0][0]}}}\n'


@pytest.mark.nightly
@pytest.mark.parametrize("service", SERVICES)
def test_killed_container_loses_nothing_and_repeats_nothing(system: System, service: str) -> None:
    system.work(seed=10 + SERVICES.index(service))
    assert system.is_behind()
    system.kill(service)
    assert system.is_behind()
    system.start_again(service)
    system.wait_healthy()
    system.work(seed=20 + SERVICES.index(service), seconds=1)
    system.assert_equal_to_postgres()


@pytest.mark.nightly
def test_every_table_can_be_rebuilt_from_the_log(system: System) -> None:
    command = ["cdc-views", "rebuild", "--all", "--from", "earliest", "--json"]
    status, (shown, errors) = system.container("engine").exec_run(command, demux=True)
    assert status == 0, errors.decode()
    report = json.loads(shown)
    assert report["equal"] is True
    assert len(report["tables"]) == 15


@pytest.mark.nightly
def test_down_and_up_goes_on_where_it_was(system: System) -> None:
    system.work(seed=30)
    epochs = len(system.published())
    system.stop(down=False)
    assert all(system.container(service).attrs["State"]["ExitCode"] != KILLED for service in SERVICES)
    system.down()
    system.start()
    system.wait_healthy()
    system.work(seed=31, seconds=1)
    system.assert_equal_to_postgres()
    assert len(system.published()) > epochs
