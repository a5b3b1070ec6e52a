"""The speed at which a target's position moves, and when it may catch up: `PositionRates`."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from calque.model.names import EventId

SPAN_SECONDS = 60.0
"""Seconds over which speeds are measured."""
LEAST_SECONDS = 5.0
"""Seconds that have to lie between two samples for a speed to be told."""


class PositionSample(NamedTuple):
    """The position of a target and the source's newest event at the time `at` (seconds since 1970)."""

    at: float
    position: EventId
    head: EventId


class PositionRates:
    """The samples of the last minute of one target. Safe from several threads.

    A position that goes back belongs to another history, as behind a gap: it forgets the samples before it.
    """

    def __init__(self) -> None:
        self.samples: deque[PositionSample] = deque()
        self.lock = threading.Lock()

    def note(self, sample: PositionSample) -> None:
        with self.lock:
            if self.samples and sample.position < self.samples[-1].position:
                self.samples.clear()
            self.samples.append(sample)
            while self.samples[0].at < sample.at - SPAN_SECONDS:
                self.samples.popleft()

    def events_per_second(self) -> float | None:
        """Return the events a second by which the position moved; None before samples of `LEAST_SECONDS`."""
        ends = self._ends()
        return None if ends is None else (ends[1].position - ends[0].position) / (ends[1].at - ends[0].at)

    def catches_up_at(self) -> float | None:
        """Return when the position reaches the newest event if both go on at the speeds of the samples, in seconds
        since 1970. None where the target does not lag, gets no nearer, or the speeds are not known.

        Example: a target that lagged by 900 events half a minute ago and lags by 600 now catches up in a minute.
        """
        ends = self._ends()
        if ends is None:
            return None
        first, last = ends
        lag = last.head - last.position
        closed = (first.head - first.position) - lag
        return last.at + lag * (last.at - first.at) / closed if lag > 0 and closed > 0 else None

    def _ends(self) -> tuple[PositionSample, PositionSample] | None:
        with self.lock:
            if len(self.samples) < 2 or self.samples[-1].at - self.samples[0].at < LEAST_SECONDS:
                return None
            return self.samples[0], self.samples[-1]
