"""The settings of `cdc-views serve`."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from cdc_views.config.section import TEN_YEARS_S, Section

_SHORTEST_TOKEN: Final = 16


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


class HttpSettings(Section):
    """Reading over HTTP: where, who, and how much."""

    host: str = Field("127.0.0.1", description="address to listen at; any other than loopback needs `http.tokens`")
    port: int = Field(8080, ge=0, le=65535, description="port to listen at; 0: any free one")
    tokens: Annotated[tuple[SecretStr, ...], BeforeValidator(_several)] = Field(
        (), description="secrets of at least 16 characters, one of which each request must have as its bearer token"
    )
    workers: int = Field(4, ge=1, le=256, description="reads and queries that run at the same time; others wait")
    requests: int = Field(64, ge=1, description="requests at the same time; more are refused (`ServerBusy`)")
    waiting: int = Field(
        256, ge=0, description="requests that wait, for a position or for `/status`, beside these; more are refused"
    )
    followers: int = Field(100, ge=0, description="clients that follow changes at the same time; more are refused")
    query_s: float = Field(
        30, gt=0, le=TEN_YEARS_S, description="how long a query, a search, or a read of rows may take"
    )
    query_memory_mb: int = Field(1024, ge=16, description="memory in MiB for a query, or for what a search reads")
    result_rows: int = Field(1_000_000, ge=1, description="rows that an answer may have")
    result_mb: int = Field(
        64,
        ge=1,
        description="size in MiB that an answer may have: its values, and the names of its columns for each row",
    )
    index_mb: int = Field(256, ge=0, description="memory in MiB for the indexes by which rows are found; 0: none")
    rows_mb: int = Field(256, ge=0, description="disk in MiB for decoded rows, in the folder for temporary files")
    cache_mb: int = Field(64, ge=0, description="memory in MiB for the hot rows of each view of kind `cache`")
    unsent_mb: int = Field(256, ge=1, description="size in MiB of all answers that clients have not read yet")
    wait_s: float = Field(60, ge=0, le=TEN_YEARS_S, description="how long a request may wait for a position (`wait`)")
    stalled_s: float = Field(
        30,
        gt=0,
        le=TEN_YEARS_S,
        description="a client that neither reads its answer nor sends its request for this long is disconnected",
    )

    @field_validator("tokens")
    @classmethod
    def _require_long(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(token.get_secret_value()) < _SHORTEST_TOKEN for token in value):
            raise ValueError(f"a token has less than {_SHORTEST_TOKEN} characters")
        return value

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is that of this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
