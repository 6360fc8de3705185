"""Runs Spark's analyser over the views, for commands that run no engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.capture.declared import Declared
from cdc_views.engine.spark.session import start_session
from cdc_views.engine.views.analysis import AnalysedView
from cdc_views.engine.views.project_analysis import analyse_views
from cdc_views.errors import BadView
from cdc_views.findings import Finding
from cdc_views.plan.compiled import CompiledView
from cdc_views.stack.fetch import delta_jars


@contextmanager
def _session(settings: EngineSettings) -> Iterator[SparkSession]:
    running = SparkContext._active_spark_context
    if running is not None:
        yield SparkSession(running)
        return
    session = start_session(settings.model_copy(update={"spark_master": "local[1]"}), delta_jars())
    try:
        yield session
    finally:
        session.stop()


def analyse(settings: EngineSettings, declared: Declared) -> list[tuple[CompiledView, AnalysedView | BadView]]:
    """Analyse all views in a Spark session with one thread, which takes some seconds to start.

    No session is started if there are no views.
    """
    views = [view for level in declared.levels for view in level]
    if not views:
        return []
    with _session(settings) as session:
        return list(analyse_views(session, declared.sources, views, is_local=settings.is_local))


def view_findings(settings: EngineSettings, declared: Declared) -> list[Finding]:
    """Return an error for each refused view, and a note for each place where Postgres would give another answer."""
    found = []
    for view, analysed in analyse(settings, declared):
        subject = f'view "{view.definition.name}"'
        if isinstance(analysed, BadView):
            found.append(Finding("error", subject, analysed.message, analysed.hint or "see docs/views.md"))
        else:
            found += [
                Finding("info", subject, note.problem(), f"{note.difference.write}, if you want Postgres's answer")
                for note in analysed.notes
            ]
    return found
