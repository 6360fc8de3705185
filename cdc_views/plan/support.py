"""What no view may contain: anything whose result is not a function of the tables it reads.

These are the clock, chance and the session; aggregates that depend on the order of rows; LIMIT without an order.
Functions are found among the tokens, since tokens know their position and keep the name as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.base.names import HIDDEN
from cdc_views.errors import UnsupportedView
from cdc_views.plan import refusals
from cdc_views.plan.refusals import Refusal
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing


def _each(refused: Refusal, names: str) -> dict[str, Refusal]:
    return dict.fromkeys(names.split(), refused)


_FUNCTIONS: Final[dict[str, Refusal]] = {
    **_each(refusals.CHANCE, "rand random randn randstr uniform uuid shuffle aes_encrypt"),
    **_each(refusals.CLOCK, "now current_timestamp current_date curdate current_time localtime localtimestamp"),
    **_each(refusals.SESSION, "current_user user session_user current_catalog current_database current_schema version"),
    **_each(refusals.SESSION, "current_timezone current_path"),
    **_each(refusals.PHYSICAL, "monotonically_increasing_id spark_partition_id input_file_name"),
    **_each(refusals.PHYSICAL, "input_file_block_start input_file_block_length"),
    **_each(refusals.OUTSIDE, "java_method reflect try_reflect ai_query http_request read_files read_kafka"),
    **_each(refusals.ONE_OF, "any_value mode"),
    **_each(refusals.TIES, "max_by min_by"),
    **_each(refusals.ORDER, "collect_list collect_set array_agg"),
    **_each(refusals.TEXT_ORDER, "listagg string_agg"),
    **_each(refusals.ONE_OF, "first last first_value last_value nth_value"),
    **_each(refusals.APPROXIMATE, "percentile_approx count_min_sketch histogram_numeric hll_sketch_agg hll_union_agg"),
}
_WITHOUT_ARGUMENTS: Final = _each(refusals.CLOCK, "unix_timestamp to_unix_timestamp")
# Functions without parentheses, if no column has the name.
_BARE: Final = frozenset(
    (
        "current_timestamp",
        "current_date",
        "current_time",
        "localtime",
        "localtimestamp",
        "current_user",
        "user",
        "session_user",
        "current_catalog",
        "current_schema",
    )
)
_OF_WINDOWS: Final = frozenset(["first", "last", "first_value", "last_value", "nth_value", "any_value"])
_WITHIN_GROUP: Final = frozenset({"listagg", "string_agg", "mode"})
_SORTS: Final = frozenset({"sort_array", "array_sort"})
_TIMES: Final = ("date", "timestamp", "timestamp_ltz", "timestamp_ntz")
_TO_TIMES: Final = tuple(f"{prefix}to_{time}" for prefix in ("", "try_") for time in _TIMES)


def check_support(query: ParsedQuery, known_columns: frozenset[str]) -> None:
    """Refuse what a view may not contain; `known_columns` are those of its inputs, in lower case.

    Raises UnsupportedView whose message begins with file, line and column.
    """
    tokens = query.tokens
    for index in range(len(tokens)):
        _check_function(query, index, known_columns)
        _check_clock_word(query, index)
        _check_quotes(query, tokens[index], known_columns)
    for token in _unordered_limits(tokens):
        problem = f"{token.text.upper()} without ORDER BY returns arbitrary rows"
        raise _refusal(query, token, problem, "add an ORDER BY in which no two rows tie")
    for token in tokens:
        if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.lower().startswith(HIDDEN):
            # A CTE of this name could stand for an input.
            problem = f'name "{token.text}" begins with "{HIDDEN}", which is reserved'
            raise _refusal(query, token, problem, "choose another name")
        if token.token_type is TokenType.TABLE_SAMPLE:
            raise _refusal(query, token, "TABLESAMPLE returns other rows each time", "filter by a column")
    if query.tree.find(exp.QueryTransform):
        token = next(token for token in tokens if token.text.upper() in ("TRANSFORM", "MAP", "REDUCE"))
        raise _refusal(query, token, f"{token.text.upper()} {refusals.OUTSIDE.why}", refusals.OUTSIDE.hint)


def _check_function(query: ParsedQuery, index: int, known_columns: frozenset[str]) -> None:
    tokens, token = query.tokens, query.tokens[index]
    name = token.text.lower()
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or _text(tokens, index - 1) == ".":
        return
    if _text(tokens, index + 1) != "(":
        is_table = token.start in {reference.end - len(name) for reference in query.references}
        if name in _BARE and name not in known_columns and not is_table and not _is_name(tokens, index):
            hint = f'{_FUNCTIONS[name].hint}; for a column of that name write "table.{name}"'
            raise _refusal(query, token, f"{name} {_FUNCTIONS[name].why}", hint)
        return
    refused = _FUNCTIONS.get(name) or (refusals.APPROXIMATE if name.startswith("approx_") else None)
    if refused is None and _text(tokens, index + 2) == ")":
        refused = _WITHOUT_ARGUMENTS.get(name)
    if refused is None:
        return
    refused = _after_context(tokens, index, name, refused)
    if refused is not None:
        raise _refusal(query, token, f"{name}() {refused.why}", refused.hint)


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word is an alias, or a table before its column."""
    before = tokens[index - 1].token_type if index else None
    after_operand = before in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN)
    return after_operand or _text(tokens, index + 1) == "."


def _after_context(tokens: Sequence[Token], index: int, name: str, refused: Refusal) -> Refusal | None:
    """What stays refused, given what surrounds the call; None if the order is given."""
    close = closing(tokens, index + 1)
    sort = _text(tokens, index - 2).lower()
    if refused is refusals.ORDER and _text(tokens, index - 1) == "(" and sort in _SORTS:
        has_comparison = sort == "array_sort" and _text(tokens, close + 1) == ","
        return refusals.COMPARATOR if has_comparison else None
    if name in _WITHIN_GROUP and _text(tokens, close + 1).upper() == "WITHIN":
        return None
    if name in _OF_WINDOWS:
        over = close + 3 if _text(tokens, close + 2).upper() == "NULLS" else close + 1
        if _text(tokens, over).upper() == "OVER":
            return None if _is_ordered_window(tokens, over + 1) else refusals.WINDOW_ORDER
    return refused


def _is_ordered_window(tokens: Sequence[Token], index: int) -> bool:
    """Whether the window at `index`, written out or named, has an ORDER BY."""
    if _text(tokens, index) != "(":
        name = _text(tokens, index).lower()
        defined = (i for i in range(len(tokens) - 2) if _is_window_definition(tokens, i, name))
        index = next(defined, -3) + 2
    inside = tokens[index : closing(tokens, index)] if index >= 0 else []
    return any(token.token_type is TokenType.ORDER_BY for token in inside)


def _is_window_definition(tokens: Sequence[Token], index: int, name: str) -> bool:
    return [token.text.lower() for token in tokens[index : index + 3]] == [name, "as", "("]


def _check_quotes(query: ParsedQuery, token: Token, known_columns: frozenset[str]) -> None:
    """Refuse a column's name in double quotes, which Spark reads as a string."""
    is_quoted = token.token_type is TokenType.STRING and query.definition.sql.startswith('"', token.start)
    if is_quoted and token.text.lower() in known_columns:
        hint = f"for the column write {token.text} or `{token.text}`, for the text '{token.text}'"
        raise _refusal(query, token, f'"{token.text}" is a text in Spark SQL, and the name of a column', hint)


def _check_clock_word(query: ParsedQuery, index: int) -> None:
    """Refuse timestamp 'now' and the like: Spark replaces them by the time at which the query runs.

    In a literal it does so while it parses, so its plan shows a time like any other.
    """
    tokens, token = query.tokens, query.tokens[index]
    if token.token_type is not TokenType.STRING:
        return
    before, call = _text(tokens, index - 1).lower(), _text(tokens, index - 2).lower()
    has_escape = before in _TIMES and "\\" in query.definition.sql[token.start : token.end + 1]
    if not has_escape and not refusals.CLOCK_TEXT.match(token.text):
        return
    is_cast = call in ("cast", "try_cast") and _text(tokens, index + 1).upper() == "AS"
    cast_to = _text(tokens, index + 2).lower() if is_cast or _text(tokens, index + 1) == "::" else ""
    if before in _TIMES or cast_to in _TIMES or (before == "(" and call in (*_TIMES, *_TO_TIMES)):
        problem = f"'{token.text.strip()}' as a time {refusals.CLOCK.why}"
        raise _refusal(query, token, problem, refusals.CLOCK.hint)


def _unordered_limits(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield LIMIT and OFFSET, in parentheses or in a statement, that have no ORDER BY before them."""
    ordered = [False]
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            ordered.append(False)
        elif token.token_type is TokenType.R_PAREN and len(ordered) > 1:
            ordered.pop()
        elif token.token_type is TokenType.ORDER_BY:
            ordered[-1] = True
        elif token.token_type in (TokenType.LIMIT, TokenType.OFFSET) and not ordered[-1]:
            following = tokens[index + 1 : index + 2]
            # Otherwise it is a column of that name.
            if following and following[0].token_type in (TokenType.NUMBER, TokenType.L_PAREN):
                yield token


def _text(tokens: Sequence[Token], index: int) -> str:
    """The text of a token that is not a string; empty beyond the ends."""
    if not 0 <= index < len(tokens) or tokens[index].token_type is TokenType.STRING:
        return ""
    return tokens[index].text


def _refusal(query: ParsedQuery, token: Token, problem: str, hint: str) -> UnsupportedView:
    return UnsupportedView(f"{query.definition.place(token.start)}: {problem}", hint=hint)
