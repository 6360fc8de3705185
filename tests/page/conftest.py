"""Debian's Chromium for these tests: skipped where it is absent, which in CI is a failure (tests/conftest.py)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.page.shop import Shop
from tests.unit.fix_http import Client, serving

LIMIT_MS = 30_000
expect.set_options(timeout=LIMIT_MS)

Opened = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is absent: .ci/chromium installs it")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # it has none for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def http(shop: Shop) -> Iterator[Client]:
    with serving(shop.root) as client:
        yield client


@pytest.fixture
def opened(browser: Browser) -> Opened:
    """Open a page of a server. It must ask nobody else, and have no error, also none of its Content-Security-Policy."""

    @contextmanager
    def opened(url: str, **options: Any) -> Iterator[Page]:
        context: BrowserContext = browser.new_context(**options)
        context.set_default_timeout(LIMIT_MS)
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if is_error(message.text, message.type) else None)
        page.on("request", lambda request: None if request.url.startswith(url) else wrong.append(request.url))
        page.goto(url)
        try:
            yield page
            assert wrong == []
        finally:
            context.close()

    return opened


def is_error(text: str, kind: str) -> bool:
    """Whether a message of the console is an error; Chromium writes one for each answer that is a problem, too."""
    return kind in ("error", "warning") and not text.startswith("Failed to load resource")


@pytest.fixture
def page(opened: Opened, http: Client) -> Iterator[Page]:
    with opened(http.url) as page:
        yield page
