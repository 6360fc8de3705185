"""A real HTTP server over a warehouse, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from cdc_views.config import HttpSettings
from cdc_views.serve.http.server import HttpServer
from tests.waiting import wait_for

TOKEN = "a token of 16 characters or more"
TIMEOUT_S = 30


class Client:
    """Sends requests to one server."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.url = server.url
        self.session = requests.Session()

    def get(self, path: str, headers: dict[str, str] | None = None, **parameters: Any) -> requests.Response:
        """A GET request. Underscores in the names of parameters stay."""
        return self.session.get(self.url + path, params=parameters, headers=headers, timeout=TIMEOUT_S)

    def post(
        self, path: str, data: Any = None, headers: dict[str, str] | None = None, **more: Any
    ) -> requests.Response:
        """A POST request."""
        return self.session.post(self.url + path, data=data, headers=headers, timeout=TIMEOUT_S, **more)

    def stream(self, path: str, headers: dict[str, str]) -> requests.Response:
        """A response that is read as it comes."""
        return requests.get(self.url + path, headers=headers, stream=True, timeout=TIMEOUT_S)

    def get_in_thread(self, path: str) -> Callable[[], requests.Response]:
        """Send a GET request from a thread; what is returned waits for its response."""
        pool = ThreadPoolExecutor(1)
        sent = pool.submit(requests.get, self.url + path, timeout=TIMEOUT_S)
        pool.shutdown(wait=False)
        return sent.result

    def waiting(self, path: str, count: int) -> list[Callable[[], requests.Response]]:
        """Send so many GET requests, one after the other, each as soon as the one before it only waits."""
        places = self.server._service.waiting
        sent = []
        for number in range(1, count + 1):
            sent.append(self.get_in_thread(path))
            wait_for(lambda: places.taken == number, TIMEOUT_S, 0.01)  # noqa: B023 (called at once)
        return sent


@contextmanager
def serving(warehouse: Path, **settings: Any) -> Iterator[Client]:
    """A server on a free port, until the block ends."""
    server = HttpServer(warehouse, HttpSettings(**{"port": 0, "workers": 2, **settings}))
    thread = threading.Thread(target=server.run)
    thread.start()
    client = Client(server)
    try:
        yield client
    finally:
        client.session.close()
        server.stop()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


def problem(response: requests.Response) -> tuple[int, str]:
    """Status and name of an error, which is problem details."""
    assert response.headers["Content-Type"] == "application/problem+json"
    found = response.json()
    assert found["status"] == response.status_code
    assert found["type"] == f"urn:cdc-views:{found['error']}"
    assert found["title"]
    assert found["detail"]
    assert found["hint"]
    return response.status_code, found["error"]
