"""Forms of Postgres's SQL that Spark SQL does not have: each is refused with the way to write it.

They are found among the tokens, before the text is parsed: a parser's message would name another place, or nothing
helpful. A form is listed only if Spark would refuse it too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType

from cdc_views.errors import UnsupportedView
from cdc_views.views.definition import ViewDefinition


@dataclass(frozen=True)
class _Form:
    pattern: re.Pattern[str]
    name: str
    hint: str


def _form(pattern: str, name: str, hint: str) -> _Form:
    return _Form(re.compile(rf"(?<=\s){pattern}"), name, hint)


# Matched against the tokens in capitals, each with a space before it; a string is ', a quoted name `, a number #.
_FORMS: Final = (
    _form(
        r"DISTINCT ON \(",
        "DISTINCT ON",
        "write SELECT ... FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b, id) AS n FROM t) WHERE n = 1",
    ),
    _form(r"FETCH (FIRST|NEXT) (# )?ROWS? ", "FETCH FIRST", "write LIMIT n"),
    _form(r"OFFSET # ROWS? ", "OFFSET ... ROWS", "write OFFSET n"),
    _form(r"!? ?~ ?\*? '", "a match by ~", "write text RLIKE 'pattern', or RLIKE '(?i)pattern' to ignore case"),
    _form(r"SIMILAR TO ", "SIMILAR TO", "write text RLIKE '^(pattern)$'"),
    _form(r"ARRAY \[", "ARRAY[...]", "write array(...)"),
    _form(r"(->>|#>>?|->> ?) ?['#]", "a JSON operator", "write get_json_object(column, '$.field')"),
    _form(r"(= |<> |< |> |<= |>= )(ANY|SOME) \( (ARRAY|SELECT|WITH|')", "= ANY (...)", "write IN (...)"),
    _form(r"AT TIME ZONE ", "AT TIME ZONE", "write from_utc_timestamp(time, zone) or to_utc_timestamp(time, zone)"),
    _form(r"FOR (UPDATE|SHARE|NO KEY UPDATE|KEY SHARE) ", "FOR UPDATE", "remove it: a view locks no rows"),
    _form(r"(?<!MERGE )(?<!INSERT )INTO ", "SELECT INTO", "leave INTO out: a view is stored by its name"),
    _form(r"AS \( (DELETE|INSERT|UPDATE|MERGE) ", "a CTE that changes rows", "a view only reads: write a SELECT"),
    _form(r"AS (NOT )?MATERIALIZED \(", "MATERIALIZED", "remove it: it changes no result"),
    _form(r"EXCLUDE (TIES|CURRENT|GROUP|NO) ", "EXCLUDE in a window", "leave rows out by a CASE in the aggregate"),
    _form(r"BETWEEN SYMMETRIC ", "BETWEEN SYMMETRIC", "write BETWEEN least(a, b) AND greatest(a, b)"),
    _form(r"(STRING_AGG|LISTAGG) \( [^()]* ORDER BY ", "ORDER BY inside the aggregate",
          "write listagg(text, ',') WITHIN GROUP (ORDER BY ...)"),
    _form(r"ARRAY_AGG \( [^()]* ORDER BY ", "ORDER BY inside the aggregate",
          "write sort_array(collect_list(struct(order, value))).value"),
    _form(r"EXTRACT \( EPOCH ", "EXTRACT(EPOCH ...)", "write unix_timestamp(time), or unix_micros(time) / 1000000"),
    _form(r"WITH ORDINALITY ", "WITH ORDINALITY", "write posexplode(array)"),
)  # fmt: skip
_CHANCE: Final = "a view must be a function of its tables; compute it there"
_CLOCK: Final = "keep times in a table, or filter when reading"
_EXPLODE: Final = "write explode(array) in the SELECT, or LATERAL explode(array) AS t(value) in FROM"
_FUNCTIONS: Final = {
    "generate_series": "write explode(sequence(first, last)), or FROM range(first, last + 1)",
    "unnest": _EXPLODE,
    "jsonb_array_elements": "write explode(from_json(column, 'array<...>'))",
    "json_array_elements": "write explode(from_json(column, 'array<...>'))",
    **dict.fromkeys(("json_build_object", "jsonb_build_object"), "write to_json(named_struct('name', value, ...))"),
    **dict.fromkeys(("row_to_json", "to_jsonb"), "write to_json(struct(...))"),
    **dict.fromkeys(("json_agg", "jsonb_agg"), "write to_json(sort_array(collect_list(struct(...))))"),
    "age": "write datediff(a, b), months_between(a, b), or a - b",
    "date_bin": "write window(time, '5 minutes').start",
    "string_to_array": "write split(text, pattern)",
    "array_to_string": "write array_join(array, ',')",
    "array_length": "write size(array)",
    "regexp_matches": "write regexp_extract_all(text, pattern)",
    "regexp_split_to_table": "write explode(split(text, pattern))",
    "regexp_split_to_array": "write split(text, pattern)",
    "strpos": "write instr(text, part)",
    "gen_random_uuid": _CHANCE,
    "nextval": _CHANCE,
    "setseed": _CHANCE,
    **dict.fromkeys(
        ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday", "txid_current"), _CLOCK
    ),
    "current_setting": "write the value itself",
}
# Names of Postgres types that Spark does not have.
_TYPES: Final = {
    **dict.fromkeys(("TEXT", "CITEXT", "NAME", "BPCHAR", "UUID", "JSON", "JSONB"), "STRING"),
    **dict.fromkeys(("INT2", "INT4", "INT8"), "SMALLINT, INT or BIGINT"),
    **dict.fromkeys(("FLOAT4", "FLOAT8"), "FLOAT or DOUBLE"),
    "DOUBLE PRECISION": "DOUBLE",
    "BOOL": "BOOLEAN",
    "TIMESTAMPTZ": "TIMESTAMP",
    "BYTEA": "BINARY",
    "REGCLASS": "STRING",
}


def refuse_postgres_forms(definition: ViewDefinition, tokens: Sequence[Token]) -> None:
    """Raise UnsupportedView with file, line and column for the first form that is found."""
    words = [_word(definition, token) for token in tokens]
    text, starts = "", []
    for word in words:
        starts.append(len(text) + 1)
        text += f" {word}"
    found = [
        (tokens[bisect_right(starts, match.start()) - 1].start, form.name, form.hint)
        for form in _FORMS
        if (match := form.pattern.search(f"{text} "))
    ]
    for index, token in enumerate(tokens):
        found += _function(words, index, token) + _type(words, index, token) + _text(definition, words, index, token)
    if found:
        start, name, hint = min(found)
        raise UnsupportedView(f"{definition.place(start)}: {name} is Postgres's, not Spark's", hint=hint)


_Found = list[tuple[int, str, str]]


def _function(words: Sequence[str], index: int, token: Token) -> _Found:
    name = words[index].lower()
    is_call = words[index + 1 : index + 2] == ["("] and words[max(0, index - 1)] != "."
    return [(token.start, f"{name}()", _FUNCTIONS[name])] if is_call and name in _FUNCTIONS else []


def _type(words: Sequence[str], index: int, token: Token) -> _Found:
    """A type's name after `::`, or in a CAST."""
    before = words[index - 1] if index else ""
    name = " ".join(words[index : index + 2]) if words[index] == "DOUBLE" else words[index]
    if name not in _TYPES or not (before == "::" or (before == "AS" and _is_in_cast(words, index))):
        return []
    return [(token.start, f"type {name.lower()}", f"write {_TYPES[name]}")]


def _is_in_cast(words: Sequence[str], index: int) -> bool:
    depth = 0
    for place in range(index - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(words[place], 0)
        if depth < 0:
            return place > 0 and words[place - 1] in ("CAST", "TRY_CAST")
    return False


def _text(definition: ViewDefinition, words: Sequence[str], index: int, token: Token) -> _Found:
    """`E'...'`, `B'...'` and `$$...$$`."""
    sql = definition.sql
    is_prefix = words[index] in ("E", "B") and sql[token.end + 1 : token.end + 2] == "'"
    if is_prefix and words[index + 1 : index + 2] == ["'"]:
        hints = {"E": "omit the E: Spark reads backslashes in every text", "B": "write a number, as 5"}
        return [(token.start, f"{words[index]}'...'", hints[words[index]])]
    if token.token_type is not TokenType.STRING and "$$" in sql[token.start : token.end + 1]:
        return [(token.start, "$$...$$", "write '...'")]
    return []


def _word(definition: ViewDefinition, token: Token) -> str:
    if token.token_type is TokenType.STRING:
        return "'"
    if token.token_type is TokenType.NUMBER:
        return "#"
    return "`" if token.token_type is TokenType.IDENTIFIER else definition.sql[token.start : token.end + 1].upper()
