"""Metrics of the HTTP server for Prometheus."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from cdc_views.serve.http.limits import Slots, Unsent

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})


class Counters:
    """What the server has answered, and what it does now."""

    def __init__(self, requests: Slots, waiting: Slots, followers: Slots, unsent: Unsent) -> None:
        self.registry = made = CollectorRegistry()
        self._requests = Counter(
            "cdc_views_http_requests", "Answered requests", ["method", "route", "status"], registry=made
        )
        self._seconds = Histogram(
            "cdc_views_http_request_duration_seconds", "From the request to the end of its answer", ["route"],
            buckets=_SECONDS, registry=made,
        )  # fmt: skip
        now = (
            (
                "cdc_views_http_active_requests",
                "Requests that are being answered, without those that wait",
                lambda: requests.taken,
            ),
            (
                "cdc_views_http_waiting_requests",
                "Requests that wait for a position, or for /status",
                lambda: waiting.taken,
            ),
            ("cdc_views_http_followers", "Clients that follow changes", lambda: followers.taken),
            ("cdc_views_http_unsent_bytes", "Answers that clients have not read yet", lambda: unsent.bytes),
        )
        for name, text, value in now:
            Gauge(name, text, registry=made).set_function(value)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. Its path is not a label: it may have the key of a row."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        return generate_latest(self.registry)
