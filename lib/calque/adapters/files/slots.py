"""A limit on how many files are copied at a time, shared by threads here and bins that run in other processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

LOOK_SECONDS = 0.5
"""Seconds between two looks whether a slot is still wanted."""


class CopySlots:
    """A number of slots, `total`. They are given in the order of the requests, so that a request for several gets its
    turn."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = Condition()
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, count: int, ended: Callable[[], bool]) -> Iterator[bool]:
        """Wait for `count` slots, or for all where there are fewer, and hold them as long as the context lasts. Yields
        True; or False, with no slots, once `ended` returns True."""
        count = min(count, self.total)
        has_slots = self._wait(count, ended)
        try:
            yield has_slots
        finally:
            if has_slots:
                with self._changed:
                    self._free += count
                    self._changed.notify_all()

    def _wait(self, count: int, ended: Callable[[], bool]) -> bool:
        turn = object()
        with self._changed:
            self._queue.append(turn)
            try:
                while self._queue[0] is not turn or self._free < count:
                    if ended():
                        return False
                    self._changed.wait(LOOK_SECONDS)
                self._free -= count
                return True
            finally:
                self._queue.remove(turn)
                self._changed.notify_all()
