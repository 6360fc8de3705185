"""The demo as a story: stack, data, connector, engine, workload, catch up, check, what to try next."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cdc_views.demo.bank import bank_totals
from cdc_views.demo.check import POSTGRES_SQL, require_equal
from cdc_views.demo.data import create
from cdc_views.demo.figures import changes_of, freshness_s, stage_medians_ms, strategies_taken
from cdc_views.demo.programs import Program, committed, engine, workload
from cdc_views.demo.project import DemoProject, forget_project, make_project
from cdc_views.demo.show import Show
from cdc_views.engine.capture.readiness import fix, require_ready
from cdc_views.engine.capture.start import start_capture
from cdc_views.engine.service.target import current_target
from cdc_views.errors import CheckFailed, NotRunning
from cdc_views.host.locations import DEMO, project_folder
from cdc_views.host.waiting import wait_until
from cdc_views.log.debezium.snapshot import SnapshotProgress
from cdc_views.stack.local import LocalStack
from cdc_views.store.control import ControlRecord, read_control
from cdc_views.testing.epochs import EpochCheck
from cdc_views.testing.oracle import WalOracle, drop_leftovers

KILLS: Final = 3
SECONDS_PER_KILL: Final = 40.0
EPOCHS_WHILE_WRITING: Final = 3
FIRST_EPOCH_LIMIT_S: Final = 300.0
CATCH_UP_LIMIT_S: Final = 300.0


@dataclass(frozen=True)
class DemoOptions:
    """The options of the command line."""

    keep: bool
    kills: int
    rate: float
    seconds: float
    seed: int


class Demo:
    """One run. `leftovers` stops everything that was started, in reverse order, when the run ends."""

    def __init__(self, state: Path, options: DemoOptions, show: Show, leftovers: ExitStack) -> None:
        self._state = state
        self._options = options
        self._show = show
        self._leftovers = leftovers
        self._figures: dict[str, Any] = {}

    def run(self) -> None:
        """Run the demo. Raises CheckFailed, or the error of any part, after stopping everything that was started."""
        show = self._show
        with show.step("stack: Postgres, Kafka, Connect with Debezium"):
            stack = self._start_stack()
        with show.step("database: a small social shop and a bank"):
            project = self._create_database(stack)
        with show.step("oracle: a second slot, and the tables as it finds them"):
            oracle = self._start_oracle(project)
        with show.step("connector and initial snapshot"):
            self._start_capture(project)
        with show.step("engine: mirrors of nine tables, six views"):
            runner = self._start_engine(project)
        with show.step(f"workload: real transactions for about {self._options.seconds:.0f} s"):
            result, began = self._run_workload(project, runner)
        with show.step("catching up"):
            self._catch_up(project, runner)
        with show.step("check: every row of every table and view, against Postgres"):
            line = self._check(project, result)
        with show.step("check: the same at every epoch, against the WAL replayed in commit order"):
            epochs_line = self._check_epochs(project, oracle)
        self._print_figures(project, began)
        if self._options.keep:
            self._leftovers.pop_all()
        self._print_next(project)
        show.result(epochs_line)
        show.result(line)

    def _start_stack(self) -> LocalStack:
        had_data = LocalStack(self._state).postgres.folder.exists()
        stack = LocalStack(self._state, durable=had_data, short_lived=True)
        engine(self._state / DEMO).stop()  # of an earlier run with --keep
        if all(service.pid is None for service in stack.services):
            self._leftovers.callback(stack.down, purge=not had_data)
        began = time.monotonic()
        stack.up(self._show.say)
        self._figures["stack_start_s"] = round(time.monotonic() - began, 1)
        if had_data:
            forget_project(self._state / DEMO, stack.addresses.dsn)
            drop_leftovers(stack.addresses.dsn)
            self._leftovers.callback(forget_project, self._state / DEMO, stack.addresses.dsn)
        return stack

    def _create_database(self, stack: LocalStack) -> DemoProject:
        project = make_project(self._state / DEMO, stack.addresses.dsn)
        create(project.dsn, self._options.seed)
        return project

    def _start_oracle(self, project: DemoProject) -> WalOracle:
        # Before the connector's slot is created, and so before the position of the first epoch.
        oracle = WalOracle(project.dsn, project.settings().source.tables)
        self._leftovers.callback(oracle.drop)
        return oracle.start()

    def _start_capture(self, project: DemoProject) -> None:
        settings = project.settings()
        fix(settings)
        require_ready(settings)
        began = time.monotonic()
        last: list[SnapshotProgress] = []

        def on_progress(progress: SnapshotProgress) -> None:
            if progress.tables_done > (last[0].tables_done if last else 0):
                self._show.say(f"{progress.tables_done} tables, {progress.rows:,} rows")
            last[:] = [progress]

        start_capture(settings, on_progress)
        rows = last[0].rows if last else 0
        self._figures["snapshot_rows_per_s"] = round(rows / (time.monotonic() - began))

    def _start_engine(self, project: DemoProject) -> Program:
        runner = engine(project.folder)
        self._leftovers.callback(runner.stop)
        began = time.monotonic()
        runner.start()
        self._wait(runner, lambda: bool(self._published(project)), FIRST_EPOCH_LIMIT_S, "the first epoch")
        self._figures["first_epoch_s"] = round(time.monotonic() - began, 1)
        return runner

    def _run_workload(self, project: DemoProject, runner: Program) -> tuple[dict[str, Any], datetime]:
        options, began = self._options, datetime.now(UTC)
        # A killed engine needs some twenty seconds to start again, and the last one must still have work.
        seconds = max(options.seconds, options.kills * SECONDS_PER_KILL)
        writer = workload(project.folder, project.dsn, options.rate, seconds, options.seed)
        self._leftovers.callback(writer.stop)
        writer.start()
        for number in range(1, options.kills + 1):
            self._kill_engine(project, runner, number)
        self._show_epochs(project, runner, writer)
        ended = datetime.fromtimestamp(writer.log_file.stat().st_mtime, UTC)  # the time of its last line
        self._figures["epochs_while_writing"] = sum(
            1 for r in self._published(project) if r.published_at and began < r.published_at < ended and changes_of(r)
        )
        return committed(writer), began

    def _show_epochs(self, project: DemoProject, runner: Program, writer: Program) -> None:
        """Print each epoch when it is published, while the writer runs."""
        shown = len(self._published(project))
        while writer.pid is not None:
            wait_until(lambda: writer.pid is None, 1)
            runner.require_running()
            new = self._published(project)[shown:]
            shown += len(new)
            for record in new:
                self._show.say(f"epoch {record.epoch} at {record.position}: {changes_of(record)} changes")

    def _kill_engine(self, project: DemoProject, runner: Program, number: int) -> None:
        """SIGKILL the engine and its JVM while an intent is open, and start it again."""
        self._wait(runner, lambda: self._has_open_intent(project), CATCH_UP_LIMIT_S, "an open intent")
        runner.kill()
        if not self._has_open_intent(project):
            self._show.say("the intent was published at that moment; once more")
            runner.start()
            return self._kill_engine(project, runner, number)
        intent = read_control(project.settings().warehouse)[-1]
        self._show.say(f"kill {number}: engine killed during attempt {intent.attempt} at epoch {intent.epoch}")
        runner.start()
        epochs = len(self._published(project))
        self._wait(runner, lambda: len(self._published(project)) > epochs, CATCH_UP_LIMIT_S, "the recovered epoch")
        return None

    def _catch_up(self, project: DemoProject, runner: Program) -> None:
        target = current_target(project.settings())
        self._wait(
            runner, lambda: (self._published(project)[-1].complete_to or 0) >= target, CATCH_UP_LIMIT_S, "catching up"
        )

    def _check(self, project: DemoProject, result: dict[str, Any]) -> str:
        settings, published = project.settings(), self._published(project)
        last = published[-1]
        require_equal(project.dsn, settings.warehouse, last.tables)
        totals = bank_totals(settings.warehouse, published)
        self._show.say(f"the bank's total is {totals[0][1]} in each of {len(totals)} epochs")
        consumed = sum(map(changes_of, published))
        if consumed != result["row_changes"]:
            raise CheckFailed(f"the engine consumed {consumed} changes, wanted {result['row_changes']}")
        while_writing = self._figures["epochs_while_writing"]
        if while_writing < EPOCHS_WHILE_WRITING and not self._options.kills:
            raise CheckFailed(f"{while_writing} epochs while the workload ran, wanted {EPOCHS_WHILE_WRITING}")
        epochs = sum(1 for record in published if changes_of(record))
        return (
            f"demo: {consumed} changes in {epochs} epochs, {len(last.mirrors_and_views)} tables and views "
            f"equal to Postgres at {last.position}"
        )

    def _check_epochs(self, project: DemoProject, oracle: WalOracle) -> str:
        queries = {file.stem: file.read_text() for file in POSTGRES_SQL.rglob("*.sql")}
        check = EpochCheck(oracle, project.settings().warehouse, queries)
        check.require_equal()
        oracle.drop()
        return (
            f"check: {check.epochs} epochs × {check.tables} tables and views equal to Postgres replayed in commit order"
        )

    def _print_figures(self, project: DemoProject, began: datetime) -> None:
        published = self._published(project)
        p50, p99 = freshness_s(published, since=began)
        self._figures |= {"freshness_p50_s": round(p50, 1), "freshness_p99_s": round(p99, 1)}
        writing = [record for record in published if record.published_at and record.published_at > began]
        for name, value in self._figures.items():
            self._show.result(f"{name}: {value}")
        stages = ", ".join(f"{stage} {ms}" for stage, ms in stage_medians_ms(writing).items())
        self._show.result(f"epoch_stage_median_ms: {stages}")
        for view, strategies in strategies_taken(writing).items():
            self._show.result(f"epochs_of {view}: {strategies}")

    def _print_next(self, project: DemoProject) -> None:
        is_found = project_folder(Path(DEMO)).absolute() == project.folder
        command = f"cdc-views -C {DEMO if is_found else project.folder}"
        query = "SELECT * FROM order_totals ORDER BY amount DESC LIMIT 5"
        self._show.result("\ntry next (in .venv/bin):")
        self._show.result(f'  {command} query "{query}"')
        self._show.result(f"  {command} search post_search 'honey -lemon' --limit 3")
        self._show.result(f"  {command} timeline home_timeline 1\n  {command} get product_cache 2")
        self._show.result(f"  {command} epochs\n  {command} status")
        if self._options.keep:
            self._show.result(f"  {command} changes post_alerts --since now --follow")
            self._show.result(f"  {command} explain home_timeline\n  {command} down")
        self._show.result("")

    def _published(self, project: DemoProject) -> list[ControlRecord]:
        return [record for record in self._records(project) if record.kind == "publish"]

    def _has_open_intent(self, project: DemoProject) -> bool:
        kinds = [r.kind for r in self._records(project) if r.kind in ("intent", "publish", "abandon")]
        return bool(kinds) and kinds[-1] == "intent"

    def _records(self, project: DemoProject) -> list[ControlRecord]:
        return read_control(project.folder / "warehouse")

    def _wait(self, runner: Program, condition: Any, limit_s: float, what: str) -> None:
        if not wait_until(lambda: runner.pid is None or condition(), limit_s):
            raise NotRunning(f"{what} did not come within {limit_s:.0f} s", hint=f'see "{runner.log_file}"')
        runner.require_running()
