"""`python -m bench.soak`. bench/method.md has the goals on two cores."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import click

from bench import command
from bench.figures import quantile
from bench.rig import leftovers, scratch
from bench.soak.alarms import DAMAGES, Damage
from bench.soak.proxy import Proxy
from bench.soak.round import Round, Tally
from bench.soak.world import World
from cdc_views.errors import CdcViewsError
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.kafka import Relay
from cdc_views.stack.services.ports import choose_ports, free_port


def measure(
    minutes: float,
    versions: int | None,
    round_minutes: float,
    rate: float,
    pause_s: float,
    seed: int,
    memory: str,
    at_least_once: bool,
    keep: bool,
) -> Mapping[str, Any]:
    """Run rounds until the time is over, or until `versions` versions are checked."""
    tally, random, began = Tally(), Random(seed), time.monotonic()
    damages = _shuffled(random)

    def is_over(checked: int) -> bool:
        is_enough = versions is not None and tally.versions + checked >= versions
        return is_enough or time.monotonic() - began > minutes * 60

    with scratch(keep=keep) as folder, _stack(folder / "stack", at_least_once) as (stack, networks):
        if keep:
            command.tell(f'after an error everything is left in "{folder}"')
        try:
            while not is_over(0):
                until_s = time.monotonic() + round_minutes * 60
                with leftovers(keep=keep) as made, ExitStack() as running:
                    world = World(stack, networks, folder, memory, made)
                    running.callback(world.stop_engine)
                    Round(world, random, rate, pause_s, tally).run(is_over, until_s, next(damages))
        except CdcViewsError:
            command.tell(f"until then: {json.dumps(_figures(tally, time.monotonic() - began))}")
            raise
    return _figures(tally, time.monotonic() - began)


@contextmanager
def _stack(state: Path, at_least_once: bool) -> Iterator[tuple[LocalStack, Mapping[str, Proxy]]]:
    """The services, and the relays before two of them, by name. Connect has none: only this program calls it."""
    ports = choose_ports(state, {})
    target = free_port(exclude=ports.values())
    of_worker = {"exactly.once.source.support": "disabled"} if at_least_once else {}
    with (
        Proxy(ports["postgres"]) as postgres,
        Proxy(target) as kafka,
        LocalStack(
            state, ports, durable=False, short_lived=True, kafka_relay=Relay(kafka.port, target),
            connect_settings=of_worker,
        ) as stack,
    ):  # fmt: skip
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
        "ways": {name: sorted(ways) for name, ways in sorted(tally.ways.items())},
        "faults_fired": dict(sorted(tally.fired.items())),
        "engine_ended": dict(sorted(tally.ended.items())),
        "recovery_p50_s": _quantile_s(tally.recoveries_s, 0.5),
        "recovery_p99_s": _quantile_s(tally.recoveries_s, 0.99),
        "alarm_p99_s": _quantile_s(tally.alarms_s, 0.99),
        "all_equal": not tally.wrong and not tally.broken,
    }


def _quantile_s(times_s: Sequence[float], part: float) -> float | None:
    """A quantile; None if there was an error before anything could be timed."""
    return round(quantile(times_s, part), 1) if times_s else None


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="Length of the run.")
@click.option("--versions", type=int, help="End earlier, when this many versions are checked.")
@click.option("--round-minutes", default=12.0, show_default=True, help="Length of the faults in a round.")
@click.option("--rate", default=20.0, show_default=True, help="Transactions per second.")
@click.option("--pause", default=1.0, show_default=True, help="Seconds from one fault to the next, on average.")
@click.option("--seed", default=1, show_default=True, help="Seed for the faults, their times, and the load.")
@click.option("--at-least-once", is_flag=True, help="Use a Connect worker without exactly-once support.")
@click.option("--keep", is_flag=True, help="After an error, leave everything for inspection.")
@click.option("--memory", default="1g", show_default=True, help="Heap of the engine's Spark driver.")
def main(
    minutes: float, versions: int | None, round_minutes: float, rate: float, pause: float, seed: int,
    at_least_once: bool, keep: bool, memory: str,
) -> None:  # fmt: skip
    """Run random faults under load, and compare every published version with Postgres."""
    options = {"minutes": minutes, "versions": versions, "round_minutes": round_minutes, "rate": rate, "pause": pause,
               "seed": seed, "at_least_once": at_least_once}  # fmt: skip
    command.tell(f"seed {seed}")
    command.run(
        "soak",
        options,
        lambda: measure(minutes, versions, round_minutes, rate, pause, seed, memory, at_least_once, keep),
    )


if __name__ == "__main__":
    main()
