"""The places of a topic before which it is known what counts. A reader may begin at any of them."""

from __future__ import annotations

import threading
from bisect import bisect_left

from calque.plugins.kafka.adapters.journal.headers import CountedUpTo

MOST = 8_192
NEAR = 256
"""The fewest records between two places that are remembered."""


class TopicFacts:
    """The known places of one topic since it began, or began anew: at most `MOST`, in the order of their offsets. Safe
    from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin = -1
        self._offsets: list[int] = []
        self._places: list[CountedUpTo] = []

    def add(self, place: CountedUpTo) -> None:
        """Remember the place. A place of an older beginning is ignored; one of a newer beginning replaces all
        others."""
        with self._lock:
            if place.begin < self._begin or place.mark is None:
                return
            if place.begin > self._begin:
                self._begin, self._offsets, self._places = place.begin, [], []
            index = bisect_left(self._offsets, place.offset)
            neighbours = self._offsets[max(index - 1, 0) : index + 1]
            if all(abs(offset - place.offset) >= NEAR for offset in neighbours):
                self._offsets.insert(index, place.offset)
                self._places.insert(index, place)
            if len(self._places) > MOST:
                self._offsets, self._places = self._offsets[::2], self._places[::2]

    def around(self, mark: int, lowest: CountedUpTo, highest: CountedUpTo) -> tuple[CountedUpTo, CountedUpTo]:
        """Return the two nearest places around `mark`: before the first the newest mark is below `mark`, before the
        second it is not. `lowest` and `highest` stand in where no nearer place is known."""
        with self._lock:
            marks = [place.mark or 0 for place in self._places] if self._begin == lowest.begin else []
            index = bisect_left(marks, mark)
            below = self._places[index - 1] if index > 0 else lowest
            above = self._places[index] if index < len(marks) else highest
        return max(below, lowest, key=by_offset), min(above, highest, key=by_offset)

    def clear(self) -> None:
        with self._lock:
            self._begin, self._offsets, self._places = -1, [], []


def by_offset(place: CountedUpTo) -> int:
    return place.offset
