"""The room for kinds: options, the text around the SELECT, further tables, the key, and what readers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from cdc_views.errors import BadView
from cdc_views.store.delta_log.features import KIND, table_properties
from cdc_views.views.definition import ViewDefinition, parse_view, read_views
from cdc_views.views.kinds import KINDS, Kind, Option, Options, ProvenKey
from cdc_views.views.kinds.options import Ordered, column, columns, order, spelled, whole_number
from tests.unit.golden import compiled
from tests.unit.published import TOTALS

FILE = Path("views/best.sql")


class BestKind(Kind):
    """Keeps rows with a column below a limit, and their number in a table of its own."""

    name: ClassVar[str] = "best"
    options: ClassVar[Mapping[str, Option]] = MappingProxyType(
        {"by": Option(column, is_required=True), "most": Option(whole_number(1, 100), default=7)}
    )

    def around(self, options: Options, columns: Sequence[str] | None) -> tuple[str, str]:
        names = ", ".join(columns or ["*"])
        values = options.values
        return f"SELECT {names} FROM (\n", f") AS entries WHERE {values['by']} < {values['most']}"

    def derived(self, view: str, options: Options) -> Mapping[str, str]:
        return {f"{view}_count": f"SELECT count(*) AS entries FROM {view}"}

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        if proven.key is None:
            options.refuse("by", f"no key: {proven.reason}", hint="select one")
        return proven.key

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        return {"by": options.values["by"]}


@pytest.fixture(autouse=True)
def _best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, BestKind.name, BestKind())


def _view(select: str = "SELECT id, note FROM orders", options: str = "by = id") -> ViewDefinition:
    return parse_view(f"CREATE MATERIALIZED VIEW best WITH (kind = best, {options}) AS\n{select} -- why\n", FILE)


def test_around_keeps_the_select_as_written_between_the_texts() -> None:
    view = _view(options="by = 'id', most = 3")
    assert view.sql == "SELECT id, note FROM (\nSELECT id, note FROM orders\n) AS entries WHERE id < 3"
    assert view.sql[slice(*view.written)] == "SELECT id, note FROM orders"


def test_around_a_select_with_a_star_gets_no_names() -> None:
    assert _view("SELECT * FROM orders").sql.startswith("SELECT * FROM (\nSELECT *")


def test_place_in_the_select_is_that_of_the_file_and_else_that_of_the_name() -> None:
    view = _view()
    assert view.place() == "views/best.sql:2:1"
    assert view.place(view.sql.index("note FROM orders")) == "views/best.sql:2:12"
    assert view.place(0) == view.place(len(view.sql) - 1) == "views/best.sql:1:26"


def test_error_in_the_select_names_its_place() -> None:
    with pytest.raises(BadView, match=r"^views/best\.sql:3:3: rand\(\)"):
        compiled("CREATE MATERIALIZED VIEW best WITH (kind = best, by = id) AS\nSELECT id,\n  rand() AS r FROM orders",
                 str(FILE))  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("most = 3", '1:37: kind "best" without the option "by"'),
        ("by = id, most = 0", '1:66: option "most": found "0", wanted a whole number from 1 to 100'),
        ("by = 'a, b'", '1:55: option "by": found 2 columns, wanted one'),
        ("by = 'a b'", '1:55: option "by": found "a b", wanted the names of columns'),
        ("by = id, least = 1", '1:59: unknown option "least" of kind "best"'),
    ],
)
def test_option_wrong_names_file_line_and_column(options: str, message: str) -> None:
    with pytest.raises(BadView) as caught:
        _view(options=options)
    assert caught.value.message.startswith(f"views/best.sql:{message}")
    assert caught.value.hint is not None or "wanted" in caught.value.message


def test_key_that_the_kind_refuses_names_the_option() -> None:
    with pytest.raises(BadView, match=r"^views/best\.sql:1:55: no key: column \"id\" of the key") as caught:
        compiled("CREATE MATERIALIZED VIEW best WITH (kind = best, by = note) AS SELECT note FROM orders", str(FILE))
    assert caught.value.hint == "select one"


def test_another_option_of_the_kind_is_another_table() -> None:
    text = "CREATE MATERIALIZED VIEW v WITH (kind = best, by = id, most = {}) AS SELECT id FROM orders"
    assert compiled(text.format(1)).fingerprint != compiled(text.format(2)).fingerprint


def test_fragment_of_a_query_has_the_select_alone() -> None:
    view = compiled("CREATE MATERIALIZED VIEW v WITH (kind = best, by = id) AS SELECT id FROM orders")
    relations = {"public.orders": "x"}
    assert view.fragment(relations, None) == ("v.sql:1:59", "SELECT id FROM orders")
    end = len(view.query(relations))
    assert view.fragment(relations, (end - 3, end))[1] == ""


def test_derived_tables_follow_their_view(tmp_path: Path) -> None:
    text = "CREATE MATERIALIZED VIEW best WITH (kind = best, by = id, layout = plain) AS SELECT id FROM orders"
    (tmp_path / "best.sql").write_text(text)
    best, count = read_views(tmp_path)
    assert (best.name, count.name, count.kind, count.layout) == ("best", "best_count", "sql", "plain")
    assert count.place() == count.place(3) == best.name_place


def test_record_of_a_kind_is_a_setting_of_the_table() -> None:
    assert KIND not in table_properties(TOTALS)
    spec = type(TOTALS)(TOTALS.name, TOTALS.path, TOTALS.schema, TOTALS.key, kind={"kind": "best", "by": "id"})
    assert table_properties(spec)[KIND] == '{"kind":"best","by":"id"}'


def test_columns_in_backticks_may_have_any_name() -> None:
    assert columns("a, `b ``c`, d1") == ("a", "b `c", "d1")


def test_order_has_the_defaults_of_spark_for_null() -> None:
    assert order("a, b DESC,c asc nulls last, `d e` desc NULLS FIRST") == (
        Ordered("a"),
        Ordered("b", descends=True, nulls_first=False),
        Ordered("c", nulls_first=False),
        Ordered("d e", descends=True, nulls_first=True),
    )


@pytest.mark.parametrize("text", ["", "a,", ",a", "a b", "a desc asc", "1", "a nulls", "a;"])
def test_order_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadView, match="wanted columns with ASC or DESC"):
        order(text)


def test_spelled_finds_a_column_in_any_case_and_suggests_a_near_one() -> None:
    assert spelled("USER_ID", ["id", "user_Id"]) == "user_Id"
    with pytest.raises(BadView, match='no column "usr_id"') as caught:
        spelled("usr_id", ["id", "user_id"])
    assert caught.value.hint == 'did you mean "user_id"'
