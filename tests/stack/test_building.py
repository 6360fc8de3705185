"""A view over a large table that is added to a running project: the engine builds it beside its epochs."""

from __future__ import annotations

import signal

import pytest
import yaml

from cdc_views.config import FILE_NAME
from cdc_views.store.control import PublishedDetail
from cdc_views.store.control.control_log import read_control
from tests.fix_project import Project
from tests.waiting import wait_for

LIMIT_S = 300
# Some million pairs, so that it takes far longer than an epoch: the tests run Spark without generated code.
BELOW = (
    "SELECT a.holder, count(*) AS pairs FROM accounts a JOIN accounts b ON a.holder = b.holder AND a.id < b.id "
    "WHERE a.balance <> b.balance GROUP BY a.holder"
)


@pytest.mark.proves(
    wrong="A view over a large table is added or edited, and computing it takes long",
    seen="the other views go on; `status` shows the view as `building`, and reading it raises `ViewBeingBuilt`",
    do="wait: it joins the others at one epoch",
)
@pytest.mark.nightly
def test_new_view_over_a_large_table_holds_up_no_epoch_and_joins_equal(project: Project) -> None:
    settings = yaml.safe_load((project.folder / FILE_NAME).read_text())
    (project.folder / FILE_NAME).write_text(yaml.safe_dump(settings | {"store": {"driver_rows": 1000}}))
    project.database.execute(
        "INSERT INTO accounts SELECT n, 'h' || n % 3, n % 1000 FROM generate_series(1000, 4000) AS n"
    )
    project.fix()
    project.catch_up()
    project.view(f"CREATE MATERIALIZED VIEW below AS {BELOW}", "below")
    engine = project.start("run")

    def changed_while_building() -> bool:
        """Whether an epoch with changes was published while the view was being built."""
        project.database.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
        details = [PublishedDetail.read(record) for record in read_control(project.warehouse)]
        return any(detail.building and detail.changes for detail in details)

    wait_for(changed_while_building, LIMIT_S)
    assert "below" not in project.published().tables
    shown = project.here("status")
    assert [line.split()[:2] for line in shown.stdout.splitlines() if line.startswith("below")] == [
        ["below", "building"]
    ], shown.stdout
    refused = project.here("query", "SELECT * FROM below")
    assert refused.stderr.startswith('ViewBeingBuilt: view "below" is being built: filling from epoch '), refused.stderr
    wait_for(lambda: "below" in project.published().tables, LIMIT_S)
    engine.send_signal(signal.SIGTERM)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert "joined after epoch" in err, err
    project.catch_up()
    project.assert_equal_to_postgres()
    assert project.rows("below") == sorted(project.database.execute(BELOW))
