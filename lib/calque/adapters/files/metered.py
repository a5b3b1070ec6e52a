"""A file system to read from that keeps to a bandwidth and a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from calque.adapters.files.bucket import Bucket
from calque.adapters.files.system import FileFacts, ReadableSystem
from calque.ports import CopyTask


@dataclass(slots=True)
class Running:
    """A copy that is under way, and may take `limit` seconds. `began` moves on by the seconds that the copy waits for
    bandwidth."""

    task: CopyTask
    limit: float
    began: float

    def is_late(self) -> bool:
        return time.monotonic() - self.began > self.limit

    def require_in_time(self) -> None:
        if self.is_late():
            raise TimeoutError(f"{self.task.size} bytes take longer than {self.limit:.0f} s")


class Metered:
    """A source whose content comes no faster than the bucket allows, and whose reads raise `TimeoutError` once the
    copy's time is up. Therefore a copy that hung for long fails at its next read."""

    def __init__(self, inner: ReadableSystem, running: Running, bucket: Bucket | None) -> None:
        self.inner, self._running, self._bucket = inner, running, bucket

    def facts(self, path: str) -> FileFacts | None:
        self._running.require_in_time()
        return self.inner.facts(path)

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        for chunk in self.inner.chunks(path, size):
            if self._bucket is not None and (wait := self._bucket.take(len(chunk))):
                self._running.began += wait
                time.sleep(wait)
            self._running.require_in_time()
            yield chunk


def bare(system: ReadableSystem) -> ReadableSystem:
    """Return the system below the meter, if there is one. A store that copies inside itself moves nothing through this
    process, so that a meter has nothing to count."""
    return system.inner if isinstance(system, Metered) else system
