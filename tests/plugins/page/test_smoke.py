"""The page: it is served with what it asks for."""

from __future__ import annotations

from kernel.unit.test_serving import SILENT, WELL, read, served


def test_it_works_at_all() -> None:
    with served(lambda: WELL, console=SILENT) as serving:
        status, text = read(serving, "/")
        assert (status, "<html" in text) == (200, True)
        assert read(serving, "/assets/page.js")[0] == 200
        assert read(serving, "/api/overview")[0] == 200
