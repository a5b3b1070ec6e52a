"""The progress of a target's copies, and an estimate of when they are done: `CopyProgress`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

from calque.ports import CopiedFile, CopyTask

FILE_WEIGHT = 256 << 10
"""The bytes that stand for the cost of a file apart from its content."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Copies that are under way, as they were at `at_ns`. `files` and `bytes` are all of them, `files_done` and
    `bytes_done` those that are done. Of these, `files_kept` and `bytes_kept` lay there from an earlier attempt, and
    cost nothing. Times are nanoseconds since the epoch."""

    began_ns: int
    at_ns: int
    files: int = 0
    bytes: int = 0
    files_done: int = 0
    bytes_done: int = 0
    files_kept: int = 0
    bytes_kept: int = 0

    @property
    def ends_ns(self) -> int | None:
        """The time at which all is done if the copies go on as fast as they went; None before anything was really
        copied."""
        copied = weight(self.files_done - self.files_kept, self.bytes_done - self.bytes_kept)
        remaining = weight(self.files - self.files_done, self.bytes - self.bytes_done)
        if not remaining:
            return self.at_ns
        return self.at_ns + (self.at_ns - self.began_ns) * remaining // copied if copied else None


def weight(files: int, size: int) -> int:
    return files * FILE_WEIGHT + size


class CopyProgress:
    """A collector of what the copies of one target report, from any thread. Copies that are done count until no copy is
    under way any more, so that copies that overlap are shown as one that grows."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = Lock()
        self._under_way = 0
        self._progress = Progress(0, 0)

    @contextmanager
    def of(self, tasks: Sequence[CopyTask]) -> Iterator[Callable[[CopiedFile], None]]:
        """Count the tasks as under way for as long as the block runs, and give it the function that `Storage.copy`
        takes as `progress`."""
        copied_files: list[CopiedFile] = []
        size = sum(task.size for task in tasks)
        with self._lock:
            if not self._under_way:
                self._progress = Progress(self._now_ns(), 0)
            self._under_way += 1
            self._add(files=len(tasks), bytes=size)

        def report(copied: CopiedFile) -> None:
            was_kept = not copied.bytes_moved and copied.task.size > 0 and not copied.problem
            with self._lock:
                copied_files.append(copied)
                self._add(
                    files_done=1,
                    bytes_done=copied.task.size,
                    files_kept=int(was_kept),
                    bytes_kept=copied.task.size if was_kept else 0,
                )

        try:
            yield report
        finally:
            with self._lock:
                self._under_way -= 1
                # What was given up is not to be waited for.
                self._add(
                    files=len(copied_files) - len(tasks), bytes=sum(copied.task.size for copied in copied_files) - size
                )

    def look(self) -> Progress | None:
        """Return the progress as it is now; None while nothing is copied."""
        with self._lock:
            return replace(self._progress, at_ns=self._now_ns()) if self._under_way else None

    def _add(self, **amounts: int) -> None:
        self._progress = replace(
            self._progress, **{name: getattr(self._progress, name) + amount for name, amount in amounts.items()}
        )
