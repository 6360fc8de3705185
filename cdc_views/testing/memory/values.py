"""What Postgres stores for a value in a test, and what Debezium writes for it: two functions per type.

`store` takes any Python value that represents one of the type, and returns the value of the mirror: what Postgres would
have stored, in the form of capture/types.py. `write` converts that to Debezium's JSON. It is the inverse of the decoder
there, which a test checks. To add a type, add a line to `TYPES`.
"""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final
from uuid import UUID

from cdc_views.capture import texts
from cdc_views.errors import BadValue
from cdc_views.source.toast import numeric_size

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Enough for every numeric in a test. The default context of Decimal rounds to 28 digits.
_EXACT: Final = Context(prec=1000)


class DoesNotFit(ValueError):
    """The message says what is wrong, and never contains the value."""


Store = Callable[[Any, int], Any]
Write = Callable[[Any], Any]


@dataclass(frozen=True)
class PgType:
    """`store(value, typmod)` and `write(stored)`. Neither gets NULL. Both raise ValueError or TypeError."""

    store: Store
    write: Write


def stored(value: Any, pg_type: str, typmod: int, place: str) -> Any:
    """What Postgres stores for a value. None stays None. `place` names the column in errors. Raises BadValue."""
    if value is None:
        return None
    try:
        return TYPES[pg_type].store(value, typmod)
    except DoesNotFit as error:
        raise BadValue(f"{place}: {error}") from None
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        raise BadValue(f'{place}: found a {type(value).__name__} that is no "{pg_type}"') from None


def written(value: Any, pg_type: str) -> Any:
    """Debezium's JSON for a stored value."""
    return None if value is None else TYPES[pg_type].write(value)


def _as_is(value: Any) -> Any:
    return value


def _integer(bits: int) -> Store:
    def store(value: Any, typmod: int) -> int:
        if isinstance(value, float):
            # Postgres rounds half of a float to even, and half of a numeric away from zero.
            value = Decimal(value).quantize(Decimal(1), ROUND_HALF_EVEN, _EXACT)
        elif isinstance(value, Decimal):
            value = value.quantize(Decimal(1), ROUND_HALF_UP, _EXACT)
        found = int(value)
        if not -(2 ** (bits - 1)) <= found < 2 ** (bits - 1):
            raise DoesNotFit(f"integer out of range, wanted at most {bits} bits")
        return found

    return store


def _bool(value: Any, typmod: int) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
        for answer, words in ((True, ("true", "yes", "on", "1")), (False, ("false", "no", "off", "0"))):
            # Postgres accepts every prefix that is unambiguous; "o" could be "on" or "off".
            if text and text != "o" and any(word.startswith(text) for word in words):
                return answer
        raise ValueError
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _float64(value: Any, typmod: int) -> float:
    return float(value)


def _float32(value: Any, typmod: int) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", float(value)))[0])
    except OverflowError:
        raise DoesNotFit("number out of range of a 4-byte float") from None


def _write_float(value: float) -> float | str:
    # JSON has no such numbers; Connect's converter writes them as text.
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _number(value: Any) -> Decimal:
    if isinstance(value, float):
        value = f"{value:.15g}"  # as Postgres casts float8 to numeric
    return Decimal(value.strip() if isinstance(value, str) else value)


def _numeric(value: Any, typmod: int) -> Decimal | str:
    """A Decimal if the mirror has a decimal (precision up to 38), otherwise plain digits."""
    number = _number(value)
    if typmod < 4:
        return _digits(number)
    precision, scale = numeric_size(typmod)
    if number.is_finite():
        number = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
        if number and number.adjusted() >= precision - scale:
            raise DoesNotFit(f"number does not fit numeric({precision},{scale})")
        number = Decimal(format(number, "f"))
        number = number if number else number.copy_abs()
    elif number.is_infinite():
        raise DoesNotFit(f"an infinity does not fit numeric({precision},{scale})")
    digits = precision - scale if scale < 0 else max(precision, scale)
    return number if digits <= 38 else _digits(number)


def numeric_typmod(precision: int, scale: int) -> int:
    """The type modifier of numeric(precision, scale)."""
    return ((precision << 16) | (scale & 0x7FF)) + 4


def _digits(number: Decimal) -> str:
    if number.is_nan():
        return "NaN"
    if number.is_infinite():
        return "Infinity" if number > 0 else "-Infinity"
    text = format(number, "f")
    return text.removeprefix("-") if not number else text


def _write_numeric(value: Decimal | str) -> str:
    text = value if isinstance(value, str) else format(value, "f")
    return _SPECIAL_NUMERICS.get(text, text)


_SPECIAL_NUMERICS: Final = {printed: written for written, printed in texts.SPECIAL_NUMERICS.items()}


def _text(value: Any, typmod: int) -> str:
    text = _printed(value)
    if "\0" in text:
        raise DoesNotFit("a text with the character NUL, which Postgres does not take")
    return text


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | list | dict | tuple | set):
        raise TypeError
    return str(value)


def _varchar(value: Any, typmod: int) -> str:
    return _cut(_text(value, typmod), typmod)


def _bpchar(value: Any, typmod: int) -> str:
    return _cut(_text(value, typmod), typmod).rstrip(" ")


def _cut(text: str, typmod: int) -> str:
    length = typmod - 4 if typmod >= 4 else len(text)
    if text[length:].strip(" "):
        raise DoesNotFit(f"a text of {len(text)} characters, wanted at most {length}")
    return text[:length]


def _name(value: Any, typmod: int) -> str:
    return _text(value, typmod).encode()[:63].decode(errors="ignore")


def _single_byte(value: Any, typmod: int) -> str:
    return _text(value, typmod)[:1]


def _uuid(value: Any, typmod: int) -> str:
    return str(value if isinstance(value, UUID) else UUID(str(value)))


def _money(value: Any, typmod: int) -> str:
    text = value.replace("$", "").replace(",", "") if isinstance(value, str) else value
    return format(_number(text).quantize(Decimal("0.01"), ROUND_HALF_UP, _EXACT), "f")


def _json(value: Any, typmod: int) -> str:
    """Text is kept as it is written, if it is JSON."""
    if not isinstance(value, str):
        return json.dumps(value, default=_json_default, ensure_ascii=False, allow_nan=False)
    json.loads(value, parse_constant=_no_constant)
    return value


def _jsonb(value: Any, typmod: int) -> str:
    """As Postgres prints it: keys ordered by length and bytes, the last of equal keys, numbers with all digits."""
    text = value if isinstance(value, str) else _json(value, typmod)
    return _print_jsonb(json.loads(text, parse_float=Decimal, parse_constant=_no_constant))


def _print_jsonb(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{_print_jsonb(key)}: {_print_jsonb(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_print_jsonb, value)) + "]"
    if isinstance(value, Decimal):
        return _digits(value)
    return json.dumps(value, ensure_ascii=False)


def _json_default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date | time | UUID):
        return value.isoformat() if not isinstance(value, UUID) else str(value)
    raise TypeError


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _date(value: Any, typmod: int) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else _moment(value).date()


def _timestamp(value: Any, typmod: int) -> datetime:
    return _rounded(_moment(value), typmod)


def _moment(value: Any) -> datetime:
    """A point in time. One without a zone is UTC; a date is its midnight."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    moment: datetime = value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _rounded(moment: datetime, typmod: int) -> datetime:
    """Rounded to the fractional digits of timestamp(n)."""
    if not 0 <= typmod < 6:
        return moment
    unit = 10 ** (6 - typmod)
    return moment + timedelta(microseconds=(moment.microsecond + unit // 2) // unit * unit - moment.microsecond)


def _write_date(value: date) -> int:
    return (value - _EPOCH.date()).days


def _write_timestamp(value: datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


def _write_timestamptz(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _time(value: Any, typmod: int) -> str:
    if isinstance(value, str) and value.strip() in ("24:00", "24:00:00"):
        return "24:00:00"
    found = value if isinstance(value, time) else time.fromisoformat(value)
    moment = _rounded(datetime.combine(date(2000, 1, 1), found.replace(tzinfo=UTC)), typmod)
    return "24:00:00" if moment.day == 2 else _print_time(moment.time())


def _timetz(value: Any, typmod: int) -> str:
    found = value if isinstance(value, time) else time.fromisoformat(value)
    moment = datetime.combine(date(2000, 1, 1), found if found.tzinfo else found.replace(tzinfo=UTC))
    return _print_time(_rounded(moment.astimezone(UTC), typmod).time()) + "+00"


def _print_time(value: time) -> str:
    return value.isoformat("microseconds").rstrip("0").rstrip(".") if value.microsecond else value.isoformat("seconds")


def _write_time(value: str) -> int:
    hours, minutes, seconds = value.split(":")
    return (int(hours) * 60 + int(minutes)) * 60_000_000 + int(Decimal(seconds) * 1_000_000)


def _interval(value: Any, typmod: int) -> str:
    """As Postgres prints it, from such text, ISO 8601, or a timedelta (whose largest unit is the day)."""
    if isinstance(value, timedelta):
        sign = -1 if value < timedelta(0) else 1
        days, rest = divmod(abs(value), timedelta(days=1))
        return texts.interval(_iso_interval("0", "0", str(sign * days), *_clock_parts(rest, sign)))
    match = _ISO_INTERVAL.fullmatch(value.strip())
    if match is None:
        return texts.interval(_write_interval(value.strip()))
    if not any(match.groups()):
        raise ValueError
    return texts.interval(_iso_interval(*(part or "0" for part in match.groups())))


def _write_interval(value: str) -> str:
    match = _PRINTED_INTERVAL.fullmatch(value)
    if match is None or not value:
        raise ValueError
    years, months, days, sign, *clock = (part or "" for part in match.groups())
    minus = "-" if sign == "-" else ""
    parts = ((years or "0", months or "0", days or "0"), (minus + (part or "0") for part in clock))
    return _iso_interval(*(part.removeprefix("+") for group in parts for part in group))


def _iso_interval(*parts: str) -> str:
    """With all parts, as Debezium writes it."""
    return "P{}Y{}M{}DT{}H{}M{}S".format(*parts)


_ISO_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_PRINTED_INTERVAL: Final = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?"
    r"(?:([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?"
)


def _clock_parts(rest: timedelta, sign: int) -> tuple[str, ...]:
    minutes, microseconds = divmod(rest // _MICROSECOND, 60_000_000)
    seconds = _digits(sign * (Decimal(microseconds) / 1_000_000))
    hours, minutes = divmod(minutes, 60)
    return str(sign * hours), str(sign * minutes), seconds


def _bytea(value: Any, typmod: int) -> bytes:
    if isinstance(value, str):
        if value.startswith("\\x"):
            return bytes.fromhex(value[2:])
        return value.encode()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _write_bytea(value: bytes) -> str:
    return b64encode(value).decode()


def _hstore(value: Any, typmod: int) -> str:
    found = json.loads(value) if isinstance(value, str) else dict(value)
    return texts.hstore(json.dumps({str(key): None if item is None else _printed(item) for key, item in found.items()}))


def _oid(value: Any, typmod: int) -> int:
    found = int(value)
    if not 0 <= found < 2**32:
        raise DoesNotFit("oid out of range")
    return found


_TEXT: Final = PgType(_text, _as_is)

TYPES: Final[Mapping[str, PgType]] = {
    "int2": PgType(_integer(16), _as_is),
    "int4": PgType(_integer(32), _as_is),
    "int8": PgType(_integer(64), _as_is),
    "oid": PgType(_oid, _as_is),
    "bool": PgType(_bool, _as_is),
    "float4": PgType(_float32, _write_float),
    "float8": PgType(_float64, _write_float),
    "numeric": PgType(_numeric, _write_numeric),
    "money": PgType(_money, _as_is),
    "varchar": PgType(_varchar, _as_is),
    "bpchar": PgType(_bpchar, _as_is),
    "name": PgType(_name, _as_is),
    "char": PgType(_single_byte, _as_is),
    "uuid": PgType(_uuid, _as_is),
    "json": PgType(_json, _as_is),
    "jsonb": PgType(_jsonb, _as_is),
    "hstore": PgType(_hstore, _as_is),
    "date": PgType(_date, _write_date),
    "timestamp": PgType(_timestamp, _write_timestamp),
    "timestamptz": PgType(_timestamp, _write_timestamptz),
    "time": PgType(_time, _write_time),
    "timetz": PgType(_timetz, lambda value: value.removesuffix("+00") + "Z"),
    "interval": PgType(_interval, _write_interval),
    "bytea": PgType(_bytea, _write_bytea),
    # Kept as the test writes them. The test must write them as Postgres prints them.
    **dict.fromkeys(("text", "citext", "enum", "xml", "ltree", "isbn", "tsvector"), _TEXT),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), _TEXT),
    **dict.fromkeys(("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"), _TEXT),
}
