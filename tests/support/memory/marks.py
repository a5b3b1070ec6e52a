"""Marks in memory (port `MarkStore`)."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from calque.model.names import EventId
from calque.plugins.marks.core import says_more
from calque.plugins.marks.model import Mark, Trail


class MemoryMarks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: dict[int, Mark] = {}
        self._last = 0

    def last(self) -> int:
        return self._last

    def add(self, mark: Mark) -> bool:
        with self._lock:
            if mark.number != self._last + 1:
                return False
            self._marks[mark.number] = mark
            self._last = mark.number
            return True

    def after(self, number: int) -> Sequence[Mark]:
        with self._lock:
            return [mark for mark in self._marks.values() if mark.number > number]

    def follow(self, trails: Mapping[int, Trail], number: int, upto: EventId) -> None:
        with self._lock:
            for mark in [mark for mark in self._marks.values() if mark.number <= number]:
                trail = trails.get(mark.number) or replace(mark.trail, upto=max(upto, mark.trail.upto))
                if says_more(trail, mark.trail):
                    self._marks[mark.number] = replace(mark, followed=trail)

    def forget(self, numbers: Collection[int]) -> int:
        with self._lock:
            forgotten_numbers = self._marks.keys() & set(numbers)
            for number in forgotten_numbers:
                del self._marks[number]
            return len(forgotten_numbers)
