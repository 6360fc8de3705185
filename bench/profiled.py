"""Runs `cdc-views` under cProfile, with all threads: where an epoch spends its time in Python.

    python -m bench.profiled FILE -C PROJECT run

At the end, also after a signal, the profile is in FILE. Read it with `python -m pstats FILE`.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
from typing import Any

from cdc_views.cli.main import main


def profiled(file: str, arguments: list[str]) -> None:
    """Run the command line and write the profile."""
    profiles: list[cProfile.Profile] = []

    def profile_thread(*_: Any) -> None:
        # Called at the first step of a new thread. From then on the profiler itself receives the calls.
        profiles.append(cProfile.Profile())
        profiles[-1].enable()

    threading.setprofile(profile_thread)
    profile_thread()
    try:
        main(arguments)
    finally:
        profiles[0].disable()
        stats = pstats.Stats(profiles[0])
        for other in profiles[1:]:
            stats.add(other)
        stats.dump_stats(file)


if __name__ == "__main__":
    profiled(sys.argv[1], sys.argv[2:])
