"""Independent work on several tables at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> list[Result]:
    """Do `work` for each item in threads; all have ended when this returns or raises the first error."""
    with ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="tables") as pool:
        futures = [pool.submit(work, item) for item in items]
    return [future.result() for future in futures]


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Do `work` in a thread while the block runs; both have ended afterwards. Raises what the work raised first."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside") as pool:
        future = pool.submit(work)
        try:
            yield
        finally:
            future.result()
