"""Places of a topic where it is known what counts before them: from one of these a reader may begin."""

from __future__ import annotations

import threading
from bisect import bisect_left

from calque.adapters.kafka.record import CountedUpTo

MOST = 8_192
NEAR = 256
"""Records between two places that are remembered."""


class TopicFacts:
    """Of one topic since it began (anew). For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin = -1
        self._offsets: list[int] = []
        self._found: list[CountedUpTo] = []

    def add(self, known: CountedUpTo) -> None:
        """What belongs to an older beginning is ignored; a newer one replaces all."""
        with self._lock:
            if known.begin < self._begin or known.mark is None:
                return
            if known.begin > self._begin:
                self._begin, self._offsets, self._found = known.begin, [], []
            at = bisect_left(self._offsets, known.offset)
            near = self._offsets[max(at - 1, 0) : at + 1]
            if all(abs(offset - known.offset) >= NEAR for offset in near):
                self._offsets.insert(at, known.offset)
                self._found.insert(at, known)
            if len(self._found) > MOST:
                self._offsets, self._found = self._offsets[::2], self._found[::2]

    def around(self, mark: int, lowest: CountedUpTo, highest: CountedUpTo) -> tuple[CountedUpTo, CountedUpTo]:
        """The nearest two, before which the newest mark is below, and not below, `mark`; or those given."""
        with self._lock:
            marks = [known.mark or 0 for known in self._found] if self._begin == lowest.begin else []
            at = bisect_left(marks, mark)
            below = self._found[at - 1] if at > 0 else lowest
            above = self._found[at] if at < len(marks) else highest
        return max(below, lowest, key=by_offset), min(above, highest, key=by_offset)

    def clear(self) -> None:
        with self._lock:
            self._begin, self._offsets, self._found = -1, [], []


def by_offset(known: CountedUpTo) -> int:
    return known.offset
