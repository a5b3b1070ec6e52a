"""Work beside the windows that is done again and again."""

from __future__ import annotations

import threading

import pytest

from calque.errors import CalqueError, Refused, Unavailable
from calque.streams.background import again_and_again

AWAY, OTHER, REFUSED = Unavailable("hq is away"), Unavailable("hq is slow"), Refused("hq does not let us")


def test_each_reason_for_which_it_waits_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    stopping = threading.Event()
    outcomes: list[CalqueError | None] = [AWAY, AWAY, OTHER, None, AWAY, REFUSED, REFUSED]

    def look() -> None:
        outcome = outcomes.pop(0)
        if not outcomes:
            stopping.set()
        if outcome is not None:
            raise outcome

    again_and_again(look, "grants", 0.0, 1)(stopping)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", f"grants wait: {AWAY}"),
        ("INFO", f"grants wait: {OTHER}"),
        ("INFO", f"grants wait: {AWAY}"),
        ("WARNING", f"grants wait: {REFUSED}"),
    ]
