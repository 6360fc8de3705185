"""What Postgres answers about a char(5) that holds 'ab', and what Spark answers about the text of its mirror.

tests/stack/test_source.py asks Postgres, tests/spark/test_char.py asks Spark; docs/types.md says where they differ.
"""

from __future__ import annotations

from typing import Any, Final

# The rows of both: `code` is a char(5) in Postgres, `short` a char(2), `word` a text.
ROWS: Final = (("ab", "ab", "ab"), ("ab ", "a", "ab "), ("", "", ""))

# SQL of both, and the answer of both.
ALIKE: Final[tuple[tuple[str, Any], ...]] = (
    ("SELECT count(*) FROM c WHERE code = 'ab'", 2),
    ("SELECT count(*) FROM c WHERE code IN ('ab', 'x')", 2),
    ("SELECT count(*) FROM c WHERE code <> 'ab'", 1),
    ("SELECT count(*) FROM c WHERE code = ''", 1),
    ("SELECT count(*) FROM c a JOIN c b ON a.code = b.short", 3),
    ("SELECT count(*) FROM c a JOIN c b ON a.code = b.word", 3),
    ("SELECT count(DISTINCT code) FROM c", 2),
    ("SELECT count(*) FROM (SELECT code FROM c GROUP BY code) g", 2),
    ("SELECT max(length(code)) FROM c", 2),
    ("SELECT count(*) FROM c WHERE code || 'c' = 'abc'", 2),
    ("SELECT count(*) FROM c WHERE upper(code) = 'AB'", 2),
    ("SELECT count(*) FROM c WHERE concat(code, '|') = 'ab|' OR code LIKE 'ab%'", 2),
)

# SQL of both, Postgres' answer, Spark's answer; and SQL of both with Postgres' answer for the column as a text.
DIFFERENT: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("SELECT count(*) FROM c WHERE code LIKE 'ab'", 0, 2),
    ("SELECT count(*) FROM c WHERE code = 'ab '", 2, 0),
    ("SELECT max(octet_length(code)) FROM c", 5, 2),
)
