"""`python -m bench.soak`: the goals on two cores are in bench/README.md."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import click

from bench import command
from bench.figures import quantile
from bench.rig import scratch
from bench.soak.alarms import DAMAGES, Damage
from bench.soak.proxy import Proxy
from bench.soak.round import Round, Tally
from bench.soak.world import World
from cdc_views.stack.kafka import Relay
from cdc_views.stack.local import LocalStack
from cdc_views.stack.ports import choose_ports, free_port


def measure(
    minutes: float,
    versions: int | None,
    round_minutes: float,
    rate: float,
    pause_s: float,
    seed: int,
    memory: str,
) -> Mapping[str, Any]:
    """Rounds until the time is over, or so many `versions` were checked."""
    tally, random, began = Tally(), Random(seed), time.monotonic()
    damages = _shuffled(random)

    def is_over(checked: int) -> bool:
        is_enough = versions is not None and tally.versions + checked >= versions
        return is_enough or time.monotonic() - began > minutes * 60

    with scratch() as folder, _stack(folder / "stack") as (stack, networks):
        while not is_over(0):
            until_s = time.monotonic() + round_minutes * 60
            with ExitStack() as leftovers:
                world = World(stack, networks, folder, memory, leftovers)
                Round(world, random, rate, pause_s, tally).run(is_over, until_s, next(damages))
    return _figures(tally, time.monotonic() - began)


@contextmanager
def _stack(state: Path) -> Iterator[tuple[LocalStack, Mapping[str, Proxy]]]:
    """The services, and the networks to two of them by their names. Connect has none: only we ask it."""
    ports = choose_ports(state, {})
    target = free_port(exclude=ports.values())
    with (
        Proxy(ports["postgres"]) as postgres,
        Proxy(target) as kafka,
        LocalStack(state, ports, durable=False, kafka_relay=Relay(kafka.port, target)) as stack,
    ):
        yield stack, {"postgres": postgres, "kafka": kafka}


def _shuffled(random: Random) -> Iterator[Damage]:
    while True:
        yield from random.sample(DAMAGES, len(DAMAGES))


def _figures(tally: Tally, seconds: float) -> Mapping[str, Any]:
    for each in tally.wrong[:20]:
        command.tell(each)
    return {
        "minutes": round(seconds / 60, 1),
        "versions_checked": tally.versions,
        "epochs_checked": tally.epochs,
        "readings": tally.readings,
        "wrong": len(tally.wrong),
        "bank_broken": len(tally.broken),
        "kills": tally.kills,
        "faults_fired": dict(sorted(tally.fired.items())),
        "engine_ended": dict(sorted(tally.ended.items())),
        "recovery_p50_s": round(quantile(tally.recoveries_s, 0.5), 1),
        "recovery_p99_s": round(quantile(tally.recoveries_s, 0.99), 1),
        "alarm_p99_s": round(quantile(tally.alarms_s, 0.99), 1),
        "all_equal": not tally.wrong and not tally.broken,
    }


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="For how long.")
@click.option("--versions", type=int, help="End sooner, when so many versions are checked.")
@click.option("--round-minutes", default=10.0, show_default=True, help="How long a round has faults.")
@click.option("--rate", default=20.0, show_default=True, help="Transactions a second.")
@click.option("--pause", default=2.0, show_default=True, help="Seconds from one fault to the next, on average.")
@click.option("--seed", default=1, show_default=True, help="Of faults, their times, and the load.")
@click.option("--memory", default="1g", show_default=True, help="Heap of the engine's Spark driver.")
def main(
    minutes: float, versions: int | None, round_minutes: float, rate: float, pause: float, seed: int, memory: str
) -> None:
    """Faults at random under load, every published version compared with Postgres."""
    options = {"minutes": minutes, "versions": versions, "round_minutes": round_minutes, "rate": rate, "pause": pause,
               "seed": seed}  # fmt: skip
    command.tell(f"seed {seed}")
    command.run("soak", options, lambda: measure(minutes, versions, round_minutes, rate, pause, seed, memory))


if __name__ == "__main__":
    main()
