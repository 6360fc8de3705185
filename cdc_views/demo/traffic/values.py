"""Random values for the demo's columns, and random changes as users and shops make them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

from cdc_views.demo.traffic.vocabulary import LONG_TEXT_BYTES, ODDITIES, WORDS

_TODAY = date(2026, 1, 1)
# Of two words. The stem of each word begins with its first three letters.
_SEARCHES: Final = ("{} {}", "+{} +{}", "+{} -{}", '"{} {}"', "{:.3}*", 'author:{} "{}"')
_MALFORMED: Final = '+{} "{}'


def word(random: Random) -> str:
    """A word, common ones more often; sometimes a number."""
    return str(random.randrange(3000)) if random.random() < 0.04 else WORDS[int(len(WORDS) * random.random() ** 2)]


def phrase(random: Random, most: int) -> str:
    """A few words, sometimes with odd characters at the end."""
    text = " ".join(word(random) for _ in range(random.randint(2, most))).capitalize()
    return f"{text}, {random.choice(ODDITIES)}" if random.random() < 0.05 else text


def long_text(random: Random) -> str:
    """A text that Postgres stores out of line."""
    paragraph = " ".join(word(random) for _ in range(60))
    return paragraph + f". {paragraph}" * (LONG_TEXT_BYTES // len(paragraph) + random.randint(1, 20))


def search(random: Random) -> str:
    """A search to save. One in ten is malformed."""
    form = _MALFORMED if random.random() < 0.1 else random.choice(_SEARCHES)
    return form.format(*random.sample(WORDS, 2))


def maybe(random: Random, value: Callable[[Random], Any]) -> Any:
    """NULL in one case of five."""
    return None if random.random() < 0.2 else value(random)


def decimal(random: Random, most: int, scale: int) -> Decimal:
    """A number from 0 to `most` with `scale` decimal places."""
    return Decimal(random.randint(0, most * 10**scale)).scaleb(-scale)


def tags(random: Random) -> list[str | None]:
    """An array, sometimes empty, sometimes with a NULL in it."""
    return [None if random.random() < 0.05 else word(random) for _ in range(random.randrange(4))]


def document(random: Random) -> str:
    """A JSON object, as text."""
    return json.dumps({word(random): random.randrange(100), "nested": {"list": [word(random), None, 1.5]}, "on": True})


def day(random: Random) -> date:
    """A date around the present of the demo."""
    return _TODAY + timedelta(days=random.randint(-400, 400))


def moment(random: Random) -> datetime:
    """A time shortly after the initial rows; sometimes on the full minute, so that some are equal."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    minutes = start + timedelta(minutes=random.randrange(2000))
    return minutes if random.random() < 0.3 else minutes + timedelta(microseconds=random.randrange(60_000_000))


Assignment = tuple[str, Callable[[Random], tuple[Any, ...]]]


def _no_values(_: Random) -> tuple[Any, ...]:
    return ()


def _one(value: Callable[[Random], Any]) -> Callable[[Random], tuple[Any, ...]]:
    return lambda random: (value(random),)


def _nullable(value: Callable[[Random], Any]) -> Callable[[Random], tuple[Any, ...]]:
    return lambda random: (maybe(random, value),)


# The SET clauses of an UPDATE of one row. None of them changes the money of the bank.
ASSIGNMENTS: Final[dict[str, tuple[Assignment, ...]]] = {
    "users": (
        ("karma = coalesce(karma, 0) + %s", _one(lambda random: random.randint(-5, 20))),
        ("bio = %s", _nullable(lambda random: phrase(random, 9))),
        ("settings = %s::jsonb", _nullable(document)),
        ("verified = NOT verified, email = %s", _nullable(word)),
        ("name = %s, born = NULL", _one(lambda random: phrase(random, 3))),
    ),
    "follows": (("muted = NOT muted", _no_values), ("since = %s", _one(moment))),
    "posts": (
        ("likes = likes + 1", _no_values),
        ("tags = %s::text[]", _nullable(tags)),
        ("body = %s, edited_at = now()", _one(lambda random: phrase(random, 9))),
        ("meta = %s::jsonb, likes = likes", _nullable(document)),
        ("reply_to = NULL", _no_values),
    ),
    "searches": (("query = %s", _one(search)), ("user_id = %s", _one(lambda random: random.randint(1, 5_000)))),
    "products": (
        ("stock = stock + %s", _one(lambda random: random.randint(-3, 50))),
        ("price = %s, updated_at = now()", _one(lambda random: decimal(random, 500, 2))),
        ("weight_kg = %s", _nullable(lambda random: decimal(random, 90, 3))),
        ("attributes = %s::jsonb, tags = NULL", _nullable(document)),
        ("description = %s", _nullable(lambda random: phrase(random, 12))),
        ("discontinued = NOT discontinued, available_from = %s", _nullable(day)),
    ),
    "orders": (
        ("status = %s", _one(lambda random: random.choice(("paid", "shipped", "cancelled")))),
        ("discount = %s, note = %s", lambda random: (maybe(random, lambda r: decimal(r, 90, 2)), phrase(random, 6))),
        ("ship_by = %s", _nullable(day)),
    ),
    "order_items": (
        ("quantity = %s", _one(lambda random: random.randint(1, 9))),
        ("unit_price = %s, gift = %s", lambda random: (decimal(random, 500, 2), random.choice((True, False, None)))),
    ),
    "accounts": (("owner = %s", _one(word)), ("frozen = %s, opened_on = %s", lambda r: (None, maybe(r, day)))),
    "savings": (
        ("interest = %s, touched_at = now()", _nullable(lambda random: decimal(random, 9, 4))),
        ("account_id = NULL", _no_values),
    ),
}

# The clauses that do not change an out-of-line text.
BESIDE_THE_TEXT: Final = {
    "posts": tuple(one for one in ASSIGNMENTS["posts"] if "body" not in one[0]),
    "products": tuple(one for one in ASSIGNMENTS["products"] if "description" not in one[0]),
}
