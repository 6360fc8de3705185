"""Golden files: a view, and below it what the compiler makes of it.

    -- view
    CREATE MATERIALIZED VIEW v AS SELECT ...;
    -- key: (a, b): why
    -- inputs: public.t
    -- query
    SELECT ... with the inputs replaced

and in the folder `incremental` the strategy and its lookups, as `explain` shows them, in place of the last three;
or, in place of the last three, `-- error: file:line:column: ...`. `CDC_VIEWS_GOLDEN=write` writes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cdc_views.base.names import TableName
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.plan.explain import explain
from cdc_views.plan.incremental.expressions.internal_view import InternalView, internal_views
from cdc_views.plan.incremental.maintenance import Maintenance, StoredPart, maintenance
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph

FOLDER = Path(__file__).parents[1] / "golden" / "plan"
INCREMENTAL = FOLDER.parent / "incremental"

SCHEMAS = {
    "public.users": {"id": "int8", "name": "text", "country": "text", "joined_at": "timestamptz"},
    "public.follows": {"follower_id": "int8", "followee_id": "int8", "muted": "bool"},
    "public.posts": {"id": "int8", "author_id": "int8", "body": "text", "tags": "_text", "created_at": "timestamptz"},
    "public.orders": {"id": "int8", "user_id": "int8", "status": "text", "note": "text", "ordered_at": "timestamptz"},
    "public.order_items": {"order_id": "int8", "line": "int4", "product_id": "int8", "quantity": "int4", "sku": "text"},
    "public.products": {"id": "int8", "sku": "text", "price": "numeric", "stock": "int4", "weight": "float8"},
    "sales.orders": {"id": "int8", "amount": "numeric"},
    '"my.schema".Order Items': {"id": "int8", "amount": "int8"},
    "public.a`b": {"id": "int8"},
}
KEYS = {
    "public.users": ("id",),
    "public.follows": ("follower_id", "followee_id"),
    "public.posts": ("id",),
    "public.orders": ("id",),
    "public.order_items": ("order_id", "line"),
    "public.products": ("id",),
    "sales.orders": ("id",),
    '"my.schema".Order Items': ("id",),
    "public.a`b": ("id",),
}
NOT_NULL = {"public.order_items": frozenset({"product_id"})}


def compiled(text: str, file: str = "v.sql") -> CompiledView:
    """The only view of a project over the tables above."""
    view = parse_view(text, Path(file))
    return compile_view(view, ViewGraph([view], [TableName.parse(name) for name in SCHEMAS]), SCHEMAS, KEYS)


def outcome(text: str) -> str:
    """What the compiler makes of a view, as the golden files have it."""
    try:
        view = compiled(text)
    except BadView as error:
        return f"-- error: {error.message}\n-- hint: {error.hint or 'none'}\n"
    key = "none" if view.key is None else f"({', '.join(view.key)})"
    relations = {name: f"_cv_input_{number}" for number, name in enumerate(view.inputs)}
    lines = [
        f"-- key: {key}: {view.key_reason}",
        f"-- inputs: {', '.join(view.inputs) or 'none'}",
        "-- query",
        view.query(relations),
    ]
    return "\n".join(lines) + "\n"


ARROW_TYPES = {
    "int8": "int64", "int4": "int32", "text": "string", "bool": "bool", "timestamptz": "timestamp[us, tz=UTC]",
    "numeric": "decimal128(18, 2)", "float8": "double", "_text": "list<element: string>",
}  # fmt: skip
# Of the columns of results, by name or by what they are; others are "int64". KEYS does not look at them.
RESULT_TYPES = {
    "amount": "decimal128(20, 2)", "total": "decimal128(28, 2)", "ratio": "double", "weight": "double",
    "dearest": "decimal128(18, 2)", "newest": "timestamp[us, tz=UTC]", "SUM(price)": "decimal128(28, 2)",
    "SUM(TRY_CAST(stock AS DOUBLE))": "double",
}  # fmt: skip


def maintained(view: CompiledView) -> Maintenance:
    """How a view over the tables above is maintained. Its SELECT names all of its columns."""
    return _planned(view, ())


def maintained_with_stored_subqueries(view: CompiledView) -> Maintenance:
    """The same with the internal views that store the rows of its subqueries."""
    types, row_keys = _types(view), {source: KEYS[source] for source in view.inputs}
    found = [
        (each, _result_types(each.compiled))
        for each in internal_views(view, maintained(view).wanted, types, row_keys)
        if not isinstance(each, InternalView)
    ]
    return _planned(
        view,
        [each.stored(own) for each, own in found if each.is_usable(own, _planned(each.compiled, ()).strategy)],
    )


def _types(view: CompiledView) -> dict[str, dict[str, str]]:
    return {source: {name: ARROW_TYPES[kind] for name, kind in SCHEMAS[source].items()} for source in view.inputs}


def _result_types(view: CompiledView) -> dict[str, str]:
    assert view.parsed is not None
    values = {item.alias_or_name: RESULT_TYPES.get(item.unalias().sql(), "int64") for item in view.parsed.tree.selects}
    names = view.columns or view.parsed.tree.named_selects
    return {name: RESULT_TYPES.get(name, values.get(name, "int64")) for name in names}


def _planned(view: CompiledView, stored: Sequence[StoredPart]) -> Maintenance:
    row_keys = {source: KEYS[source] for source in view.inputs}
    return maintenance(view, _types(view), _result_types(view), row_keys, stored, NOT_NULL)


def incremental_outcome(text: str) -> str:
    """How a view is maintained, as the golden files have it."""
    view = compiled(text)
    explanation = explain(view, maintained_with_stored_subqueries(view))
    internal = [f"{name}: {sql}" for name, sql in explanation.internal]
    lines = [f"-- strategy: {explanation.strategy}: {explanation.reason}", *internal, *explanation.lookups]
    return "\n".join(line if line.startswith("--") else f"--   {line}" for line in lines) + "\n"


def cases(file: Path) -> list[tuple[str, str]]:
    """The pairs of a golden file: a view, and what is expected of it."""
    pairs = []
    for part in re.split(r"^-- view\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, mark, rest = re.split(r"^(-- (?:key|error|strategy):|\Z)", part, maxsplit=1, flags=re.MULTILINE)
        pairs.append((head.strip() + "\n", (mark + rest).strip() + "\n"))
    return pairs


def rewrite(file: Path, outcome: Callable[[str], str] = outcome) -> None:
    """Write what the compiler makes now into a golden file, if asked to."""
    if os.environ.get("CDC_VIEWS_GOLDEN") == "write":
        parts = [f"-- view\n{view}{outcome(view)}" for view, _ in cases(file)]
        file.write_text("\n".join(parts), encoding="utf-8")
