"""Done sets: their statements parse; a set that is marked is done at the source, and at a target that shows it."""

from __future__ import annotations

from calque.app import APP
from calque.plugins.marks.core import Done
from plugins.marks.whole.test_marks import Marked, T


def test_it_works_at_all() -> None:
    APP.language().parse("MARK SET DONE sales.orders PARTITION (ds = '2024-01-01')")
    APP.language().parse("SHOW SETS DONE")
    marked = Marked()
    marked.start()
    marked.add(T, "1", "1")
    assert not isinstance(marked.at_source(ds="1"), Done)
    marked.mark(ds="1")
    assert isinstance(marked.at_source(ds="1"), Done)
