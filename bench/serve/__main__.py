"""`python -m bench.serve`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from bench import command
from bench.observed import Observation, Observer
from bench.rig import Rig, rig_over
from bench.serve.data import LEAST_DOCUMENTS, LIMIT, Sizes, create, statements
from bench.serve.equality import Serving, searches_equal
from bench.serve.fanout import LIMIT_S as FANOUT_LIMIT_S
from bench.serve.figures import fanout_figures, reading_figures
from bench.serve.reading import is_prepared, read_results
from bench.serve.searched import BASELINES, PAGE, Ours
from cdc_views.demo.programs import Program
from cdc_views.errors import NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.store.control import PublishedDetail

_PREPARED_LIMIT_S: Final = 3600.0
_SCANNED_LIMIT_S: Final = 600.0
_COMPARED_SEARCHES: Final = 5
_FANOUT_SLACK_S: Final = 5.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--documents", default=100_000, show_default=True, type=click.IntRange(min=LEAST_DOCUMENTS),
              help="Documents of the index.")  # fmt: skip
@click.option("--followers", default=10_000, show_default=True, type=click.IntRange(min=1),
              help="Followers of the author with the most.")  # fmt: skip
@click.option("--rate", default=100.0, show_default=True, type=click.FloatRange(min=1), help="Row changes per second.")
@click.option("--seconds", default=40.0, show_default=True, type=click.FloatRange(min=1), help="Each measured window.")
@click.option("--warm-up", default=20.0, show_default=True, help="Seconds of load and reads before each window.")
@click.option("--limit", default=LIMIT, show_default=True, type=click.IntRange(min=PAGE),
              help="Entries of a timeline. A follower has some 29: with 25, all timelines are full.")  # fmt: skip
@click.option("--posts", default=3, show_default=True, type=click.IntRange(min=1), help="Posts for all followers.")
@click.option("--profile", type=click.Path(path_type=Path), help="Run the engine under cProfile, into this file.")
@command.baseline_option(",".join(BASELINES), BASELINES)
@command.stack_options
def main(documents: int, followers: int, rate: float, seconds: float, warm_up: float, limit: int, posts: int,
         profile: Path | None, baselines: list[str], state: Path | None, memory: str) -> None:  # fmt: skip
    """Measure reads while everything is written: a search index, a cache and timelines, from another process.

    The load is open, as in `freshness`: 30 % changed documents, 20 % new and 10 % deleted ones, 20 % follows and
    unfollows, 20 % changed rows of the cache. A reader of one process searches, reads pages of timelines and rows of
    the cache, in turns, and rests as long as it has read. Then, under the same load, another one reads the baselines:
    `postgres` is the source itself (tsvector with GIN, the query of the timeline with indexes), `tantivy` and `duckdb`
    (its extension fts) hold a copy of the documents, which does not follow the load. At last, under the same load, an
    author posts whom all followers follow.

    \b
    search_p50_ms, _p95_ms, _p99_ms, _max_ms   the 10 best documents for two words of rank 100 to 100,000
    search_common_*_ms    the same for two words of rank 10 to 100
    timeline_*_ms         a page of 20 entries
    cache_*_ms            a row by its key
    first_ms              the first of each in the process
    <baseline>_*          the same for a baseline; search_density_* of Postgres is by ts_rank_cd
    <baseline>_available  why a baseline is not available here
    scan_rows_per_s       all documents, all columns, the best of three
    visible_p50_s, ...    from the scheduled commit of an update of one document, one row of the cache and one entry of
                          a timeline until the reader has found all three
    states_torn           epochs in which only some of these three had the update
    tantivy_update_ms     delete, add, commit, reload and find one document
    fanout_p50_s, fanout_max_s   from the commit of a post until the first, middle and last follower can read it
    fanout_views_ms       the views stage of the epochs with these posts
    equal                 at the end, every mirror and view equals Postgres
    searches_equal        the best documents and their scores equal BM25 from scratch by SQL, and as many match

    Example: python -m bench.serve --documents 10000 --followers 1000 --seconds 10 --warm-up 5
    """
    sizes = Sizes(documents, followers)
    options = {"documents": documents, "followers": followers, "rate": rate, "seconds": seconds, "warm_up": warm_up,
               "limit": limit, "posts": posts}  # fmt: skip

    def measure() -> dict[str, Any]:
        with (
            statements(limit) as written,
            rig_over(state, partial(create, sizes=sizes), memory, written.views) as rig,
        ):
            command.tell(f"snapshot of {rig.contents.rows} rows")
            rig.capture()
            system = Serving(rig, written.questions, profile)
            return _Run(rig, system, sizes, rate, warm_up, seconds).measure(baselines, posts)

    command.run("serve", options, measure)


@dataclass(frozen=True)
class _Run:
    """The windows of one run, all under the same load."""

    rig: Rig
    system: Serving
    sizes: Sizes
    rate: float
    warm_up_s: float
    seconds: float

    def measure(self, baselines: Sequence[str], posts: int) -> dict[str, Any]:
        command.tell("cdc_views: from nothing to the end of the topics")
        with self.system.running():
            with self._watching() as observer:
                began = time.monotonic()
                observer.wait_ready()
                figures: dict[str, Any] = {"built_s": round(time.monotonic() - began, 1)}
                figures |= self._ours(observer)
                if baselines:
                    figures |= self._read(observer, baselines)[0]
                figures |= self._fanout(observer, posts)
            command.tell("comparing with Postgres")
            figures["equal"] = self.system.is_equal()
            if not figures["equal"]:
                command.tell(str(self.system.describe_differences()))
            figures["searches_equal"] = searches_equal(self.rig.dsn, self.system.warehouse, _COMPARED_SEARCHES)
        return figures

    @contextmanager
    def _watching(self) -> Iterator[Observer]:
        """Run the watcher beside the engine; stop it afterwards."""
        out = self.rig.folder / "seen.jsonl"
        warehouse = str(self.system.warehouse)
        watcher = self.rig.program("watcher", self.rig.folder, "bench.serve.watcher", "--warehouse", warehouse, "--out",
                                   str(out))  # fmt: skip
        watcher.start()
        try:
            yield Observer(self.rig, self.system, watcher, out, 1)
        finally:
            watcher.stop()

    def _ours(self, observer: Observer) -> dict[str, Any]:
        found, observed = self._read(observer, [Ours.name])
        return found | observed.figures("", "visible")

    def _read(self, observer: Observer, names: Sequence[str]) -> tuple[dict[str, Any], Observation]:
        """Read these systems in a window of the load."""
        out = self.rig.folder / f"read-{names[0]}.jsonl"
        options = {"systems": ",".join(names), "warehouse": self.system.warehouse, "documents": self.sizes.documents,
                   "followers": self.sizes.followers, "warm-up": self.warm_up_s, "seconds": self.seconds,
                   "out": out}  # fmt: skip
        reader = self._program(f"read-{names[0]}", "bench.serve.reading", options)
        _wait(reader, lambda: is_prepared(out), _PREPARED_LIMIT_S)
        command.tell(f"reading {', '.join(names)} at {self.rate:g} changes a second")
        observed = observer.observe(self.rate, self.warm_up_s, self.seconds)
        _wait(reader, lambda: read_results(out) is not None, _SCANNED_LIMIT_S)
        return reading_figures(read_results(out) or {}), observed

    def _fanout(self, observer: Observer, posts: int) -> dict[str, Any]:
        """Post for all followers in a window of the load."""
        command.tell(f"{posts} posts for {self.sizes.followers} followers")
        out, first = self.rig.folder / "fanout.json", self.system.published()[-1].epoch
        options = {"warehouse": self.system.warehouse, "followers": self.sizes.followers, "posts": posts, "out": out}
        fanout = self._program("fanout", "bench.serve.fanout", options)
        observer.observe(self.rate, 0, max(self.seconds, _FANOUT_SLACK_S))
        _wait(fanout, lambda: out.exists() and out.read_text().endswith("\n"), FANOUT_LIMIT_S)
        later = [PublishedDetail.read(record) for record in self.system.published() if record.epoch > first]
        slowest = sorted((round(detail.stage_ms.get("views", 0)) for detail in later), reverse=True)
        return {**fanout_figures(json.loads(out.read_text())), "fanout_views_ms": slowest[:posts]}

    def _program(self, name: str, module: str, options: dict[str, object]) -> Program:
        arguments = [part for option, value in options.items() for part in (f"--{option}", str(value))]
        program = self.rig.program(name, self.rig.folder, module, *arguments)
        program.start()
        return program


def _wait(program: Program, is_done: Any, limit_s: float) -> None:
    """Wait for what a process writes. Raises NotRunning if it ends without it."""

    def is_over() -> bool:
        return bool(is_done()) or program.pid is None

    wait_until(is_over, limit_s)
    if not is_done():
        program.require_running()
        raise NotRunning(f"{program.name} has not ended within {limit_s:.0f} s")


if __name__ == "__main__":
    main()
