"""One bandwidth shared by bins that run in other processes and by what is copied here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from calque.adapters.files.bucket import Bucket

HERE = 0.1
"""The part of the bandwidth that small copies in this process keep while bins run elsewhere."""


class BandwidthShares:
    """A bandwidth of `total` bytes a second (0: no limit), of which each bin has a part as long as it runs.

    No message reaches a bin once it runs, so a bin is given what is free, but no more than its fair part: the bins of
    one copy never exceed the total. While several copies run, a bin that finds nothing free gets a tenth of its fair
    part all the same, because it may wait behind a file that takes hours.
    """

    def __init__(self, total: float, driver_bucket: Bucket | None) -> None:
        self._total, self._driver_bucket = total, driver_bucket
        self._lock = Lock()
        self._granted_rates: list[float] = []

    @contextmanager
    def one(self, bins: int, slots: int) -> Iterator[float]:
        """Hold the part of one of `bins` bins, of which `slots` run at once, as long as the context lasts. Yields its
        bytes a second; 0 for no limit."""
        if not self._total:
            yield 0.0
            return
        executors_total = self._total * (1 - HERE)
        with self._lock:
            fair = executors_total / max(1, min(bins, slots))
            part = max(min(fair, executors_total - sum(self._granted_rates)), fair / 10)
            self._granted_rates.append(part)
            self._adapt()
        try:
            yield part
        finally:
            with self._lock:
                self._granted_rates.remove(part)
                self._adapt()

    def _adapt(self) -> None:
        if self._driver_bucket is not None:
            self._driver_bucket.rate = self._total * (HERE if self._granted_rates else 1)
