"""The figures of all sizes, and the picture of cost against size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.picture import line_chart
from bench.views.baselines import Recomputed
from bench.views.stage import Epoch


@dataclass(frozen=True)
class Measured:
    """What was measured over `rows` base rows: epochs by number of changes, and baselines by name."""

    rows: int
    build_ms: float
    epochs: Mapping[int, Sequence[Epoch]]
    view_rows: Mapping[str, int]
    baselines: Mapping[str, Recomputed]

    def views_ms(self, changes: int) -> float:
        """The median time of the views stage."""
        return median(epoch.views_ms for epoch in self.epochs[changes])

    def recomputed_ms(self, baseline: str, changes: int) -> float:
        """The median time that a baseline needs for the views above the tables that an epoch has changed."""
        took_ms = self.baselines[baseline].took_ms
        return median(sum(took_ms[view] for view in epoch.due) for epoch in self.epochs[changes])

    def all_ms(self, baseline: str) -> float:
        """The time that a baseline needs for all views."""
        return sum(self.baselines[baseline].took_ms.values())

    def of_views(self) -> dict[str, Any]:
        """For each view its rows, its time by each baseline, and what the engine recorded, by number of changes."""
        return {
            view: {
                "rows": rows,
                **{f"{name}_ms": round(each.took_ms[view], 1) for name, each in self.baselines.items()},
                **{f"changes_{changes}": _middle([epoch.costs[view] for epoch in epochs if view in epoch.costs])
                   for changes, epochs in self.epochs.items()},
            }
            for view, rows in self.view_rows.items()
        }  # fmt: skip


def figures(sizes: Sequence[Measured]) -> dict[str, Any]:
    """All figures by name; times in milliseconds."""
    found: dict[str, Any] = {}
    for size in sizes:
        found[f"build_{size.rows}_ms"] = round(size.build_ms, 1)
        found |= {f"{name}_{size.rows}_all_ms": round(size.all_ms(name), 1) for name in size.baselines}
        for changes in size.epochs:
            label, ours = f"{size.rows}_changes_{changes}", size.views_ms(changes)
            found[f"views_{label}_ms"] = round(ours, 1)
            for name in size.baselines:
                theirs = size.recomputed_ms(name, changes)
                found |= {f"{name}_{label}_ms": round(theirs, 1), f"{name}_{label}_ratio": _ratio(theirs, ours)}
    for changes in sizes[0].epochs:
        smallest, largest = min(sizes, key=_rows), max(sizes, key=_rows)
        found[f"flat_changes_{changes}_ratio"] = _ratio(largest.views_ms(changes), smallest.views_ms(changes))
    return {**found, "views": {str(size.rows): size.of_views() for size in sizes}}


def draw(sizes: Sequence[Measured], folder: Path) -> None:
    """Write the picture into the folder."""
    lines = {f"{changes:,} {'change' if changes == 1 else 'changes'}":
             [(float(size.rows), size.views_ms(changes)) for size in sizes] for changes in sizes[0].epochs}  # fmt: skip
    lines |= {
        f"all views recomputed by {name}": [(float(size.rows), size.all_ms(name)) for size in sizes]
        for name in sizes[0].baselines
    }
    folder.mkdir(parents=True, exist_ok=True)
    title = "The views stage of an epoch, by rows of the base tables"
    (folder / "views-sizes.svg").write_text(line_chart(title, "rows", "milliseconds", lines, log_x=True, log_y=True))


def _rows(size: Measured) -> int:
    return size.rows


def _ratio(part: float, whole: float) -> float:
    # A stage that changes nothing may take less than half a millisecond.
    return round(part / max(1.0, whole), 2)


def _middle(costs: Sequence[Mapping[str, int | float | str]]) -> dict[str, Any]:
    """The median of every number, and the different texts of every text; `epochs` is the number of epochs."""
    found: dict[str, Any] = {"epochs": len(costs)}
    for name in {name: None for cost in costs for name in cost}:
        values = [cost[name] for cost in costs if name in cost]
        numbers = [value for value in values if not isinstance(value, str)]
        found[name] = round(median(numbers), 1) if numbers else "+".join(sorted({str(value) for value in values}))
    return found
