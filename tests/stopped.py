"""Engines that are stopped at a fault point, and woken after another one has taken over."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from cdc_views import faults
from cdc_views.errors import CdcViewsError
from cdc_views.store.storage import durable

LIMIT_S: Final = 60


def is_stopped(pid: int) -> bool:
    """Whether a process of ours stands still, by SIGSTOP."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def forking(*preloaded: str) -> ForkServerContext:
    """Processes that have these modules imported already; they are forked from one that runs nothing."""
    context = get_context("forkserver")
    context.set_forkserver_preload([*preloaded, __name__])
    return context


def run_armed(work: Callable[[Path], None], root: Path, fault: str, errors: Path) -> None:
    """Do a work in a process of its own, and end as the command line does: a named error, and its status."""
    os.environ[faults.VARIABLE] = fault
    durable._is_on = False  # this is about other writers
    try:
        work(root)
    except CdcViewsError as error:
        errors.write_text(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_status)


def let_go(process: BaseProcess) -> None:
    """Wake a stopped process, and wait for its end."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)
    process.join(LIMIT_S)
