"""The lags of targets over time, for plots: every sample of the last half hour, and one a minute of the last day."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LOOK_SECONDS = 2.0
FINE_SECONDS, COARSE_SECONDS, KEPT_SECONDS = 1800.0, 60.0, 86_400.0


class LagSample(NamedTuple):
    """The lag of a target at the time `at` (seconds since the epoch), in seconds and in events; None where it was not
    known."""

    at: float
    seconds: float | None
    events: int | None


class LagSeries:
    """The samples of all targets. Of a minute more than half an hour ago only the largest lag stays. Safe from several
    threads."""

    def __init__(self) -> None:
        self.fine: dict[str, deque[LagSample]] = {}
        self.coarse: dict[str, deque[LagSample]] = {}
        self.lock = threading.Lock()

    def note(self, target: str, sample: LagSample) -> None:
        with self.lock:
            fine = self.fine.setdefault(target, deque())
            coarse = self.coarse.setdefault(target, deque(maxlen=int(KEPT_SECONDS / COARSE_SECONDS)))
            fine.append(sample)
            while fine[0].at < sample.at - FINE_SECONDS:
                passed = fine.popleft()
                if coarse and passed.at - coarse[-1].at < COARSE_SECONDS:
                    coarse[-1] = LagSample(coarse[-1].at, *worse(coarse[-1], passed))
                else:
                    coarse.append(passed)

    def since(self, at: float) -> Mapping[str, Sequence[LagSample]]:
        """Return the samples after the time `at` (seconds since the epoch) by target, ascending by time."""
        with self.lock:
            return {
                target: [sample for samples in (self.coarse[target], fine) for sample in samples if sample.at > at]
                for target, fine in self.fine.items()
            }


def worse(one: LagSample, other: LagSample) -> tuple[float | None, int | None]:
    seconds = [value for value in (one.seconds, other.seconds) if value is not None]
    events = [value for value in (one.events, other.events) if value is not None]
    return max(seconds, default=None), max(events, default=None)
