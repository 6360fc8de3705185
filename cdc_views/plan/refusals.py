"""Why a function or operator is not allowed in a view, and what to write instead.

plan/support.py finds them among the tokens, engine/views/analysis/determinism.py in Spark's analysed plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Refusal:
    """`why` continues a sentence that begins with the name of the function."""

    why: str
    hint: str


CHANCE: Final = Refusal("returns another result each time", "a view must be a function of its tables; compute it there")
CLOCK: Final = Refusal("depends on the time at which it runs", "keep times in a table, or filter when reading")
SESSION: Final = Refusal("depends on the session that runs it", "write the value itself")
PHYSICAL: Final = Refusal("depends on how the rows are stored", "use row_number() OVER (... ORDER BY ...)")
OUTSIDE: Final = Refusal("runs code that may return another result each time", "use functions of Spark SQL")
ONE_OF: Final = Refusal(
    "returns an arbitrary row of its group", "use min(), max() or row_number() OVER (... ORDER BY ...)"
)
TIES: Final = Refusal("returns any of the rows that tie", "use max(struct(order, value)).value, or min(...)")
ORDER: Final = Refusal("depends on the order of rows", "write sort_array(collect_list(...)), or array_sort(...)")
COMPARATOR: Final = Refusal(
    "with its own comparison leaves the order of elements that tie open",
    "sort structs by their fields: array_sort(collect_list(struct(order, key, value)))",
)
TEXT_ORDER: Final = Refusal("depends on the order of rows", "add WITHIN GROUP (ORDER BY ...)")
WINDOW_ORDER: Final = Refusal("returns an arbitrary row of its window", "add ORDER BY to the window")
APPROXIMATE: Final = Refusal("is not exact", "use the exact function, as count(DISTINCT ...) or percentile()")
FLOATS: Final = Refusal(
    "adds floating-point numbers, so its last digits depend on the order of rows",
    "add exact numbers: sum(CAST(x AS DECIMAL(38, 9)))",
)
MOMENTS: Final = Refusal(
    "adds floating-point numbers, so its last digits depend on the order of rows",
    "compute it from count(x), sum(x) and sum(x * x) of exact numbers",
)
SIGNED_ZEROS: Final = Refusal(
    "shows 0.0 and -0.0 in any order, since they are equal",
    "cast them to exact numbers: sort_array(collect_list(CAST(x AS DECIMAL(38, 9))))",
)
COLLATION: Final = Refusal(
    "treats different spellings as equal, so which of them is shown depends on the order of rows",
    "group by one spelling, as GROUP BY lower(name)",
)
HIDDEN_COLLATION: Final = Refusal(
    "has a collation in a type that is computed", "write the type as one text: 'name STRING COLLATE UTF8_LCASE'"
)
TIME_OF_TEXT: Final = Refusal(
    "depends on the time at which it runs: a text that is a time of day becomes a time of the current day",
    "name the format: to_timestamp(text, 'yyyy-MM-dd HH:mm:ss'), or option timestampFormat",
)

# Texts that Spark reads as the time at which it runs, or as a time of the current day.
CLOCK_TEXT: Final = re.compile(r"[\s\x00-\x20]*((now|today|tomorrow|yesterday)([^a-z]|\Z)|t?\d{1,2}:)", re.IGNORECASE)
