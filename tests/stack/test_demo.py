"""The demo as a user runs it, in the hardest of its forms, and what its reader does with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from tests.page_blocks import block
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.md"
LIMIT_S = 120
FOLLOWED, KEY = "order_totals", "user_id"
KILLS = 1  # more of them, and of other things, in test_soak.py
LAST_LINE = re.compile(
    r"demo: (\d+) changes in (\d+) epochs, 15 tables and views equal to Postgres at [0-9A-F]+/[0-9A-F]+"
)
# Runs the blocks of a notebook in one namespace, and prints what each has printed as a line of JSON.
KERNEL = """
import contextlib, io, json, sys
names = {"__name__": "__main__"}
for number, code in enumerate(json.load(sys.stdin), 1):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(code, f"block {number}", "exec"), names)
    print(json.dumps(shown.getvalue()), flush=True)
"""


def processes_of(state: Path) -> list[str]:
    """Command lines that name the state folder, and those of processes that stand in it."""
    others = [each.info for each in psutil.process_iter(["cmdline", "cwd"], ad_value="") if each.pid != os.getpid()]
    commands = [(" ".join(info["cmdline"]), info["cwd"]) for info in others]
    return [command for command, where in commands if str(state) in command or where.startswith(str(state))]


def start_demo(state: Path, *options: str) -> subprocess.Popen[str]:
    """Start the demo, with all that belongs to it in this folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "cdc_views.demo", *options],
        env={**os.environ, "CDC_VIEWS_STATE": str(state)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_demo(state: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the demo, which kills its engine, to its end."""
    with start_demo(state, "--kill-engine", str(KILLS), *options) as process:
        try:
            out, err = process.communicate(timeout=840)
        finally:
            process.terminate()  # it stops what it has started
    return subprocess.CompletedProcess(options, process.returncode, out, err)


def assert_killed_and_equal(done: subprocess.CompletedProcess[str], least: int) -> None:
    """The demo has killed the engine, found everything equal, and said so; `least` changes were committed."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert found, done.stdout
    assert int(found[1]) >= least
    assert int(found[2]) > KILLS
    assert done.stderr.count("engine killed during attempt") == KILLS


@pytest.mark.parametrize(
    "step", ["1. stack", *(pytest.param(step, marks=pytest.mark.nightly) for step in ("4. connector", "5. engine"))]
)
def test_interrupted_demo_leaves_no_process(state_folder: Path, step: str) -> None:
    process = start_demo(state_folder)
    assert process.stderr is not None
    for line in process.stderr:
        if step in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    wait_for(lambda: processes_of(state_folder) == [], 10)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_whole_demo_with_killed_engine_equals_postgres_and_leaves_no_process(state_folder: Path) -> None:
    assert_killed_and_equal(run_demo(state_folder, "--seconds", "60"), 20_000)
    assert processes_of(state_folder) == []


class Follower:
    """Follows a view of the demo in a thread, and is killed (SIGKILL) after some epochs again and again.

    `copy` is the view as the lines tell it, by its first column; each goes on from the token of the last one.
    """

    EPOCHS = 2

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.copy: dict[Any, dict[str, Any]] = {}
        self.epochs: list[int] = []
        self.snapshots = self.kills = 0
        self._token: str | None = None
        self._environment, self._folder = environment, folder
        self._ended = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.kill()
        self._thread.join(LIMIT_S)

    def lines(self, *options: str) -> Generator[dict[str, Any]]:
        """The whole lines of the command; none while there is nothing to follow."""
        command = [sys.executable, "-m", "cdc_views.cli.main", "-C", "demo", "changes", FOLLOWED, "--json", *options]
        with subprocess.Popen(command, env=self._environment, cwd=self._folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:  # fmt: skip
            assert process.stdout is not None
            self._process = process
            yield from (json.loads(line) for line in process.stdout if line.endswith("\n"))

    def catch_up(self) -> None:
        """Read up to the last epoch."""
        self._take(self.lines("--since", str(self._token)))

    def _follow(self) -> None:
        while not self._ended.wait(0.2):
            since = () if self._token is None else ("--since", self._token)
            lines, before = self.lines("--follow", *since), len(self.epochs)
            for line in lines:
                self._take([line])
                if len(self.epochs) - before == self.EPOCHS:
                    assert self._process is not None
                    self._process.kill()
                    self.kills += 1
                    break
            lines.close()

    def _take(self, lines: Iterable[dict[str, Any]]) -> None:
        for line in lines:
            if "snapshot" in line:
                self.snapshots += line["snapshot"] == 1
                self.copy |= {row[KEY]: row for row in line["rows"]}
            else:
                self._apply(line)
            if "token" in line:
                self._token = line["token"]
                self.epochs.append(line["epoch"])

    def _apply(self, line: dict[str, Any]) -> None:
        for old in [*line["deleted"], *(update["old"] for update in line["updated"])]:
            assert self.copy.pop(old[KEY]) == old
        for new in [*line["inserted"], *(update["new"] for update in line["updated"])]:
            assert new[KEY] not in self.copy
            self.copy[new[KEY]] = new


@dataclass(frozen=True)
class KeptDemo:
    """A demo that was run with `--keep`: what it printed, the environment in which commands find it, and a follower."""

    done: subprocess.CompletedProcess[str]
    environment: dict[str, str]
    follower: Follower


@pytest.fixture(scope="module")
def kept(enterable_folder: Path) -> Iterator[KeptDemo]:
    """A short demo whose stack and engine go on until the end of this file."""
    state = enterable_folder / "kept-demo"
    state.mkdir()
    environment = {**os.environ, "CDC_VIEWS_STATE": str(state)}
    with Follower(environment, state) as follower:
        done = run_demo(state, "--keep", "--seconds", "20")
    yield KeptDemo(done, environment, follower)
    subprocess.run([sys.executable, "-m", "cdc_views.cli.main", "down"], env=environment, check=True, timeout=120)
    wait_for(lambda: processes_of(state) == [], 10)


@pytest.mark.timeout(900)
def test_kept_demo_with_killed_engine_equals_postgres(kept: KeptDemo) -> None:
    assert_killed_and_equal(kept.done, 4_000)


def test_follower_loses_and_repeats_nothing_while_the_engine_and_it_are_killed(kept: KeptDemo) -> None:
    follower = kept.follower
    follower.catch_up()
    assert follower.snapshots == 1
    assert follower.epochs == sorted(follower.epochs)
    assert follower.kills > 0, follower.epochs
    assert len(follower.epochs) > Follower.EPOCHS + 1
    wanted = [row for line in follower.lines() if "snapshot" in line for row in line["rows"]]
    assert follower.copy == {row[KEY]: row for row in wanted}


@dataclass(frozen=True)
class Block:
    """A block of the notebook, and what the page says that it prints. Its numbers may vary."""

    code: str
    output: str
    varies: bool

    def same(self, output: str) -> str:
        """The output without what may differ between two runs."""
        return re.sub(r"[0-9A-F]+/[0-9A-F]+|[0-9.]+", "#", output) if self.varies else output


def blocks_of_the_notebook() -> list[Block]:
    text = NOTEBOOK.read_text(encoding="utf-8")
    found = re.findall(r"(<!-- varies -->\n)?```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("```python\n")
    return [Block(code, output, bool(mark)) for mark, code, output in found]


@pytest.mark.nightly
def test_blocks_of_the_notebook_print_what_the_page_says(kept: KeptDemo) -> None:
    blocks = blocks_of_the_notebook()
    done = subprocess.run(
        [sys.executable, "-c", KERNEL], input=json.dumps([block.code for block in blocks]),
        env={**kept.environment, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},  # the second compiler pays later
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{shown}\n{done.stderr}"
    assert [block.same(output) for block, output in zip(blocks, shown, strict=True)] == [
        block.same(block.output) for block in blocks
    ]


def lines_of_the_readme(name: str) -> list[str]:
    """The lines of a block of the README."""
    return block("README.md", name).replace(".venv/bin/", f"{Path(sys.executable).parent}/").splitlines()


def test_lines_of_the_readme_query_search_page_and_get(kept: KeptDemo, tmp_path: Path) -> None:
    _demo, *lines, rebuild = lines_of_the_readme("demo")
    assert "rebuild" in rebuild  # tests/docker runs it
    shown = []
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line], env=kept.environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    totals, documents, entries, product = shown
    assert len(totals.splitlines()) > 5
    assert documents.lower().count("honey") > 0
    assert "lemon" not in documents.lower()
    assert len(entries.splitlines()) > 1
    assert product.splitlines()[-1].split()[0] == "2"


def test_lines_of_the_readme_follow_a_view_and_read_a_commit(kept: KeptDemo, tmp_path: Path) -> None:
    second_terminal, *lines = lines_of_the_readme("kept")
    with subprocess.Popen(
        ["bash", "-c", f"exec {second_terminal}"], env=kept.environment, cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as follower:  # fmt: skip
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert ": 0 inserted, " in follower.stderr.readline()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(lines)], env=kept.environment, cwd=tmp_path,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert '"sku":"P-0"' in done.stdout
        [followed] = [line for line in (follower.stdout.readline() for _ in range(2)) if "P-0" in line]
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=60)
    assert followed.split()[:2] == ["insert", "0"]
