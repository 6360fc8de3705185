"""A relay between real sockets: what goes through in each mode."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from bench.soak.proxy import DELAY_S, HOST, Proxy

LIMIT_S = 10.0


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            while data := connection.recv(1024):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, proxy.port), timeout=LIMIT_S)


def test_open_relays_both_ways_and_the_end(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        client.sendall(b"a" * 100_000)
        client.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received == b"a" * 100_000


def test_cut_resets_what_is_open_and_what_comes(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        assert proxy.set("cut") == 1
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert not is_open(proxy)
        proxy.set("open")
        assert is_open(proxy)


def test_held_keeps_connections_and_delivers_later(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        proxy.set("held")
        client.sendall(b"b")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        proxy.set("open")
        client.settimeout(LIMIT_S)
        assert client.recv(1) == b"b"


def test_half_open_loses_answers_and_resets_at_its_end(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        proxy.set("half_open")
        client.sendall(b"b")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        proxy.set("open")
        client.settimeout(LIMIT_S)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert is_open(proxy)


def test_slow_delivers_late(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy) as client:
        proxy.set("slow")
        began = time.monotonic()
        assert gets_through(client)
        assert time.monotonic() - began >= 2 * DELAY_S


def is_open(proxy: Proxy) -> bool:
    try:
        with connected(proxy) as client:
            return gets_through(client)
    except ConnectionError:
        return False


def gets_through(client: socket.socket) -> bool:
    client.sendall(b"x")
    return client.recv(1) == b"x"
