"""Values as the text that Postgres prints, from Debezium's JSON.

As Postgres prints them with DateStyle ISO, IntervalStyle postgres, TimeZone UTC and the default extra_float_digits.
Measured differences between Debezium's snapshot and its stream are evened out here.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from cdc_views.capture.inexact import InexactValueError, OtherShapeError

SPECIAL_NUMERICS: Final = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
SPECIAL_FLOATS: Final = frozenset({"NaN", "Infinity", "-Infinity"})

_DAY_US: Final = 86_400_000_000
# A snapshot reads dates as Java's; Java's infinities are other days than those in the stream.
_SPECIAL_DAYS: Final = {
    2_146_033_979: "infinity",
    -622_191_234: "infinity",
    -2_147_472_691: "-infinity",
    -625_821_272: "-infinity",
}
_SPECIAL_MICROSECONDS: Final = {2**63 - 1: "infinity", -(2**63): "-infinity"}
_FIRST_US: Final = -210_866_803_200_000_000  # 4714-11-24 BC, the first day that Postgres has

_INTERVAL: Final = re.compile(r"P(-?\d+)Y(-?\d+)M(-?\d+)DT(-?\d+)H(-?\d+)M(-?)(\d+)(?:\.(\d+))?S")
_ISO_TIME: Final = re.compile(r"([+-]?\d+)-(\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?Z")
_ZONED: Final = re.compile(
    r"(\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d(?::\d\d){0,2})( BC)?"  # as Postgres prints a timestamptz
)


def bpchar(text: str) -> str:
    """A char(n) without its padding, which Postgres ignores in comparisons."""
    return text.rstrip(" ")


def numeric(text: str) -> str:
    """A numeric in plain digits."""
    if "E" not in text and "N" not in text:
        return text
    # Java prints 0.0000000001 as 1E-10.
    return SPECIAL_NUMERICS.get(text) or format(Decimal(text), "f")


def whole_numeric(text: str) -> str:
    """A numeric of negative scale; Debezium writes zeros after its point."""
    return SPECIAL_NUMERICS.get(text) or format(Decimal(text).to_integral_value(), "f")


def float8(value: Any) -> str:
    """A float8 in the shortest digits that give it back."""
    if isinstance(value, str):
        return _special_float(value)
    return _float(repr(float(value)), largest_plain=15)


def float4(value: Any) -> str:
    """A float4 in the shortest digits that give it back as four bytes."""
    if isinstance(value, str):
        return _special_float(value)
    wanted = struct.pack("f", value)
    shortest = (f"{value:.{digits}e}" for digits in range(9))
    return _float(next(text for text in shortest if _packs_to(text, wanted)), largest_plain=6)


def date(days: int) -> str:
    """A date, from days since 1970."""
    special = _SPECIAL_DAYS.get(days)
    return special or _with_era(*_year_and_day(days))


def timestamp(microseconds: int) -> str:
    """A timestamp, from microseconds since 1970."""
    if microseconds in _SPECIAL_MICROSECONDS:
        return _SPECIAL_MICROSECONDS[microseconds]
    if microseconds < _FIRST_US:
        # Postgres' last year is 294276; Java's long overflows before that, and Debezium lets it.
        raise InexactValueError("a time of the year 294247 or later")
    days, rest = divmod(microseconds, _DAY_US)
    year, day = _year_and_day(days)
    return _with_era(year, f"{day} {time(rest)}")


def timestamptz(text: str) -> str:
    """A timestamptz, from ISO 8601 in UTC."""
    if text in ("infinity", "-infinity"):
        return text
    found = _ISO_TIME.fullmatch(text)
    if not found:
        raise OtherShapeError
    year, day, clock, fraction = found.groups()
    fraction = (fraction or "").rstrip("0")
    return _with_era(int(year), f"{day} {clock}{'.' if fraction else ''}{fraction}+00")


def time(microseconds: int) -> str:
    """A time, from microseconds since midnight."""
    if not 0 <= microseconds <= _DAY_US:
        raise OtherShapeError
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def timetz(text: str) -> str:
    """A timetz at UTC: Debezium drops the zone."""
    if not text.endswith("Z"):
        raise OtherShapeError
    return text.removesuffix("Z") + "+00"


def interval(text: str) -> str:
    """An interval, from ISO 8601 with a sign at each number."""
    found = _INTERVAL.fullmatch(text)
    if not found:
        raise OtherShapeError
    years, months, days, hours, minutes = map(int, found.groups()[:5])
    minus, seconds, fraction = found.groups()[5:]
    parts: list[str] = []
    after_minus = False
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            plus = "+" if after_minus and number > 0 else ""
            parts.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            after_minus = number < 0
    fraction = (fraction or "").rstrip("0")
    if hours or minutes or int(seconds) or fraction or not parts:
        sign = "-" if hours < 0 or minutes < 0 or minus else "+" if after_minus else ""
        clock = f"{sign}{abs(hours):02}:{abs(minutes):02}:{int(seconds):02}"
        parts.append(f"{clock}.{fraction}" if fraction else clock)
    return " ".join(parts)


def hstore(text: str) -> str:
    """An hstore as hstore_to_json prints it: keys sorted by length, then by bytes."""
    pairs = json.loads(text)
    if not isinstance(pairs, dict):
        raise OtherShapeError
    names = sorted(pairs, key=lambda name: (len(name.encode()), name.encode()))
    return json.dumps({name: pairs[name] for name in names}, ensure_ascii=False)


def at_utc(text: str) -> str:
    """The times of a tstzrange at UTC: Postgres printed them in the time zone of Connect's Java."""
    return _ZONED.sub(_moved, text) if "+" in text or "-" in text else text


def bits(length: int) -> Callable[[str], str]:
    """A bit(length), from base64 with the least significant byte first."""

    def decoded(text: str) -> str:
        number = int.from_bytes(b64decode(text, validate=True), "little")
        return f"{number:0{length}b}"

    return decoded


def point(value: Mapping[str, Any]) -> str:
    """A point."""
    return f"({float8(value['x'])},{float8(value['y'])})"


def line(value: Mapping[str, Any]) -> str:
    """A line, from its three coefficients."""
    return f"{{{float8(value['a'])},{float8(value['b'])},{float8(value['c'])}}}"


def circle(value: Mapping[str, Any]) -> str:
    """A circle, from center and radius."""
    return f"<{point(value['center'])},{float8(value['radius'])}>"


def lseg(value: Mapping[str, Any]) -> str:
    """A line segment."""
    return f"[{','.join(_points(value))}]"


def box(value: Mapping[str, Any]) -> str:
    """A box, from a ring that begins with the upper right corner: that corner and the lower left one."""
    corners = _points(value)
    return f"{corners[0]},{corners[2]}"


def path(value: Mapping[str, Any]) -> str:
    """A path, closed or open."""
    points = ",".join(_points(value))
    return f"({points})" if value["extensions"]["closed"] == "true" else f"[{points}]"


def polygon(value: Mapping[str, Any]) -> str:
    """A polygon without a last point that repeats the first: Debezium adds one if there is none."""
    points = _points(value)
    return f"({','.join(points[:-1] if len(points) > 1 and points[0] == points[-1] else points)})"


def _points(value: Mapping[str, Any]) -> Sequence[str]:
    """The points of a line string, or of the only ring of a polygon, in well-known binary (OGC 06-103r4, 8.2)."""
    wkb = b64decode(value["wkb"], validate=True)
    order, kind, count = struct.unpack_from("<BII", wkb)
    start = 9
    if kind == 3:
        rings, (count,), start = count, struct.unpack_from("<I", wkb, 9), 13
        if rings != 1:
            raise OtherShapeError
    if order != 1 or kind not in (2, 3) or len(wkb) != start + 16 * count:
        raise OtherShapeError
    return [f"({float8(x)},{float8(y)})" for x, y in struct.iter_unpack("<dd", wkb[start:])]


def _special_float(text: str) -> str:
    if text not in SPECIAL_FLOATS:
        raise OtherShapeError
    return text


def _packs_to(text: str, wanted: bytes) -> bool:
    try:
        return struct.pack("f", float(text)) == wanted
    except OverflowError:
        return False


def _float(text: str, largest_plain: int) -> str:
    """Python's digits of a float in Postgres' form: with an exponent below -4, and from `largest_plain` on."""
    value = Decimal(text)
    if not value.is_finite():
        return {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"}[str(value)]
    if not value:
        return "-0" if value.is_signed() else "0"
    value = value.normalize()
    exponent = value.adjusted()
    if -4 <= exponent < largest_plain:
        return format(value, "f")
    sign, digits, _ = value.as_tuple()
    mantissa = "".join(map(str, digits))
    point = "." if len(mantissa) > 1 else ""
    return f"{'-' if sign else ''}{mantissa[0]}{point}{mantissa[1:]}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _year_and_day(days: int) -> tuple[int, str]:
    """Year (0 is 1 BC) and `MM-DD` of a day since 1970 in the Gregorian calendar, which Postgres uses for all times."""
    # https://howardhinnant.github.io/date_algorithms.html, civil_from_days; eras are 400 years and begin in March.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), f"{month:02}-{day:02}"


def _with_era(year: int, rest: str) -> str:
    return f"{year:04}-{rest}" if year > 0 else f"{1 - year:04}-{rest} BC"


def _moved(found: re.Match[str]) -> str:
    moment, offset, era = found.groups()
    if offset == "+00":
        return found[0]
    if era or len(moment.split("-")[0]) > 4:
        raise InexactValueError("a time outside of the years 1 to 9999, in another zone than UTC")
    whole, point, fraction = moment.partition(".")
    try:
        moved = datetime.fromisoformat(f"{whole}{offset}").astimezone(UTC)
    except OverflowError:
        raise InexactValueError("a time outside of the years 1 to 9999") from None
    return f"{moved:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + f"{point}{fraction}+00"
