"""A line chart as SVG, with logarithmic or linear axes. The text is readable and comparable."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

Points = Sequence[tuple[float, float]]

_WIDTH: Final = 640
_HEIGHT: Final = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 50
_COLOURS: Final = ("#1f5fa8", "#c2571a", "#3a7d44", "#7b3f98", "#8a6d1f", "#555555")
_TICKS: Final = 5


def line_chart(
    title: str, x_label: str, y_label: str, lines: Mapping[str, Points], *, log_x: bool = False, log_y: bool = False
) -> str:
    """The text of an SVG file with one line for each named series; a linear y axis starts at 0.

    With `log_x` every decade has the same width, and a point below 1 is drawn as if it were at 1; likewise `log_y`.
    """
    points = [point for line in lines.values() for point in line]
    place_x, ticks_x = _logarithmic([x for x, _ in points]) if log_x else _linear([0, *(x for x, _ in points)])
    place_y, ticks_y = _logarithmic([y for _, y in points]) if log_y else _linear([0, *(y for _, y in points)])

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return round(_LEFT + place_x(x) * across, 1), round(_HEIGHT - _BOTTOM - place_y(y) * up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_WIDTH / 2, 20, title, "middle", 'font-size="14"'),
        _text(_WIDTH / 2, _HEIGHT - 10, x_label, "middle"),
        _text(16, _HEIGHT / 2, y_label, "middle", f'transform="rotate(-90 16 {_HEIGHT / 2:g})"'),
    ]
    for tick in ticks_y:
        (left, y), (right, _) = at(ticks_x[0], tick), at(ticks_x[-1], tick)
        parts.append(f'<path d="M{left:g} {y:g}H{right:g}" stroke="#ddd"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:,.10g}", "end"))
    for tick in ticks_x:
        x, y = at(tick, ticks_y[0])
        parts.append(_text(x, y + 18, f"{tick:,.10g}", "middle"))
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [at(*point) for point in line]
        path = "L".join(f"{x:g} {y:g}" for x, y in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:g}" cy="{y:g}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(_text(_LEFT + 10, _TOP + 14 + 16 * number, name, "start", f'fill="{colour}"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, further: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {further}>{escape(text)}</text>'


def _linear(values: Sequence[float]) -> tuple[Callable[[float], float], list[float]]:
    step = _round_step(max(values) / _TICKS)
    ticks = [step * number for number in range(math.ceil(max(values) / step) + 1)]
    return lambda value: value / ticks[-1], ticks


def _logarithmic(values: Sequence[float]) -> tuple[Callable[[float], float], list[float]]:
    exponents = [math.log10(max(1.0, value)) for value in values]
    first, last = math.floor(min(exponents)), max(math.ceil(max(exponents)), math.floor(min(exponents)) + 1)
    ticks = [10.0**exponent for exponent in range(first, last + 1)]
    return lambda value: (math.log10(max(1.0, value)) - first) / (last - first), ticks


def _round_step(least: float) -> float:
    """The first of 1, 2, 5, 10, ... times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)
