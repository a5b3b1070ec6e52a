"""The attempts to copy one file: further ones after a failure, a time limit, a share of the bandwidth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event, get_ident

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_after_delay,
    stop_when_event_set,
    wait_random_exponential,
)

from calque.adapters.files.bucket import Bucket
from calque.adapters.files.copy import copy_between
from calque.adapters.files.metered import Metered, Running
from calque.adapters.files.system import ReadableSystem
from calque.adapters.files.systems import FileSystemSet
from calque.errors import Unavailable
from calque.model.files import CopyProof
from calque.ports import CopiedFile, CopyTask

AT_ONCE = 1 << 20
"""The size in bytes up to which a file is read without a meter, unless the bandwidth is limited: reading it takes a
moment only."""


@dataclass(frozen=True, slots=True)
class CopyTerms:
    """The terms on which files are copied. `bandwidth` is in bytes a second, `parallel` the greatest number of files at
    a time; 0 is no limit. `proof` says what proves a copy.

    A copy that is `Unavailable` is tried `attempts` times, with pauses (seconds) of a random length up to one that
    doubles from `pause` to `longest_pause`. It is not tried again after `passing` seconds, so that the caller learns of
    the error then. An attempt may take `patience` seconds and one more for each `slowest` bytes, not counting the time
    for which it waits for bandwidth.
    """

    bandwidth: float = 0.0
    parallel: int = 0
    proof: CopyProof = "auto"
    attempts: int = 4
    pause: float = 0.5
    longest_pause: float = 10.0
    passing: float = 8.0
    patience: float = 120.0
    slowest: float = 1e6

    def limit(self, size: int) -> float:
        """Return the seconds that a file of `size` bytes may take."""
        return self.patience + size / self.slowest


class FileCopier:
    """A copier of files on the same terms, from any number of threads, until the event `stopped` is set."""

    def __init__(self, terms: CopyTerms, bucket: Bucket | None, stopped: Event) -> None:
        self._terms, self._bucket, self._stopped = terms, bucket, stopped
        self._running: dict[int, Running] = {}
        """The copies that are under way, by thread."""

    def copy(self, task: CopyTask, systems: FileSystemSet) -> CopiedFile:
        """Copy one file by `copy.copy_between`, as often as the terms allow. Raises `Unavailable` where no attempt
        succeeds, and what else `copy_between` raises."""
        began = time.monotonic()
        try:
            return self._once(task, systems)
        except Unavailable:
            late = time.monotonic() - began > self._terms.passing
            if self._terms.attempts < 2 or late or self._stopped.is_set():
                raise
        finally:
            self._running.pop(get_ident(), None)
        return self._again(task, systems)

    def watched(self, tasks: Sequence[CopyTask], copies: Iterator[CopiedFile]) -> Iterator[CopiedFile]:
        """Pass on the copies that another process makes of these files, in their order. Each may take the time of the
        largest."""
        limit = max(self._terms.limit(task.size) for task in tasks)
        try:
            for task in tasks:
                self._running[get_ident()] = Running(task, limit, time.monotonic())
                copied = next(copies, None)
                if copied is None:
                    return
                yield copied
        finally:
            self._running.pop(get_ident(), None)

    def late_in(self, thread: int | None) -> Running | None:
        """Return the copy in this thread if it has used up its time; else None."""
        running = self._running.get(thread or 0)
        return running if running is not None and running.is_late() else None

    def _once(self, task: CopyTask, systems: FileSystemSet) -> CopiedFile:
        running = Running(task, self._terms.limit(task.size), time.monotonic())
        self._running[get_ident()] = running
        if (refused := systems.why_not_read(task.source)) is not None:
            return CopiedFile(task, problem=str(refused))
        source: ReadableSystem
        source, path = systems.at(task.source)
        if self._bucket is not None or task.size > AT_ONCE:
            source = Metered(source, running, self._bucket)
        return copy_between(task, source, path, *systems.at(task.target), self._terms.proof)

    def _again(self, task: CopyTask, systems: FileSystemSet) -> CopiedFile:
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(self._terms.attempts - 1)
            | stop_after_delay(self._terms.passing)
            | stop_when_event_set(self._stopped),
            wait=wait_random_exponential(self._terms.pause, self._terms.longest_pause),
            sleep=sleep_using_event(self._stopped),
            reraise=True,
        )
        self._stopped.wait(self._terms.pause)
        try:
            return retrying(self._once, task, systems)
        finally:
            self._running.pop(get_ident(), None)
