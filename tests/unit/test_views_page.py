"""docs/views.md and docs/cli.md: what they say about strategies is what the planner does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from cdc_views.cli.setup.init import VIEW
from cdc_views.plan.explain import Explanation, explain
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Table
from tests.unit.incremental.played import played, random_states

DOCS: Final = Path(__file__).parents[2] / "docs"
TABLES: Final = (
    Table("accounts", {"id": "bigint", "holder": "text", "balance": "decimal"}, ("id",)),
    Table("savings", {"id": "bigint", "balance": "decimal"}, ("id",)),
    Table("users", {"id": "bigint", "name": "text", "country": "text"}, ("id",)),
    Table("orders", {"id": "bigint", "user_id": "bigint", "status": "text", "ordered_at": "date"}, ("id",)),
    Table(
        "order_items",
        {"order_id": "bigint", "line": "int", "product_id": "bigint", "quantity": "int", "unit_price": "decimal"},
        ("order_id", "line"),
        frozenset({"product_id"}),
    ),
    Table("posts", {"id": "bigint", "author_id": "bigint", "created_at": "date"}, ("id",)),
    Table("products", {"id": "bigint", "name": "text", "category_id": "bigint", "price": "decimal"}, ("id",)),
)
# For each row of the table of FULL: a view, and the same written as the page says (the last view counts).
USERS_AND_ORDERS: Final = "users u JOIN orders o ON o.user_id = u.id"
LAST_ORDER: Final = "(SELECT max(o.id) FROM orders o WHERE o.user_id = u.id)"
COUNTRIES: Final = "SELECT country, count(*) AS n FROM users GROUP BY country"
FULL: Final[Mapping[str, list[tuple[str, dict[str, str]]]]] = {
    "an aggregate over all rows that cannot be added up": [
        ("SELECT max(name) AS n FROM users", {"by_country": COUNTRIES})
    ],
    "GROUP BY over computed values only": [
        (
            f"SELECT u.name || o.status AS x, max(o.id) AS n FROM {USERS_AND_ORDERS} GROUP BY u.name || o.status",
            {
                "stored": f"SELECT o.id, u.name || o.status AS x FROM {USERS_AND_ORDERS}",
                "v": "SELECT x, max(id) AS n FROM stored GROUP BY x",
            },
        ),
        (
            "SELECT lower(o.status) AS low, max(o.id) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id"
            " GROUP BY lower(o.status)",
            {
                "counted": "SELECT lower(o.status) AS low, max(o.id) AS n, count(*) AS m FROM users u"
                " LEFT JOIN orders o ON o.user_id = u.id GROUP BY lower(o.status)",
                "v": "SELECT u.country, lower(o.status) AS low, max(o.id) AS n FROM users u LEFT JOIN orders o"
                " ON o.user_id = u.id GROUP BY u.country, lower(o.status)",
            },
        ),
    ],
    "DISTINCT: each change may change all of its rows": [
        (
            f"SELECT DISTINCT u.name || o.status AS x FROM {USERS_AND_ORDERS}",
            {"v": f"SELECT u.name || o.status AS x, count(*) AS n FROM {USERS_AND_ORDERS} GROUP BY u.name || o.status"},
        ),
    ],
    "places name a table": [
        (
            " UNION ALL ".join(["SELECT id FROM users"] * 33),
            {
                "part": " UNION ALL ".join(["SELECT id FROM users"] * 17),
                "v": " UNION ALL ".join(["SELECT id FROM part", *["SELECT id FROM users"] * 16]),
            },
        ),
    ],
    "grouping sets that cannot be added up": [
        (
            "SELECT id % 9 AS part, count(*) AS n FROM users GROUP BY ROLLUP (id % 9)",
            {"v": "SELECT mod(id, 9) AS part, count(*) AS n FROM users GROUP BY ROLLUP (part)"},
        ),
        (
            "SELECT id % 9 AS part, count(*) AS n FROM users GROUP BY ROLLUP (id % 9)",
            {
                "parts": "SELECT id, id % 9 AS part FROM users",
                "v": "SELECT part, count(*) AS n FROM parts GROUP BY ROLLUP (part)",
            },
        ),
        (
            "SELECT s, count(*) AS n FROM accounts AS a(i, s) GROUP BY ROLLUP (s)",
            {"v": "SELECT s, count(*) AS n FROM (SELECT balance AS s FROM accounts) a GROUP BY ROLLUP (s)"},
        ),
        (
            "SELECT country, name, count(DISTINCT id) AS n FROM users"
            " GROUP BY GROUPING SETS ((country, name), (country))",
            {
                "v": "SELECT country, name, count(DISTINCT id) AS n FROM users GROUP BY country, name"
                " UNION ALL SELECT country, NULL, count(DISTINCT id) FROM users GROUP BY country"
            },
        ),
    ],
    "a subquery in GROUP BY that is written twice": [
        (
            f"SELECT country, {LAST_ORDER} AS last, count(*) AS n FROM users u GROUP BY country, {LAST_ORDER}",
            {"v": f"SELECT country, {LAST_ORDER} AS last, count(*) AS n FROM users u GROUP BY country, last"},
        ),
    ],
    "a window over all rows": [
        (
            f"SELECT id, rank() OVER ({before} ORDER BY price) AS place FROM products",
            {"v": "SELECT id, rank() OVER (PARTITION BY category_id ORDER BY price) AS r FROM products"},
        )
        for before in ("", "PARTITION BY price > 1")
    ],
    "LIMIT over all rows": [
        (
            "SELECT name FROM products ORDER BY name LIMIT 2",
            {"v": "SELECT id, price FROM products ORDER BY price DESC LIMIT 2"},
        ),
        (
            "SELECT category_id, max(price) AS top FROM products GROUP BY category_id ORDER BY count(*), 1 LIMIT 2",
            {"v": "SELECT category_id, count(*) AS n, max(price) AS p FROM products GROUP BY 1 ORDER BY 2, 1 LIMIT 2"},
        ),
    ],
    "Spark groups these in another way": [
        (
            "SELECT id FROM users WHERE (id = 1) = name LIKE 'a%'",
            {"v": "SELECT id FROM users WHERE (id = 1) = (name LIKE 'a%')"},
        ),
        (
            "SELECT id FROM users WHERE (id = 1) IS NOT DISTINCT FROM (id IN (SELECT user_id FROM orders))",
            {"v": "SELECT id FROM users u WHERE (id = 1) = (EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id))"},
        ),
    ],
    "NOT IN with columns that may be NULL": [
        (
            "SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders)",
            {"v": sql},
        )
        for sql in (
            "SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders WHERE user_id IS NOT NULL)",
            "SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)",
        )
    ],
    "IN in SELECT with columns that may be NULL": [
        (
            "SELECT id, id IN (SELECT user_id FROM orders) AS has FROM users",
            {"v": sql},
        )
        for sql in (
            "SELECT id, id IN (SELECT user_id FROM orders WHERE user_id IS NOT NULL) AS has FROM users",
            "SELECT id, EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id) AS has FROM users u",
        )
    ],
    "IN outside of WHERE and SELECT": [
        (
            "SELECT country, max(id) AS n FROM users GROUP BY country HAVING max(id) IN (SELECT user_id FROM orders)",
            {
                "v": "SELECT country, max(id) AS n FROM users u GROUP BY country"
                " HAVING EXISTS (SELECT 1 FROM orders o WHERE o.status = u.country)"
            },
        )
    ],
    "a subquery without an equality": [
        (
            "SELECT id FROM products WHERE price > (SELECT max(price) FROM products GROUP BY price IS NULL)",
            {"v": sql},
        )
        for sql in (
            "SELECT id FROM products WHERE price > (SELECT price FROM products WHERE id = 7)",
            "SELECT id FROM products WHERE price > (SELECT max(price) - 1 FROM products)",
            "SELECT id FROM products p"
            " WHERE price > (SELECT avg(q.price) FROM products q WHERE q.category_id = p.category_id)",
        )
    ],
    "no equality of columns": [
        (
            "SELECT a.id, b.id AS other FROM users a JOIN (SELECT id, name FROM users) b"
            " ON lower(a.name) = lower(b.name)",
            {
                "low": "SELECT id, lower(name) AS low FROM users",
                "v": "SELECT a.id, b.id AS other FROM low a JOIN low b ON a.low = b.low",
            },
        ),
        (
            "SELECT a.id, s.id AS other FROM accounts a JOIN savings s ON a.balance < s.balance",
            {"v": "SELECT a.id, s.id AS other FROM accounts a JOIN savings s ON a.id = s.id AND a.balance < s.balance"},
        ),
        (
            "SELECT u.id, p.price FROM users u CROSS JOIN (SELECT price FROM products WHERE id = 7) p",
            {"v": "SELECT u.id, (SELECT price FROM products WHERE id = 7) AS price FROM users u"},
        ),
        (
            "SELECT u.id, q.n FROM users u JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY ROLLUP (user_id)) q"
            " ON q.user_id = u.id",
            {
                "totals": "SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY ROLLUP (user_id)",
                "v": "SELECT u.id, q.n FROM users u JOIN totals q ON q.user_id = u.id WHERE q.level = 0",
            },
        ),
    ],
    "without an equality of columns": [
        (
            "SELECT u.id, m.user_id FROM users u LEFT JOIN (SELECT o.user_id, max(p.id) AS id FROM orders o"
            " JOIN products p ON p.id = o.id GROUP BY o.user_id) m ON m.id = u.id",
            {
                "latest": "SELECT o.user_id, max(p.id) AS id FROM orders o JOIN products p ON p.id = o.id"
                " GROUP BY o.user_id",
                "v": "SELECT u.id, m.user_id FROM users u LEFT JOIN latest m ON m.id = u.id",
            },
        ),
        (
            "SELECT a.id, s.id AS other FROM accounts a LEFT JOIN savings s ON s.balance BETWEEN 1 AND a.balance",
            {"v": "SELECT a.id, s.id AS other FROM accounts a LEFT JOIN savings s ON s.id = a.id AND s.balance > 1"},
        ),
    ],
    "no column, unchanged from a table": [
        (
            f"SELECT concat(u.name, o.status) AS n FROM {USERS_AND_ORDERS}",
            {"v": f"SELECT o.id, concat(u.name, o.status) AS n FROM {USERS_AND_ORDERS}"},
        ),
    ],
    "a table or a join in parentheses": [
        (
            "SELECT count(*) AS n FROM (orders o JOIN users u ON u.id = o.user_id) AS q",
            {"v": "SELECT count(*) AS n FROM (SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id) q"},
        ),
    ],
    "LATERAL in parentheses": [
        (
            "SELECT a.id, s.balance FROM accounts a LEFT JOIN (savings s JOIN orders o USING (id)) ON s.id = a.id",
            {
                "v": "SELECT a.id, s.balance FROM accounts a "
                "LEFT JOIN (savings s JOIN orders o ON o.id = s.id) ON s.id = a.id"
            },
        ),
    ],
    "beside a join in parentheses": [
        (
            "SELECT a.id, s.balance FROM accounts a LEFT JOIN (savings s JOIN orders o ON o.id = s.id) USING (balance)",
            {
                "v": "SELECT a.id, s.balance FROM accounts a LEFT JOIN (SELECT s.id, s.balance FROM savings s "
                "JOIN orders o ON o.id = s.id) s USING (id)"
            },
        ),
    ],
    "the columns of its result are not all known": [
        (
            "SELECT a.*, s.balance AS saved FROM accounts a JOIN savings s USING (id)",
            {"v": "SELECT id, a.balance, s.balance AS saved FROM accounts a JOIN savings s USING (id)"},
        )
    ],
    "PIVOT": [
        (
            "SELECT * FROM (SELECT user_id, status FROM orders) PIVOT (count(*) FOR status IN ('paid', 'open'))",
            {
                "v": "SELECT user_id, count(*) FILTER (WHERE status = 'paid') AS paid,"
                " count(*) FILTER (WHERE status = 'open') AS open FROM orders GROUP BY user_id"
            },
        )
    ],
    "a recursive query": [
        (
            "WITH RECURSIVE t (id) AS (SELECT id FROM orders WHERE user_id IS NULL"
            " UNION ALL SELECT o.id FROM t JOIN orders o ON o.user_id = t.id) SELECT id FROM t",
            {},
        )
    ],
}
CASES: Final = [(reason, *case) for reason, cases in FULL.items() for case in cases]
# For each row of the table of KEYS, by a word of it: views that DuckDB understands, too.
KEYS: Final = {
    "CASE": ["SELECT id, CASE WHEN price > 1 THEN upper(name) END AS n FROM products WHERE category_id = 1"],
    "NATURAL": [
        "SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id",
        "SELECT u.id, o.id AS o FROM orders o RIGHT JOIN users u ON u.id = o.user_id",
        "SELECT u.id, o.id AS o FROM orders o, users u WHERE u.id = o.user_id",
        "SELECT id, a.balance, s.balance AS saved FROM accounts a JOIN savings s USING (id)",
        "SELECT id, balance FROM accounts NATURAL JOIN savings",
        "SELECT a.id, b.id AS o FROM users a JOIN users b ON a.country = b.country AND a.name < b.name",
        "SELECT a.id, b.id AS o FROM users a LEFT JOIN users b ON a.country IS NOT DISTINCT FROM b.name",
    ],
    "full joins": ["SELECT u.id, o.id AS o FROM users u FULL JOIN orders o ON o.user_id = u.id"],
    "LATERAL": [
        "SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)",
        "SELECT id FROM users WHERE id IN (SELECT user_id FROM orders)",
        "SELECT id FROM users WHERE (id, name) IN (SELECT user_id, status FROM orders WHERE status IS NOT NULL)",
        "SELECT id FROM users WHERE id NOT IN (SELECT id FROM accounts)",
        "SELECT id FROM users WHERE id NOT IN (SELECT product_id FROM order_items)",
        "SELECT id, (SELECT count(*) FROM orders o WHERE o.user_id = u.id) AS n FROM users u",
        "SELECT u.id, l.n FROM users u CROSS JOIN LATERAL (SELECT count(*) AS n FROM orders o WHERE user_id = u.id) l",
    ],
    "avg(price)": [
        "SELECT id FROM products WHERE price > (SELECT max(price) FROM products)",
        "SELECT id FROM products WHERE price > (SELECT price FROM products WHERE id = 7)",
        "SELECT id FROM products WHERE NOT EXISTS (SELECT 1 FROM orders WHERE status = 'stopped')",
        "SELECT p.id, q.top FROM products p CROSS JOIN (SELECT max(price) AS top FROM products) q",
        "WITH q AS (SELECT max(price) AS top, count(*) AS n FROM products) SELECT p.id, n FROM products p"
        " LEFT JOIN q ON p.price = q.top",
    ],
    "HAVING": [
        "SELECT user_id, count(*) FILTER (WHERE status = 'paid') AS n FROM orders GROUP BY user_id HAVING count(*) > 1",
        "SELECT DISTINCT u.country FROM users u JOIN orders o ON o.user_id = u.id",
        "SELECT user_id, count(DISTINCT status) AS n FROM orders GROUP BY user_id",
    ],
    "QUALIFY": ["SELECT id, user_id, rank() OVER (PARTITION BY user_id ORDER BY ordered_at) AS place FROM orders"],
    "over different columns": [
        "SELECT id, rank() OVER (PARTITION BY name ORDER BY id) AS by_name,"
        " rank() OVER (PARTITION BY country ORDER BY id) AS by_country FROM users",
    ],
    "INTERSECT": [
        f"SELECT id, balance FROM accounts {operator} SELECT id, balance FROM savings"
        for operator in ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
    ],
    "CTE": [
        "WITH c AS (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id)"
        " SELECT a.user_id, b.n FROM c a JOIN c b ON a.user_id = b.user_id",
        "SELECT q.id FROM (SELECT id, country FROM users) q",
    ],
    "a column that a subquery": [
        "SELECT m.category_id, p.id FROM (SELECT category_id, max(price) AS price FROM products GROUP BY category_id) m"
        " JOIN products p ON p.price = m.price",
        "WITH m AS (SELECT category_id, max(price) AS price FROM products GROUP BY category_id HAVING count(*) > 1)"
        " SELECT p.id, m.category_id FROM products p LEFT JOIN m ON m.price = p.price",
    ],
    "date_trunc": [
        "SELECT lower(name) AS low, max(name) AS n FROM users GROUP BY lower(name)",
        "SELECT DISTINCT lower(name) AS low FROM users",
        "SELECT lower(name) AS low FROM users",
        "SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE lower(o.status) = lower(u.name))",
        "SELECT id, rank() OVER (PARTITION BY lower(name) ORDER BY id) AS place FROM users",
        "SELECT a.id, b.id AS other FROM users a JOIN users b ON lower(a.name) = lower(b.name)",
    ],
}


BY_DAY: Final = """CREATE MATERIALIZED VIEW customers_by_day AS
SELECT date_trunc('day', ordered_at) AS day, count(DISTINCT user_id) AS customers FROM orders
GROUP BY date_trunc('day', ordered_at)"""


def explained(views: Mapping[str, str]) -> Explanation:
    """The explanation of the last of these views, each given by its SELECT."""
    memory = Memory(TABLES)
    memory.declare(views)
    view = list(memory.views.values())[-1]
    return explain(view.compiled, view.plan)


def explained_as_written(statement: str) -> Explanation:
    """The explanation of a view that is given by its whole statement."""
    memory = Memory(TABLES)
    view = memory.declare_as_written(statement)
    return explain(view.compiled, view.plan)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def rows_of_table(head: str) -> list[list[str]]:
    """The cells of the table below this head, row by row."""
    table = page("views.md").split(head + "\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


FULL_ROWS: Final = rows_of_table("| in the view | `explain` says | instead |")
KEYS_ROWS: Final = rows_of_table("| in the view | rows that are read for each changed row |")


def example(name: str, command: str) -> str:
    """The output of a command in a page."""
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)^```", page(name), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize(("reason", "sql"), [(reason, sql) for reason, sql, _ in CASES])
def test_view_that_the_page_calls_full_is_full_with_that_reason(reason: str, sql: str) -> None:
    found = explained({"v": sql})
    assert found.strategy == "FULL"
    assert reason in found.reason


@pytest.mark.parametrize("views", [views for *_, views in CASES if views])
def test_view_written_as_the_page_says_is_incremental(views: dict[str, str]) -> None:
    assert explained(views).strategy in ("KEYS", "ADD", "PATCH")


def test_page_has_every_reason_of_full_once_for_each_row() -> None:
    assert set(re.findall(r"`(.*?)`", " ".join(says for _, says, _ in FULL_ROWS))) == FULL.keys()


@pytest.mark.parametrize("sql", [sql for views in KEYS.values() for sql in views])
def test_view_that_the_page_calls_incremental_is_kept_by_keys(sql: str) -> None:
    assert explained({"v": sql}).strategy == "KEYS"


def test_every_row_of_the_table_of_keys_has_an_example() -> None:
    named = {constructs: [word for word in KEYS if word in constructs] for constructs, _ in KEYS_ROWS}
    assert {constructs for constructs, words in named.items() if not words} == set()
    assert {word for words in named.values() for word in words} == KEYS.keys()


def test_explanations_in_the_pages_are_those_of_the_planner() -> None:
    [first, *_] = re.findall(r"```sql\n(.*?)```", page("views.md"), re.DOTALL)
    assert example("views.md", "cdc-views explain order_totals").splitlines() == explained_as_written(first).lines()
    grouped = explained_as_written(BY_DAY)
    assert example("views.md", "cdc-views explain customers_by_day").splitlines() == grouped.lines()
    assert example("cli.md", "cdc-views explain balances").splitlines() == explained_as_written(VIEW).lines()


@pytest.mark.parametrize(("shape", "view"), [("anti", "anti"), ("self_join", "float_join")])
def test_explanations_of_shapes_in_the_page_are_those_of_the_engine(shape: str, view: str) -> None:
    golden = DOCS.parent / "tests" / "golden" / "shapes" / f"{shape}.txt"
    of_views = golden.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    assert example("views.md", f"cdc-views explain {view}").rstrip("\n") in of_views


def views_of_the_section() -> dict[str, str]:
    """The views of the section on how a view is kept."""
    section = page("views.md").split("## How a view is kept")[1]
    found = re.findall(
        r"```sql\nCREATE MATERIALIZED VIEW (\w+)(?: WITH \(strict\))? AS\n(.*?);\n```", section, re.DOTALL
    )
    assert len(found) == section.count("```sql")
    return dict(found)


def test_views_of_the_section_have_the_strategies_that_it_says() -> None:
    memory = Memory(TABLES)
    memory.declare(views_of_the_section())
    strategies = {name: view.plan.strategy for name, view in memory.views.items()}
    assert strategies.pop("orders_by_place") == "ADD"
    assert strategies.pop("orders_by_status") == "ADD"
    assert strategies.pop("items_by_amount") == "ADD"
    assert strategies.pop("_cv_busy_places_1") == "ADD"
    assert strategies.pop("_cv_price_range_1") == "ADD"
    assert strategies.pop("latest_posts") == "PATCH"
    assert strategies.pop("best_sellers") == "PATCH"
    assert strategies.pop("_cv_best_sellers_1") == "ADD"
    assert strategies.pop("latest_activity") == "PATCH"
    assert strategies.pop("_cv_newest_posts_1") == "PATCH"
    assert strategies.pop("_cv_best_sold_1") == "PATCH"
    assert strategies.pop("_cv__cv_best_sold_1_1") == "ADD"
    assert strategies.pop("assortment") == "ADD"
    assert strategies.pop("sales") == "ADD"
    assert strategies.pop("activity") == "ADD"
    by_keys = (
        *("paid_orders", "priced_items", "ordered_products", "dearest", "_cv_dearest_1"),
        *("busy_places", "price_range", "_cv_latest_activity_1", "newest_posts", "best_sold"),
    )
    assert strategies == dict.fromkeys(by_keys, "KEYS")


def test_views_of_the_section_equal_their_sql_after_every_epoch() -> None:
    memory = Memory(TABLES)
    # Over no rows DuckDB has a row for the total of ROLLUP; test_grouping_sets.py plays such views.
    memory.declare({name: sql for name, sql in views_of_the_section().items() if "ROLLUP" not in sql})
    with naming_the_seed():
        played(memory, random_states(TABLES, SEED, count=6))
