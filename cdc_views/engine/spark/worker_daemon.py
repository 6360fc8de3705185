"""The process that forks Spark's Python workers: pyspark's own, with workers that spend less time on garbage.

Spark runs it as `python -m cdc_views.engine.spark.worker_daemon`. After each task, a worker of pyspark collects garbage
among all objects that it has, most of which are those of imported modules: 9 ms of processor for a task that takes 1.
Here each later collection skips the objects that exist after the first task.
"""

from __future__ import annotations

import gc
from socket import socket
from typing import Final

from pyspark import daemon

_run_task: Final = daemon.worker


def _run_task_and_freeze(sock: socket, authenticated: bool) -> int:
    try:
        return _run_task(sock, authenticated)
    finally:
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()


if __name__ == "__main__":
    daemon.worker = _run_task_and_freeze  # its loop looks the function up by this name
    daemon.manager()
