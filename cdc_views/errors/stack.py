"""The services of the local stack, and the JVM of Spark's driver."""

from __future__ import annotations

from cdc_views.errors.base import CdcViewsError


class StackError(CdcViewsError):
    """A problem with the local stack."""


class DownloadFailed(StackError):
    """A pinned file could not be downloaded, or has another size or checksum."""

    retryable = True


class PortInUse(StackError):
    """A port that we need belongs to another process."""


class ServiceFailed(StackError):
    """A service did not become healthy; the message ends with the last lines of its log."""


class ServiceKilled(ServiceFailed):
    """A signal ended a service while it was starting."""

    retryable = True


class DriverLost(StackError):
    """The JVM of Spark's driver ended or was stopped while the engine used it."""

    retryable = True
