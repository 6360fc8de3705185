"""Why a view failed, in a message without row values, and which errors are not the fault of a view.

Messages of Spark, DuckDB and Arrow quote values ("The value 'x' of the type ..."). From Spark's messages we keep the
template and the parameters that name types, functions and settings; every other parameter becomes "...". From any
other error we keep the class and the place in our code that raised it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from cdc_views.engine.views.strategies.guards import NOT_UNIQUE, is_raised, key_not_unique
from cdc_views.errors import CdcViewsError, StackError, StoreError
from cdc_views.errors.unexpected import described
from cdc_views.plan.compiled import CompiledView
from cdc_views.store.storage import unusable
from cdc_views.views.definition import ViewDefinition

FATAL: Final = (StoreError, StackError)
"""Another writer, a full disk, a dead JVM: these stop the engine and are not a view's failure."""

# Parameters of Spark's messages that never hold row values (error-conditions.json of Spark 4.2).
_SAFE: Final = frozenset(
    {
        *("ansiConfig", "config", "configKey", "dataType", "failFastMode", "func", "funcName", "function"),
        *("functionName", "inputType", "jsonType", "parameter", "paramName", "sourceType", "sqlType", "targetType"),
        *("type", "typeName"),
    }
)
_MASKED: Final = "..."
_THROWABLE: Final = "org.apache.spark.SparkThrowable"
_RESULT_SIZE: Final = re.compile(r"bigger than (spark\.driver\.maxResultSize \([^)]*\))")


def failure_of(error: Exception, view: CompiledView) -> str:
    """Why a view failed: one line without row values."""
    if view.key is not None and is_raised(error, NOT_UNIQUE):
        error = key_not_unique(view.key)
    if isinstance(error, CdcViewsError):
        return error.message
    if isinstance(error, AnalysisException):  # raised before any row was read
        return first_line(error)
    try:
        causes = list(_causes(error))
        return _by_spark(causes, view.definition) or _by_java(causes) or described(error)
    except (Py4JError, PySparkException):  # Spark cannot produce the message
        return described(error)


def require_space(error: Exception, folder: Path) -> None:
    """Raise DiskFull if DuckDB's error says that there is no space for its own files."""
    if isinstance(error, duckdb.IOException) and os.strerror(errno.ENOSPC) in str(error):
        raise unusable(errno.ENOSPC, folder) from error


def is_stack_overflow(error: Exception) -> bool:
    """Whether the JVM's stack was too small, as for a query that is nested very deeply."""
    return any(java.getClass().getName() == "java.lang.StackOverflowError" for java in _causes(error))


def first_line(error: PySparkException) -> str:
    """The first line of Spark's message, without the plan and the stack that follow it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def place_of(definition: ViewDefinition, fragments: Iterable[str]) -> str | None:
    """`file:line:column` of the first of these fragments that occurs in the view's text; None if none does.

    Spark sees the query with its inputs renamed, so a fragment that it names is searched for in the text as written.
    """
    for fragment in fragments:
        start = definition.sql.find(fragment)
        if fragment and start >= 0:
            return definition.place(start)
    return None


def _causes(error: Exception) -> Iterator[Any]:
    """The Java exceptions behind an error, outermost first."""
    java = error.java_exception if isinstance(error, Py4JJavaError) else None
    if isinstance(error, CapturedException):
        java = error._origin
    while java is not None:
        yield java
        java = java.getCause()


def _by_spark(causes: Iterable[Any], definition: ViewDefinition) -> str | None:
    """The message of the first exception that has one of Spark's error conditions; None if none has."""
    jvm = _jvm()
    for java in causes:
        if not is_instance_of(SparkContext._gateway, java, _THROWABLE):
            continue
        condition = jvm.PythonErrorUtils.getCondition(java)
        if condition is None:
            continue
        shown = jvm.java.util.HashMap()
        for name, value in dict(jvm.PythonErrorUtils.getMessageParameters(java)).items():
            shown[name] = value if name in _SAFE else _MASKED
        text = jvm.org.apache.spark.SparkThrowableHelper.getMessage(condition, shown)
        place = place_of(definition, _fragments(java))
        return " ".join(f"{place}: {text}".split() if place else text.split())
    return None


def _fragments(java: Any) -> Iterator[str]:
    for context in _jvm().PythonErrorUtils.getQueryContext(java):
        if context.contextType().toString() == "SQL":
            yield context.fragment()


def _by_java(causes: Iterable[Any]) -> str | None:
    """The class of the innermost Java exception, or the limit of Spark that was exceeded."""
    name = None
    for java in causes:
        limit = _RESULT_SIZE.search(java.getMessage() or "")
        if limit is not None:
            return f"the result is larger than {limit[1]}"
        name = java.getClass().getName()
    return f"Spark raised {name}" if name is not None else None


def _jvm() -> Any:
    return SparkContext._jvm
