"""The figures of the demo, computed from the control log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Final

from cdc_views.base.names import HIDDEN
from cdc_views.metrics import STAGES
from cdc_views.store.control import ControlRecord, PublishedDetail

SAMPLES_PER_EPOCH: Final = 50


def freshness_s(published: Sequence[ControlRecord], since: datetime) -> tuple[float, float]:
    """p50 and p99 of the seconds from a commit to the publication of its epoch, for commits after `since`.

    The commits of an epoch are assumed to be evenly spread between the previous marker and its own. Epochs are weighted
    by their number of changes. `published` contains all published records, oldest first.
    """
    samples: list[tuple[float, float]] = []
    for before, epoch in pairwise(published):
        changes = changes_of(epoch)
        if not changes or not (before.committed_at and epoch.committed_at and epoch.published_at):
            continue
        first, last = max(before.committed_at, since), epoch.committed_at
        for step in range(SAMPLES_PER_EPOCH):
            moment = first + (last - first) * (step + 0.5) / SAMPLES_PER_EPOCH
            samples.append(((epoch.published_at - moment).total_seconds(), changes / SAMPLES_PER_EPOCH))
    return _quantile(samples, 0.5), _quantile(samples, 0.99)


def stage_medians_ms(published: Iterable[ControlRecord]) -> dict[str, int]:
    """Median milliseconds of each stage, over the epochs with changes."""
    spent = [PublishedDetail.read(record).stage_ms for record in published if changes_of(record)]
    return {stage: round(median([each[stage] for each in spent if stage in each] or [0])) for stage in STAGES}


def strategies_taken(published: Iterable[ControlRecord]) -> dict[str, str]:
    """How often each view was maintained by each strategy, such as `24 keys, 2 full`, the most frequent first.

    Without internal views.
    """
    taken: dict[str, Counter[str]] = {}
    for record in published:
        for view, strategy in PublishedDetail.read(record).ways.get("view", {}).items():
            if not view.startswith(HIDDEN):
                taken.setdefault(view, Counter())[strategy] += 1
    return {
        view: ", ".join(f"{count} {strategy}" for strategy, count in counts.most_common())
        for view, counts in sorted(taken.items())
    }


def changes_of(record: ControlRecord) -> int:
    """Row changes in an epoch, without those of the initial snapshot."""
    return sum(PublishedDetail.read(record).changes.values())


def _quantile(samples: list[tuple[float, float]], part: float) -> float:
    total, seen = sum(weight for _, weight in samples), 0.0
    for value, weight in sorted(samples):
        seen += weight
        if seen >= part * total:
            return value
    return float("nan")
