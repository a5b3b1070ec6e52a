"""The long poll of a streaming source: `LongPoll`.

A source's process waits inside one call until there are events (measured: an idle query costs 3 % of a core so, and 10
% where Spark's trigger polls).
"""

from __future__ import annotations

import faulthandler
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from calque.errors import Unavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

BRISK, BRISK_SECONDS, LEAST_PAUSE = 10, 10.0, 0.004
"""The factor by which a source looks more often after news, the seconds for which it does, and the least pause in
seconds."""
LONGEST_PAUSE = 5.0
"""Seconds between two attempts to reach a log that does not answer."""
STUCK_SECONDS = 120.0
"""The seconds after which a call counts as stuck: an honest one gives up long before that."""


def brisk(poll: float) -> float:
    """Return the seconds between looks for a while after some news, which seldom comes alone, in place of `poll`."""
    return max(poll / BRISK, LEAST_PAUSE)


class LongPoll:
    """A poll that looks again and again until there is news, for `wait` seconds at most. The first call looks once, so
    that a query begins with an empty batch, which warms up what later ones need. `poll` is the longest pause between
    two looks, in seconds.

    While a look raises `Unavailable` there is no news, and the pauses grow. When a call takes `stuck` seconds longer
    than `wait`, the process ends, and says where its threads were: its query begins anew with another process.
    """

    def __init__(self, poll: float, wait: float, stuck: float) -> None:
        self._poll, self._wait, self._stuck = poll, wait, stuck
        self._news_at = float("-inf")
        self._is_silent = self._has_answered = False

    def until_news(self, look: Callable[[], T | None]) -> T | None:
        """Return the first result of `look` that is not None; None when nothing came in time."""
        faulthandler.dump_traceback_later(self._wait + self._stuck, exit=True, file=2)
        try:
            return self._until_news(look)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _until_news(self, look: Callable[[], T | None]) -> T | None:
        until, pause = time.monotonic() + (self._wait if self._has_answered else 0.0), self._pause()
        self._has_answered = True
        while True:
            if (found := self._answer(look)) is not None:
                self._news_at = time.monotonic()
                return found
            remaining = until - time.monotonic()
            if remaining <= 0:
                return None
            time.sleep(min(pause, remaining))
            pause = min(pause * 2, LONGEST_PAUSE) if self._is_silent else self._pause()

    def _answer(self, look: Callable[[], T | None]) -> T | None:
        try:
            found = look()
        except Unavailable as problem:
            if not self._is_silent:
                logger.warning("no news of events: %s", problem)
            self._is_silent = True
            return None
        if self._is_silent:
            logger.warning("news of events again")
        self._is_silent = False
        return found

    def _pause(self) -> float:
        return brisk(self._poll) if time.monotonic() - self._news_at < BRISK_SECONDS else self._poll
