"""Errors that are raised again under another message or hint keep what else they know."""

from __future__ import annotations

from cdc_views.errors import NotPublishedYet, UnresolvedToast
from cdc_views.errors.log_offset import LogOffset

AT = LogOffset("app.public.orders", 0, 7)


def test_restated_error_keeps_its_class_and_its_fields() -> None:
    error = UnresolvedToast("not to be found", hint="rebuild it", table="public.orders", column="note", log_offset=AT)
    found = error.restated(hint="see the quarantine")
    assert (type(found), found.message, found.hint) == (UnresolvedToast, error.message, "see the quarantine")
    assert (found.problem, found.table, found.column, found.log_offset) == (
        "not to be found", "public.orders", "note", AT
    )  # fmt: skip
    assert error.hint == "rebuild it"


def test_restated_error_keeps_what_is_not_given() -> None:
    found = NotPublishedYet("not yet", hint="wait", behind_bytes=9).restated(message="epoch 7: not yet")
    assert (str(found), found.behind_bytes) == ("epoch 7: not yet\nhint: wait", 9)
