"""The steps of a view's query in words, and what `explain` calls the places where a table occurs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_views.plan.lookups import lookup_lines
from cdc_views.plan.steps import step_lines
from tests.unit.golden import FOLDER, cases, compiled, maintained

KEPT = "one row for each (id)"


def steps(sql: str) -> list[str]:
    return list(step_lines(compiled(f"CREATE MATERIALIZED VIEW v AS {sql}")))


def lookups(sql: str) -> list[str]:
    view = compiled(f"CREATE MATERIALIZED VIEW v AS {sql}")
    return lookup_lines(view.parsed, maintained(view))


def test_steps_go_from_the_select_to_the_tables() -> None:
    sql = "SELECT country, count(*) AS n FROM users WHERE name <> 'x' GROUP BY country HAVING count(*) > 1"
    assert steps(sql) == [
        "select country, count(*) AS n; one row for each (country)",
        "  keep groups where count(*) > 1; one row for each (country)",
        "    group the rows by country; one row for each (country)",
        f"      keep rows where name <> 'x'; {KEPT}",
        f"        read public.users; {KEPT}",
    ]


@pytest.mark.parametrize(
    ("join", "step"),
    [
        ("JOIN posts p ON p.author_id = u.id", "join on p.author_id = u.id; one row for each (p.id)"),
        (", posts p", "join each row with each row; one row for each (u.id, p.id)"),
        (
            "LEFT JOIN posts p ON p.author_id = u.id",
            "join on p.author_id = u.id, and keep rows of the first input without a match; "
            "one row for each (u.id, p.id)",
        ),
        (
            "RIGHT JOIN posts p USING (id)",
            "join on equal id, and keep rows of the second input without a match; one row for each (u.id, p.id)",
        ),
        (
            "FULL JOIN posts p ON p.author_id = u.id",
            "join on p.author_id = u.id, and keep rows of either input without a match; one row for each (u.id, p.id)",
        ),
        (
            "SEMI JOIN posts p ON p.author_id = u.id",
            "keep rows of the first input that have a match on p.author_id = u.id; one row for each (u.id)",
        ),
        (
            "ANTI JOIN posts p ON p.author_id = u.id",
            "keep rows of the first input that have no match on p.author_id = u.id; one row for each (u.id)",
        ),
    ],
)
def test_each_kind_of_join_has_its_words(join: str, step: str) -> None:
    assert steps(f"SELECT u.name FROM users u {join}")[1:] == [
        f"  {step}",
        f"    read public.users AS u; {KEPT}",
        f"    read public.posts AS p; {KEPT}",
    ]


def test_inner_joins_in_a_row_are_one_step_and_an_outer_join_is_one_above_it() -> None:
    found = steps(
        "SELECT o.id FROM orders o JOIN users u ON u.id = o.user_id JOIN products p ON p.sku = o.note"
        " LEFT JOIN posts q ON q.id = o.id"
    )
    assert [line for line in found if "join" in line] == [
        "  join on q.id = o.id, and keep rows of the first input without a match; one row for each (o.id, p.id)",
        "    join on u.id = o.user_id AND p.sku = o.note; one row for each (o.id, p.id)",
    ]


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("UNION", "the different rows of all inputs, each once; one row for each (id)"),
        ("UNION ALL", "all rows of all inputs; rows may repeat"),
        ("INTERSECT", "the different rows that both inputs have, each once; one row for each (id)"),
        (
            "INTERSECT ALL",
            "the rows that both inputs have, as often as the one that has fewer of them; rows may repeat",
        ),
        ("EXCEPT", "the different rows of the first input that the second lacks, each once; one row for each (id)"),
        ("EXCEPT ALL", "the rows of the first input, less one for each equal row of the second; rows may repeat"),
    ],
)
def test_each_set_operation_has_its_words(operation: str, words: str) -> None:
    assert steps(f"SELECT id FROM users {operation} SELECT id FROM posts")[0] == words


def test_unions_in_a_row_are_one_step() -> None:
    union = "UNION ALL SELECT id FROM posts"
    assert len([line for line in steps(f"SELECT id FROM users {union} {union}") if line.startswith("  select")]) == 3
    mixed = steps(f"SELECT id FROM users UNION SELECT id FROM orders {union}")
    assert mixed[1].startswith("  the different rows")


def test_subqueries_are_numbered_and_stand_below_what_names_them() -> None:
    assert steps(
        "SELECT id, (SELECT max(id) FROM posts p WHERE p.author_id = u.id) AS latest FROM users u"
        " WHERE id IN (SELECT user_id FROM orders) AND NOT EXISTS (SELECT 1 FROM follows)"
    ) == [
        f"select id, (query 3) AS latest; {KEPT}",
        f"  keep rows where id IN (query 1) AND NOT EXISTS(query 2); {KEPT}",
        f"    read public.users AS u; {KEPT}",
        "    query 1: select user_id; rows may repeat",
        f"      read public.orders; {KEPT}",
        "    query 2: select 1; rows may repeat",
        "      read public.follows; one row for each (follower_id, followee_id)",
        "  query 3: select max(id); one row",
        "    make one group of all rows; one row",
        f"      keep rows where p.author_id = u.id; {KEPT}",
        f"        read public.posts AS p; {KEPT}",
    ]


def test_cte_is_written_out_where_it_is_named_first() -> None:
    with_ = "WITH c AS (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id)"
    assert steps(f"{with_} SELECT a.user_id FROM c a JOIN c b ON a.n = b.n")[1:] == [
        "  join on a.n = b.n; one row for each (a.user_id, b.user_id)",
        "    c AS a: select user_id, count(*) AS n; one row for each (user_id)",
        "      group the rows by user_id; one row for each (user_id)",
        f"        read public.orders; {KEPT}",
        "    the rows of c AS b, as above; one row for each (user_id)",
    ]


def test_recursive_query_names_itself() -> None:
    found = steps("WITH RECURSIVE r AS (SELECT id FROM users UNION ALL SELECT id + 1 FROM r) SELECT id FROM r")
    assert found[1] == "  r: all rows of all inputs"
    assert found[-1].strip() == "the rows of r, as above"


def test_windows_of_the_same_rows_are_one_step() -> None:
    sql = (
        "SELECT id, rank() OVER (PARTITION BY user_id ORDER BY ordered_at) AS a,"
        " count(*) OVER (PARTITION BY user_id) AS n, max(id) OVER () AS most FROM orders"
    )
    assert steps(sql)[1:3] == [
        f"  compute max(id) over all rows; {KEPT}",
        f"    compute rank(), count(*) over the rows with equal user_id; {KEPT}",
    ]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id, explode(tags) AS tag FROM posts", "select id, explode(tags) AS tag, a row for each value"),
        ("SELECT tag FROM posts LATERAL VIEW explode(tags) t AS tag", "make a row for each value of explode(tags)"),
        (
            "SELECT tag FROM posts LATERAL VIEW OUTER explode(tags) t AS tag",
            "make a row for each value of explode(tags), at least one",
        ),
        (
            "SELECT u.id, n FROM users u, LATERAL (SELECT count(*) AS n FROM posts p WHERE p.author_id = u.id) l",
            "join each row with what the query gives for it",
        ),
        ("SELECT DISTINCT country FROM users", "select, without repeats, country; one row for each (country)"),
        ("SELECT id FROM users ORDER BY name LIMIT 5 OFFSET 2", "keep the first 5 by name; one row for each (id)"),
        ("SELECT 1 AS one", "make a row without a table; one row"),
        ("SELECT id FROM range(10)", "rows of range(10); rows may repeat"),
        ("SELECT u.id FROM users u, posts p WHERE p.id = u.id", "join by the conditions above"),
    ],
)
def test_construct_has_its_words(sql: str, words: str) -> None:
    assert any(line.strip().startswith(words) for line in steps(sql)), steps(sql)


def test_long_expressions_are_shortened() -> None:
    chain = " OR ".join(f"id = {number}" for number in range(1000))
    assert steps(f"SELECT id FROM users WHERE {chain}")[1] == f"  keep rows where ...; {KEPT}"
    found = steps(f"SELECT {', '.join(f'id AS column_{number}' for number in range(20))} FROM users")[0]
    assert found.startswith("select id AS column_0, id AS")
    assert "...; " in found
    assert len(found) < 200


def test_query_that_is_nested_too_deeply_has_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("cdc_views.plan.steps._text", too_deep)
    assert steps("SELECT id FROM users WHERE id > 1") == []


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.stem)
def test_every_view_that_compiles_has_steps(file: Path) -> None:
    views = [view for view, expected in cases(file) if not expected.startswith("-- error")]
    assert all(step_lines(compiled(view)) for view in views)


# ---- lookups


def test_occurrences_of_a_table_are_named_by_their_aliases() -> None:
    found = lookups("SELECT u.id, m.id AS other FROM users u JOIN users m ON m.name = u.country")
    assert found == [
        "a change of public.users AS u affects (id, other)",
        "  look up public.users AS m by (name) from (country) of public.users AS u",
        "a change of public.users AS m affects (id, other)",
        "  look up public.users AS u by (country) from (name) of public.users AS m",
        "the rows of affected (id, other) are computed again from",
        "  public.users AS u by (id) from (id) of the affected keys",
        "  public.users AS m by (id) from (other) of the affected keys",
    ]


def test_occurrences_without_names_are_numbered_and_those_in_ctes_have_theirs() -> None:
    found = lookups("SELECT name FROM users UNION SELECT country FROM users")
    assert [line for line in found if "change" in line] == [
        "a change of public.users (1) affects (name)",
        "a change of public.users (2) affects (name)",
    ]
    found = lookups(
        "WITH c AS (SELECT user_id, count(*) AS n FROM orders o GROUP BY user_id)"
        " SELECT c.user_id, d.n FROM c JOIN c AS d ON c.user_id = d.user_id"
    )
    assert [line for line in found if "change" in line] == [
        "a change of public.orders AS o in c affects (user_id)",
        "a change of public.orders AS o in d affects (user_id)",
    ]


def test_lookup_says_that_null_matches_null_where_a_column_may_be_null() -> None:
    found = lookups("SELECT country, count(DISTINCT name) AS n FROM users GROUP BY country")
    assert found[-1] == "  public.users by (country) from (country) of the affected keys, NULL matches NULL"
    assert not any("NULL" in line for line in lookups("SELECT id, name FROM users"))
    joined = lookups("SELECT o.id, u.name FROM orders o JOIN users u ON u.name = o.note")
    assert not any("NULL" in line for line in joined)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, b.id AS other FROM users a FULL JOIN users b ON a.id = b.id",
        "SELECT a.follower_id, b.followee_id FROM follows a JOIN follows b ON a.follower_id = b.followee_id"
        " AND a.followee_id = b.follower_id",
    ],
)
def test_no_cause_and_no_lookup_below_it_is_repeated(sql: str) -> None:
    found = lookups(sql)
    causes = [line for line in found if not line.startswith(" ")]
    assert len(set(causes)) == len(causes)
