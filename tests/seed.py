"""The seed of the tests with random data: another one for each run, which prints it, or the one in CDC_VIEWS_SEED."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random, randrange
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings

from tests.samples import EXAMPLES

_DRAWN: Final = "CDC_VIEWS_DRAWN_SEED"  # set by the first process of a run, for those that it starts
_ALL_CASES: Final = os.environ.get("CDC_VIEWS_CASES") == "all"
_IS_GIVEN: Final = bool(os.environ.get("CDC_VIEWS_SEED"))

SEED: Final = int(os.environ.get("CDC_VIEWS_SEED") or os.environ.setdefault(_DRAWN, str(randrange(2**32))))


def randomly(examples: int) -> Callable[[Any], Any]:
    """Let Hypothesis draw other examples in every run.

    To make a failure smaller takes minutes: it does so only where the seed is given, to look into it.
    """
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if _IS_GIVEN else [Phase.generate],
        print_blob=False,
        report_multiple_bugs=False,
    )
    return lambda test: seed(SEED)(chosen(test))


def drawn(quick: int, cases: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Parameters of a test: `quick` of the cases in every run, others each time; the rest is marked `nightly`.

    With CDC_VIEWS_CASES=all, as in `just nightly`, all are marked.
    """
    now = Random(SEED).sample(range(len(cases)), 0 if _ALL_CASES else quick)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=ids[number] if ids else None,
            marks=() if number in now else pytest.mark.nightly,
        )
        for number, case in enumerate(cases)
    ]


@contextmanager
def naming_the_seed(variables: str = f"CDC_VIEWS_EXAMPLES={EXAMPLES}") -> Iterator[None]:
    """Say in a failure how to have the same examples again: by the seed, and by what says how many there are."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the same examples: CDC_VIEWS_SEED={SEED} {variables}")
        raise
