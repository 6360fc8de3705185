"""The names of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from bench.figures import QUANTILES, quantile

_OURS: Final = "cdc_views"


def reading_figures(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Quantiles of each operation by system, and what else was measured of it. Ours have no prefix."""
    figures: dict[str, Any] = {}
    for name, found in results.items():
        prefix = "" if name == _OURS else f"{name}_"
        if found["missing"] is not None:
            figures[f"{prefix}available"] = f"not available: {found['missing']}"
            continue
        for operation, took_ms in found["ms"].items():
            figures |= {
                f"{prefix}{operation}_{part}_ms": round(quantile(took_ms, QUANTILES[part]), 2) for part in QUANTILES
            }
            figures[f"{prefix}{operation}_count"] = len(took_ms)
        figures[f"{prefix}first_ms"] = found["first_ms"]
        figures |= {f"{prefix}{fact}": value for fact, value in found["facts"].items()}
    return figures


def fanout_figures(took_s: Sequence[float]) -> dict[str, Any]:
    """The seconds until a post could be read by all followers."""
    return {"fanout_posts_s": list(took_s), "fanout_p50_s": median(took_s), "fanout_max_s": max(took_s)}
