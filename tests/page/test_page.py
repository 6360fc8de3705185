"""The page in a browser, over a warehouse without an engine and without a JVM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from cdc_views.store.control import read_control
from tests.page.conftest import Opened
from tests.page.shop import FAILURE, HOSTILE, ORDERS, SELECT, Hour, Shop
from tests.seed import drawn
from tests.unit.fix_http import TOKEN, Client, serving
from tests.unit.watched import Watched, backlog

PHONE = {"width": 390, "height": 844}
ADDRESSES = (
    "", "sql", "epochs", "view/order_totals/rows", "view/order_totals/definition", "view/order_totals/history",
    "view/public.orders", "view/daily_sales", "view/post_search", "view/home_timeline", "view/product_cache",
    "view/post_alerts", "view/nosuch",
)  # fmt: skip


def go(page: Page, address: str) -> None:
    page.evaluate("address => { location.hash = `#/${address}` }", address)


def line(page: Page, name: str) -> Locator:
    """The line of a table in the list."""
    return page.locator("tr", has=page.get_by_role("link", name=name, exact=True))


# The overview


def test_overview_has_the_stages_the_views_and_the_remedy_of_what_is_wrong(page: Page) -> None:
    expect(page.get_by_role("alert").first).to_contain_text("no engine is running")
    expect(page.get_by_role("alert").first).to_contain_text('What to do: run "cdc-views run"')
    expect(page.locator(".stage h2")).to_have_text([
        "Postgres not known", "Debezium not known", "Kafka not known", "Engine does not work", "Readers works",
    ])  # fmt: skip
    expect(page.locator("[data-stage=readers]")).to_contain_text(re.compile(r"position\s*0/[0-9A-F]+"))
    expect(page.get_by_label("Cost of order_totals in the last hour")).to_have_count(1)
    for part in ("live", "ADD", "300", " ms"):
        expect(line(page, "order_totals")).to_contain_text(part)
    expect(page.locator("section", has_text="Mirrors").last).to_contain_text("public.orders")
    expect(page.locator(".why")).to_contain_text(FAILURE)
    expect(page.locator(".why")).to_contain_text("the next epoch tries again")


def test_overview_has_position_lag_and_rate_of_each_stage(shop: Shop, opened: Opened) -> None:
    watched = Watched(read_control(shop.root))
    watched.answers.backlog = backlog(confirmed=100, wal_end=110, limit=1000)
    watched.answers.behind = {"shop.public.orders": 3}
    for watched.answers.ends in (100, 180):
        watched.look(after_s=10)
    with serving(shop.root) as http:
        http.server._service.project._watching = lambda: (watched.watch, None)  # type: ignore[method-assign]
        with opened(http.url) as page:
            for stage, text in (
                ("postgres", "position 0/6E00000"), ("postgres", "keeps 10.5 MB of WAL"), ("connect", "10.5 MB"),
                ("connect", "RUNNING"), ("connect", "rate 0 bytes/s"), ("kafka", "3 records"),
                ("kafka", "rate 8 records/s"), ("engine", "changes/s"), ("readers", "age"), ("readers", "epochs/min"),
            ):  # fmt: skip
                expect(page.locator(f"[data-stage={stage}]")).to_contain_text(re.compile(text.replace(" ", r"\s*")))


def test_overview_follows_the_epochs(page: Page, shop: Shop) -> None:
    before = shop.hour.epoch
    expect(page.locator("#now")).to_contain_text(f"epoch {before}")
    expect(page.get_by_role("img", name=re.compile("^Changes per minute, [0-9,]+ in the last hour"))).to_have_count(1)
    shop.order(1, "5.00")
    expect(page.locator("#now")).to_contain_text(f"epoch {before + 1}")
    expect(page.locator("[data-stage=readers]")).to_contain_text(f"read epoch {before + 1}")


def test_list_is_filtered_from_the_keyboard(page: Page) -> None:
    expect(page.get_by_role("link", name="post_search")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("order")
    expect(page.get_by_role("link", name="post_search")).to_have_count(0)
    expect(page.get_by_role("link", name="order_totals")).to_be_visible()


def test_hour_without_an_epoch_has_no_time_to_readable(tmp_path: Path, opened: Opened) -> None:
    hour = Hour(tmp_path)
    hour.write(ORDERS)
    hour.publish()
    with serving(tmp_path) as http, opened(http.url) as page:
        expect(page.locator(".hour")).to_contain_text("no epoch in the last hour")


def test_view_without_changes_has_no_graph(page: Page) -> None:
    for name in ('Odd "name".', "constructor"):
        expect(line(page, name)).to_contain_text("no change")


def test_what_stays_in_the_overview_is_not_drawn_again(page: Page, shop: Shop) -> None:
    """So the focus stays, and a screen reader does not read an alert again."""
    link = page.get_by_role("link", name="order_totals", exact=True)
    link.focus()
    graph = page.get_by_label("Cost of order_totals in the last hour").element_handle()
    page.evaluate("""() => {
        window.inserted = [];
        const note = (node) => node.querySelector?.("[role=alert]") || node.closest?.("[role=alert]");
        const noteAll = (changes) => changes.forEach((change) =>
            window.inserted.push(...[...change.addedNodes].filter(note).map((node) => node.textContent)));
        new MutationObserver(noteAll).observe(document.body, { childList: true, subtree: true });
    }""")
    shop.order(1, "6.00")
    expect(page.locator("[data-stage=readers]")).to_contain_text(f"read epoch {shop.hour.epoch}")
    expect(link).to_be_focused()
    assert page.evaluate("window.inserted") == []
    assert graph.evaluate("graph => graph.isConnected")
    assert page.locator("#now").get_attribute("role") is None  # its age changes all the time


# A view


@pytest.mark.parametrize("address", drawn(1, ["epochs", "view/order_totals/history", "view/public.orders"]))
def test_new_epoch_leaves_the_scroll_position(page: Page, shop: Shop, address: str) -> None:
    go(page, address)
    box = page.locator(".scroll")
    expect(box.locator("tbody tr").nth(40)).to_be_attached()
    page.set_viewport_size({"width": 300, "height": 400})
    box.evaluate("box => { box.scrollLeft = 30 }")
    assert box.evaluate("box => box.scrollLeft") == 30
    shop.order(1, "6.50")
    status = page.get_by_role("status") if address == "view/public.orders" else box.locator("td").first
    expect(status).to_contain_text(str(shop.hour.epoch))
    assert box.evaluate("box => box.scrollLeft") == 30


def test_rows_follow_the_epochs_and_show_what_is_new(page: Page, shop: Shop) -> None:
    go(page, "view/public.orders")
    expect(page.get_by_role("status").last).to_contain_text("100 rows at epoch")
    page.get_by_label("id", exact=True).fill("1")
    page.keyboard.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(1)
    page.get_by_role("button", name="All").click()
    expect(page.locator(".rows tbody tr")).to_have_count(100)
    shop.order(2, "7.77")
    expect(page.get_by_role("status").last).to_contain_text(f"epoch {shop.hour.epoch}")
    page.get_by_label("id", exact=True).fill("2")
    page.keyboard.press("Enter")
    expect(page.locator(".rows tbody")).to_contain_text("7.77")
    expect(page.locator(".rows tbody tr")).to_have_count(1)


@pytest.mark.parametrize(("key", "files"), [(".", "3"), ("..", "4"), ("a/b", "5")])
def test_row_is_found_by_a_key_that_looks_like_a_path(page: Page, key: str, files: str) -> None:
    go(page, "view/folders")
    page.get_by_label("folder", exact=True).fill(key)
    page.keyboard.press("Enter")
    expect(page.locator(".rows td")).to_have_text([key, files])


def test_row_is_found_by_a_key_of_two_columns(page: Page) -> None:
    go(page, "view/home_timeline/rows")
    page.get_by_label("user_id", exact=True).fill("2")
    page.get_by_label("post_id", exact=True).fill("44")
    page.keyboard.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(1)
    expect(page.locator(".rows td").nth(1)).to_have_text("44")


def test_values_of_rows_are_never_markup(page: Page, shop: Shop) -> None:
    shop.order(3, "1.00")
    go(page, "view/public.orders")
    page.get_by_label("id", exact=True).fill("3")
    page.keyboard.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(1)
    expect(page.locator(".rows tbody")).to_contain_text(HOSTILE)
    go(page, "view/post_search")
    page.get_by_role("searchbox", name="Search").fill("onerror")
    page.keyboard.press("Enter")
    expect(page.locator(".hits li").first).to_contain_text(HOSTILE)
    go(page, "view/" + HOSTILE.replace("/", "%2F").replace("<", "%3C"))
    expect(page.get_by_role("alert")).to_contain_text("UnknownView")
    assert page.locator("img:not([role])").count() == 0
    assert page.title() != "1"


def test_definition_has_the_select_its_lineage_and_why_it_is_kept_so(page: Page) -> None:
    go(page, "view/order_totals/definition")
    expect(page.locator("pre.code").first).to_have_text(SELECT)
    completed = page.locator("pre.code").nth(1)
    expect(completed).to_be_hidden()
    page.get_by_text("The SQL that runs").click()
    expect(completed).to_have_text(SELECT.replace("FROM orders", "FROM public.orders"))
    expect(page.locator(".reasons")).to_contain_text("ADD the totals over changed rows are added")
    expect(page.locator(".reasons")).to_contain_text("(user_id) the columns of GROUP BY")
    expect(page.locator("pre.code").nth(2)).to_contain_text("\n  read public.orders; one row for each (id)")
    expect(page.locator("pre.code").nth(3)).to_have_text(
        "a change of public.orders changes the totals of its (user_id)"
    )
    expect(page.get_by_label("It is read by")).to_have_text("daily_sales")
    page.get_by_label("It reads").get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("public.orders")
    expect(page.locator("#panel")).to_contain_text("A mirror equals its table")


def test_history_has_the_cost_of_each_epoch(page: Page) -> None:
    go(page, "view/order_totals/history")
    expect(page.get_by_role("img", name=re.compile("^Cost of each epoch, at most [0-9]+ ms"))).to_be_visible()
    expect(page.locator(".rows thead")).to_contain_text("looked up")
    expect(page.locator(".rows tbody tr")).to_have_count(50)


def test_tabs_are_reached_by_arrow_keys(page: Page) -> None:
    go(page, "view/order_totals")
    page.get_by_role("tab", name="Rows").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Definition")).to_have_attribute("aria-selected", "true")


# Kinds


def test_search_marks_what_matches_explains_scores_and_gives_more(page: Page) -> None:
    go(page, "view/post_search")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type('"exactly once" -rivers')
    page.keyboard.press("Enter")
    expect(page.locator(".hits > li").first.locator("mark").first).to_have_text("exactly")
    expect(page.locator("#panel [role=status]")).to_contain_text("of 10 documents")
    page.get_by_role("searchbox", name="Search").fill("delta")
    page.get_by_label("Filter", exact=True).fill("author=bob")
    page.keyboard.press("Enter")
    expect(page.locator("#panel [role=status]")).to_contain_text(re.compile(r"^\d of \d documents"))
    page.get_by_label("Filter", exact=True).fill("")
    page.keyboard.press("Enter")
    expect(page.locator(".hits > li")).to_have_count(10)
    page.get_by_role("button", name="More").click()
    expect(page.locator(".hits > li")).to_have_count(20)
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    page.locator("summary").first.click()
    expect(page.locator("details li").first).to_contain_text("idf")


def test_more_is_of_the_question_that_was_asked_and_comes_once(page: Page) -> None:
    go(page, "view/home_timeline")
    page.get_by_label("Whose timeline").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator(".entries > li")).to_have_count(20)
    page.get_by_label("Whose timeline").fill("2")
    page.get_by_role("button", name="More").evaluate("button => { button.click(); button.click(); }")
    expect(page.locator(".entries > li")).to_have_count(40)
    expect(page.locator("#panel [role=status]")).to_contain_text("40 entries")
    expect(page.locator(".entries > li").last).to_contain_text("post_id 6")


def test_late_answer_to_an_earlier_question_is_dropped(page: Page) -> None:
    go(page, "view/home_timeline")
    held: list[Route] = []
    page.route("**/timeline?owner=nobody", lambda route: held.append(route))
    box = page.get_by_label("Whose timeline")
    box.fill("nobody")
    with page.expect_request("**/timeline?owner=nobody"):
        box.press("Enter")
    box.fill("1")
    box.press("Enter")
    expect(page.locator(".entries > li")).to_have_count(20)
    with page.expect_response("**/timeline?owner=nobody"):
        held[0].continue_()
    page.get_by_role("button", name="More").click()
    expect(page.locator(".entries > li")).to_have_count(40)


def test_timeline_goes_on_with_more_entries(page: Page) -> None:
    go(page, "view/home_timeline")
    page.get_by_label("Whose timeline").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator(".entries > li")).to_have_count(20)
    expect(page.locator(".entries > li").first).to_contain_text("post_id 45")
    for count in (40, 45):
        page.get_by_role("button", name="More").click()
        expect(page.locator(".entries > li")).to_have_count(count)
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    page.get_by_label("Whose timeline").fill("nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("BadKey")


def test_more_entries_are_of_the_epoch_of_the_first_ones(page: Page, shop: Shop) -> None:
    go(page, "view/home_timeline")
    page.get_by_label("Whose timeline").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator(".entries > li")).to_have_count(20)
    first = page.locator("#panel [role=status]").inner_text()
    shop.order(3, "1.00")  # an epoch more
    page.get_by_role("button", name="More").click()
    expect(page.locator(".entries > li")).to_have_count(40)
    expect(page.locator("#panel [role=status]")).to_have_text(first.replace("20 entries", "40 entries"))


def test_more_entries_are_of_a_later_epoch_if_that_of_the_first_ones_is_gone(page: Page) -> None:
    gone = {"error": "EpochNotRetained", "detail": "epoch 1 can no longer be read", "hint": "read", "status": 410}
    page.route(lambda url: "&at=" in url, lambda route: route.fulfill(status=410, json=gone))
    go(page, "view/home_timeline")
    page.get_by_label("Whose timeline").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator(".entries > li")).to_have_count(20)
    page.get_by_role("button", name="More").click()
    expect(page.locator(".entries > li")).to_have_count(40)


def test_cache_says_hit_or_miss(page: Page) -> None:
    go(page, "view/product_cache")
    page.get_by_label("product_id").fill("2")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text('"sku": "P-0002"')
    expect(page.locator("#panel .pill")).to_have_text("hit")
    page.get_by_label("product_id").fill("99")
    page.keyboard.press("Enter")
    expect(page.locator("#panel .pill")).to_have_text("miss")


@pytest.mark.parametrize(
    ("view", "badge"),
    [("home_timeline", "timeline"), ("post_search", "search index"), ("post_alerts", "saved searches")],
)
def test_list_and_view_name_the_kind(page: Page, view: str, badge: str) -> None:
    expect(line(page, view).locator(".badge")).to_have_text(badge)
    go(page, f"view/{view}")
    expect(page.locator(".title .badge")).to_have_text(badge)


# SQL


def test_sql_runs_from_the_keyboard_and_keeps_every_digit(page: Page) -> None:
    go(page, "sql")
    page.get_by_label("SELECT").fill(
        "SELECT 9007199254740993 AS n, NULL AS nothing, max(amount) AS most FROM order_totals"
    )
    page.keyboard.press("Control+Enter")
    expect(page.locator(".rows td")).to_have_text(["9007199254740993", "NULL", "1275.00"])
    page.get_by_label("SELECT").fill("SELECT * FROM read_text('/etc/passwd')")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("BadQuery")
    page.get_by_label("SELECT").fill("")


@pytest.mark.parametrize(
    ("name", "quoted"), [("public.orders", '"public"."orders"'), ('Odd "name".', '"Odd ""name""."')]
)
def test_sql_inserts_names_that_are_quoted(page: Page, name: str, quoted: str) -> None:
    go(page, "sql")
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_label("SELECT")).to_have_value(f"SELECT * FROM {quoted} LIMIT 100")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".rows tbody tr").first).to_be_visible()


def test_sql_without_the_list_of_views_keeps_what_was_typed(page: Page) -> None:
    held: list[Route] = []
    expect(page.get_by_role("link", name="order_totals", exact=True)).to_be_visible()
    page.route("**/views", lambda route: held.append(route))
    with page.expect_request("**/views"):
        go(page, "sql")
    page.get_by_label("SELECT").fill("SELECT 3 AS n")
    held[0].abort()
    expect(page.get_by_role("alert")).to_contain_text("NoAnswer")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".rows td")).to_have_text(["3"])


def test_number_that_the_browser_rounds_is_marked(page: Page) -> None:
    """As in a browser whose JSON.parse does not give the source text."""
    page.evaluate("""() => {
        const parse = JSON.parse;
        JSON.parse = (text, reviver) => parse(text, reviver && ((name, value) => reviver(name, value)));
    }""")
    go(page, "sql")
    page.get_by_label("SELECT").fill("SELECT 9007199254740993 AS n")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".rows td")).to_have_text("≈9007199254740992")


def test_sql_runs_one_at_a_time(page: Page) -> None:
    go(page, "sql")
    held: list[Route] = []
    page.route("**/query", lambda route: held.append(route))
    page.get_by_label("SELECT").fill("SELECT 1 AS n")
    with page.expect_request("**/query"):
        page.keyboard.press("Control+Enter")
    page.get_by_label("SELECT").fill("SELECT 2 AS n")
    page.keyboard.press("Control+Enter")
    held[0].continue_()
    expect(page.locator(".rows td")).to_have_text(["1"])
    assert len(held) == 1


# What goes wrong


def test_token_is_asked_for_once_and_kept_by_the_tab_alone(shop: Shop, opened: Opened) -> None:
    with serving(shop.root, tokens=TOKEN) as http, opened(http.url) as page:
        dialog = page.get_by_role("dialog", name="Token")
        dialog.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("The token was refused.")
        dialog.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="order_totals")).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="order_totals")).to_be_visible()
        assert TOKEN not in page.url
        assert page.evaluate("[document.cookie, JSON.stringify(localStorage)]") == ["", "{}"]
        page.get_by_role("button", name="Forget token").click()
        expect(dialog).to_be_visible()


def test_request_refused_after_a_token_was_given_tries_that_token(shop: Shop, opened: Opened) -> None:
    """In place of a dialog that does not say that the token was wrong, since this request had none."""
    with serving(shop.root, tokens=TOKEN) as http, opened(http.url) as page:
        dialog = page.get_by_role("dialog", name="Token")
        late: list[Route] = []
        page.route("**/history", lambda route: route.continue_() if late else late.append(route))
        with page.expect_request("**/history"):
            page.reload()
        expect(dialog).to_be_visible()
        page.route(re.compile("/(status|views|epoch)$"), lambda route: None)
        dialog.get_by_label("Token").fill("wrong")
        with page.expect_request("**/status"), page.expect_request("**/views"):
            page.keyboard.press("Enter")
        late[0].continue_()
        expect(dialog).to_contain_text("The token was refused.")
        page.unroute_all()  # The others, which were held, go on.
        dialog.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="order_totals", exact=True)).to_be_visible()


def test_token_is_asked_for_until_it_is_given(shop: Shop, opened: Opened) -> None:
    token = "ein Schlüssel ohne Tür 🔑"
    with serving(shop.root, tokens=token) as http, opened(http.url) as page:
        dialog = page.get_by_role("dialog", name="Token")
        for _ in range(3):
            dialog.get_by_label("Token").press("Escape")
            expect(dialog).to_be_visible()
        dialog.get_by_label("Token").fill("falscher Schlüssel ✗")
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("The token was refused.")
        dialog.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="order_totals", exact=True)).to_be_visible()
        http.server.stop()
        expect(page.locator("#now")).to_have_text("NoAnswer")


def test_server_that_is_gone_is_named_with_its_remedy(shop: Shop, opened: Opened) -> None:
    with serving(shop.root) as http, opened(http.url) as page:
        expect(page.get_by_role("link", name="order_totals")).to_be_visible()
        http.server.stop()
        expect(page.get_by_role("alert").first).to_contain_text("NoAnswer")
        expect(page.get_by_role("alert").first).to_contain_text('run "cdc-views serve"')


def test_address_that_cannot_be_decoded_is_taken_as_it_is(page: Page) -> None:
    go(page, "view/100%")
    expect(page.get_by_role("alert")).to_contain_text('no table "100%"')


def test_address_of_no_panel_is_the_overview(page: Page) -> None:
    go(page, "constructor")
    expect(page.get_by_label("Data flow")).to_be_visible()


# Looks


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(http: Client, opened: Opened, scheme: str) -> None:
    with opened(http.url, viewport=PHONE, color_scheme=scheme) as page:
        for address in ADDRESSES:
            go(page, address)
            page.locator("main > *").first.wait_for()
            page.wait_for_load_state("networkidle")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_inputs_have_enough_contrast(http: Client, opened: Opened, scheme: str) -> None:
    """The ratios of WCAG 2.2 for texts (1.4.3) and for the edges of inputs (1.4.11)."""
    with opened(http.url, color_scheme=scheme) as page:
        ground, edge, placeholder, opacity = page.get_by_label("Filter by name").evaluate("""input => {
            const [own, text] = [getComputedStyle(input), getComputedStyle(input, "::placeholder")];
            return [own.backgroundColor, own.borderTopColor, text.color, text.opacity];
        }""")
    assert contrast(edge, ground) >= 3
    assert opacity == "1"
    assert contrast(placeholder, ground) >= 4.5


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, as "rgb(1, 2, 3)"."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_theme_follows_the_system_until_it_is_chosen(http: Client, opened: Opened) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(http.url, color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Light or dark").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        assert page.evaluate(ground) == light
