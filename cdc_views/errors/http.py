"""Reading over HTTP."""

from __future__ import annotations

from cdc_views.errors.base import BadInput, CdcViewsError


class BadParameter(BadInput):
    """A parameter, header or body of an HTTP request that cannot be used."""


class NotAcceptable(BadInput):
    """An HTTP request accepts none of the formats that there are."""


class Unauthorized(BadInput):
    """An HTTP request without a token, or with a wrong one."""


class ForeignHost(BadInput):
    """An HTTP request for another host name than that of this machine, to a server without tokens."""


class RowNotFound(BadInput):
    """The epoch that was read over HTTP has no row with this key."""


class ServerBusy(CdcViewsError):
    """The HTTP server has as many requests, or as much unsent data, as it may have."""

    retryable = True
