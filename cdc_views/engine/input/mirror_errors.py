"""Names the table in an unexpected error in its changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cdc_views.errors import CdcViewsError, MirrorFailed
from cdc_views.errors.unexpected import described


@contextmanager
def naming_table(name: str) -> Iterator[None]:
    """Raise MirrorFailed in place of an unexpected error. Errors of ours, of files and of Spark pass unchanged."""
    try:
        yield
    except (CdcViewsError, OSError, DeltaError, Py4JError, PySparkException):
        raise
    except Exception as error:
        raise MirrorFailed(f'table "{name}": unexpected error: {described(error)}') from error
