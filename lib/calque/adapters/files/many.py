"""The copying of many files by threads, or by a process for each thread, each file within its time: `copy_all`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Event, Thread

from calque.adapters.files.attempt import CopyTerms, FileCopier
from calque.adapters.files.bucket import Bucket
from calque.adapters.files.copy import by_target
from calque.adapters.files.processes import CopyProcess, copy_process
from calque.adapters.files.slots import CopySlots
from calque.adapters.files.systems import FileSystemSet
from calque.errors import Unavailable
from calque.ports import CopiedFile, CopyTask

FILES_APART = 256
LOOK_SECONDS = 1.0
"""Seconds between two looks whether a copy takes too long."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The number of threads that copy, and the files and bytes that each takes at a time: handing single small files
    from thread to thread costs as much as copying them. From `apart` files on each thread but the first has a
    process that copies for it, and all take `FILES_APART` files at a time; 0 is never."""

    threads: int
    files: int
    bytes: int = 8 << 20
    apart: int = 0


def copy_all(
    tasks: Sequence[CopyTask],
    systems: FileSystemSet,
    pace: Pace,
    terms: CopyTerms,
    bucket: Bucket | None = None,
    slots: CopySlots | None = None,
    progress: Callable[[CopiedFile], None] | None = None,
) -> Sequence[CopiedFile]:
    """Copy each file, in threads. Results are in the order of the tasks; `progress` is called in the caller's thread,
    as copies end. The first error ends the call once the copies in hand are done.

    A copy beyond its time raises `Unavailable` at once. No thread can be interrupted in a system call, so a thread that
    hangs is left behind: it ends with the process, or when its call returns, and then removes what it wrote.
    """
    unique = tuple(by_target(tasks).values())
    apart = 0 < pace.apart <= len(unique) and bucket is None
    pace = replace(pace, files=FILES_APART) if apart else pace
    portions = list(_portions(unique, pace))
    crew = CopyThreads(portions, systems, terms, bucket, slots, apart=apart)
    copies: dict[str, CopiedFile] = {}
    try:
        crew.start(min(pace.threads, len(portions)))
        for _ in portions:
            for copied in crew.next():
                copies[copied.task.target] = copied
                if progress:
                    progress(copied)
    finally:
        crew.stop()
    return [copies[task.target] for task in tasks]


class CopyThreads:
    """Threads that copy portions until none is left; with `apart` each but the first copies by a process."""

    def __init__(
        self,
        portions: Sequence[Sequence[CopyTask]],
        systems: FileSystemSet,
        terms: CopyTerms,
        bucket: Bucket | None,
        slots: CopySlots | None,
        *,
        apart: bool,
    ) -> None:
        self._systems, self._terms, self._slots, self._apart = systems, terms, slots, apart
        self._stopped = Event()
        self._copier = FileCopier(terms, bucket, self._stopped)
        self._waiting: SimpleQueue[Sequence[CopyTask]] = SimpleQueue()
        self._done: SimpleQueue[Sequence[CopiedFile] | BaseException] = SimpleQueue()
        for portion in portions:
            self._waiting.put(portion)
        self._threads: list[Thread] = []

    def start(self, threads: int) -> None:
        for number in range(threads):
            apart = self._apart and number > 0
            # The thread is a daemon, because a copy that hangs must not keep the process from ending.
            thread = Thread(target=self._work, kwargs={"apart": apart}, name=f"copy_{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def next(self) -> Sequence[CopiedFile]:
        """Return the results of the next finished portion. Raises the error that ended a copy, and `Unavailable` for a
        copy that hangs."""
        while True:
            try:
                result = self._done.get(timeout=LOOK_SECONDS)
            except Empty:
                self._require_in_time()
                continue
            if isinstance(result, BaseException):
                raise result
            return result

    def stop(self) -> None:
        """Let the threads take up no further portion, and wait for the copies in hand, except for those that hang."""
        self._stopped.set()
        for thread in self._threads:
            while thread.is_alive() and not self._copier.late_in(thread.ident):
                thread.join(LOOK_SECONDS)

    def _work(self, *, apart: bool) -> None:
        try:
            with copy_process(self._systems, self._terms) if apart else nullcontext() as process:
                while process and not process.has_begun(LOOK_SECONDS / 10):
                    if self._stopped.is_set() or self._waiting.empty():
                        return
                while not self._stopped.is_set():
                    portion = self._waiting.get_nowait()
                    with self._slot() as free:
                        if free:
                            self._done.put(self._copied(portion, process))
        except Empty:
            return
        except BaseException as error:  # noqa: BLE001 - a thread has no caller: whoever takes results raises it
            self._done.put(error)

    def _copied(self, portion: Sequence[CopyTask], process: CopyProcess | None) -> Sequence[CopiedFile]:
        """Copy the files by the process, and here what it leaves when it is lost."""
        copies: list[CopiedFile] = []
        if process is not None and not process.lost:
            copies += self._copier.watched(portion, process.copied(portion))
        return copies + [self._copier.copy(task, self._systems) for task in portion[len(copies) :]]

    def _slot(self) -> AbstractContextManager[bool]:
        return nullcontext(True) if self._slots is None else self._slots.taken(1, self._stopped.is_set)

    def _require_in_time(self) -> None:
        for thread in self._threads:
            late = self._copier.late_in(thread.ident)
            if late is not None:
                raise Unavailable(
                    f"{late.task.source} can't be copied to {late.task.target} now",
                    f"Its {late.task.size} bytes take longer than {late.limit:.0f} s",
                    "Look whether one of the two storages hangs; it is tried again",
                )


def _portions(tasks: Sequence[CopyTask], pace: Pace) -> Iterator[Sequence[CopyTask]]:
    start, load = 0, 0
    for number, task in enumerate(tasks):
        if number > start and (number - start == pace.files or load + task.size > pace.bytes):
            yield tasks[start:number]
            start, load = number, 0
        load += task.size
    if tasks:
        yield tasks[start:]
