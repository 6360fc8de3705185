"""Which table an error is about that nobody expected in its changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cdc_views.errors import CdcViewsError, MirrorFailed
from cdc_views.unexpected import described


@contextmanager
def naming_table(name: str) -> Iterator[None]:
    """Turn what nobody expected of one table's changes into MirrorFailed; errors of ours, of files and Spark pass."""
    try:
        yield
    except (CdcViewsError, OSError, DeltaError, Py4JError, PySparkException):
        raise
    except Exception as error:
        raise MirrorFailed(f'table "{name}": unexpected error: {described(error)}') from error
