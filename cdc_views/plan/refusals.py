"""Why a function or operator cannot stand in a view, and what to write instead.

plan/support.py finds them among the tokens, engine/views/determinism.py in Spark's analysed plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Refused:
    """`why` continues a sentence that begins with the name of the function."""

    why: str
    hint: str


CHANCE: Final = Refused("gives another result each time", "a view must be a function of its tables; compute it there")
CLOCK: Final = Refused("depends on the time at which it runs", "keep times in a table, or filter when reading")
SESSION: Final = Refused("depends on the session that runs it", "write the value itself")
PHYSICAL: Final = Refused("depends on how the rows are stored", "use row_number() OVER (... ORDER BY ...)")
OUTSIDE: Final = Refused("runs code that may give another result each time", "use functions of Spark SQL")
ONE_OF: Final = Refused("takes any row of its group", "use min(), max() or row_number() OVER (... ORDER BY ...)")
TIES: Final = Refused("takes any of the rows that tie", "use max(struct(order, value)).value, or min(...)")
ORDER: Final = Refused("depends on the order of rows", "write sort_array(collect_list(...)), or array_sort(...)")
COMPARATOR: Final = Refused(
    "with its own comparison leaves the order of elements that tie open",
    "sort structs by their fields: array_sort(collect_list(struct(order, key, value)))",
)
TEXT_ORDER: Final = Refused("depends on the order of rows", "add WITHIN GROUP (ORDER BY ...)")
WINDOW_ORDER: Final = Refused("takes any row of its window", "add ORDER BY to the window")
APPROXIMATE: Final = Refused("is not exact", "use the exact function, as count(DISTINCT ...) or percentile()")
FLOATS: Final = Refused(
    "adds floating-point numbers, so its last digits depend on the order of rows",
    "add exact numbers: sum(CAST(x AS DECIMAL(38, 9)))",
)
MOMENTS: Final = Refused(
    "adds floating-point numbers, so its last digits depend on the order of rows",
    "compute it from count(x), sum(x) and sum(x * x) of exact numbers",
)
COLLATION: Final = Refused(
    "treats different spellings as equal, so which of them is shown depends on the order of rows",
    "group by one spelling, as GROUP BY lower(name)",
)
TIME_OF_TEXT: Final = Refused(
    "depends on the time at which it runs: a text that is a time of day becomes a time of the current day",
    "name the format: to_timestamp(text, 'yyyy-MM-dd HH:mm:ss'), or option timestampFormat",
)

# Texts that Spark takes as the time at which it runs, or as a time of the current day.
CLOCK_TEXT: Final = re.compile(r"[\s\x00-\x20]*((now|today|tomorrow|yesterday)([^a-z]|\Z)|t?\d{1,2}:)", re.IGNORECASE)
