"""The lines of `destroy` about the source."""

from __future__ import annotations

from cdc_views.source.removal import Removal


def test_line_says_whether_something_was_removed_or_why_it_was_kept() -> None:
    assert str(Removal('publication "shop"')) == 'removed publication "shop"'
    kept = Removal('replica identity of "public.t"', "its former index is gone")
    assert str(kept) == 'kept: replica identity of "public.t", since its former index is gone'
