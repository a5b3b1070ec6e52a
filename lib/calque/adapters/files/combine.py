"""Files made into one, from any file system to any other: `Combining`.

Sources are small, and read whole, a group of them at a time. The file that was made is read back from the target, and
its rows are compared with those of the sources by their digest, before the result is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from time import monotonic
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random_exponential
from xxhash import xxh3_128_hexdigest

from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.bucket import Bucket
from calque.adapters.files.copy import give_permissions, narrow, read_listed
from calque.adapters.files.metered import Metered, Running
from calque.adapters.files.slots import CopySlots
from calque.adapters.files.system import ReadableSystem, trouble
from calque.adapters.files.systems import FileSystemSet
from calque.core.small_files.combine_rows import combine, digest_of_rows
from calque.core.small_files.grouping import Unfit
from calque.errors import Unavailable
from calque.model.files import File, RowLayout
from calque.ports import CombinedRows, CombineTask, CopyTask

THREADS = 2
"""The groups that are made at a time: each is in memory, about three times."""
READERS = 8
"""The sources of one group that are read at a time where a read takes a request to a server."""


class FilesAtTarget(Protocol):
    """The part of a `FileStorage` that combining needs."""

    def write(self, path: str, content: bytes) -> None: ...

    def read(self, path: str) -> bytes | None: ...

    def files(self, paths: Sequence[str]) -> Mapping[str, File]: ...

    def remove(self, locations: Sequence[str]) -> None: ...


class SourceLost(Exception):
    """A source is not as the task says, or may not be read."""

    def __init__(self, task: CopyTask, problem: str) -> None:
        self.task, self.problem = task, problem
        super().__init__(problem)


class Combining:
    """The making of combined files at one target, from several threads. All copies of the target share the terms (time
    limits and attempts), the bucket that bounds bytes a second, and the slots that bound files at a time; None for no
    bound. With `local` one task reads one file at a time."""

    def __init__(
        self,
        target: FilesAtTarget,
        systems: FileSystemSet,
        terms: CopyTerms,
        bucket: Bucket | None,
        slots: CopySlots | None,
        *,
        local: bool,
    ) -> None:
        self._target, self._systems, self._terms, self._bucket, self._slots = target, systems, terms, bucket, slots
        self._readers = 1 if local else READERS

    def all(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        """Make the files of all tasks in threads, and return the results in the order of the tasks. `progress` is
        called in the caller's thread. The first error ends the call once the files in hand are made."""
        results: dict[int, CombinedRows] = {}
        remaining = iter(enumerate(tasks))
        with ThreadPoolExecutor(THREADS, thread_name_prefix="combine") as pool:
            futures = {pool.submit(self.one, task): number for number, task in islice(remaining, THREADS)}
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                for future in done:
                    number = futures.pop(future)
                    results[number] = future.result()
                    if progress:
                        progress(results[number])
                    futures |= {pool.submit(self.one, task): number for number, task in islice(remaining, 1)}
        return [results[number] for number in range(len(tasks))]

    def one(self, task: CombineTask) -> CombinedRows:
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(self._terms.attempts) | stop_after_delay(self._terms.passing),
            wait=wait_random_exponential(self._terms.pause, self._terms.longest_pause),
            reraise=True,
        )
        return retrying(self._once, task)

    def _once(self, task: CombineTask) -> CombinedRows:
        try:
            content, digest = combine(task.layout, self._contents(task))
        except Unfit as unfit:
            return CombinedRows(task, unfit=str(unfit))
        except SourceLost as lost:
            return CombinedRows(task, problem=lost.problem, lost=(lost.task,))
        self._target.write(task.target, content)
        written = self._target.read(task.target)
        files = self._target.files([task.target])
        if written != content or task.target not in files:
            self._target.remove([task.target])
            problem = f"{task.target} isn't read back as it was written: its storage, or the way to it, is faulty."
            return CombinedRows(task, problem=problem)
        file = files[task.target]
        if other := why_other_rows(task, written, digest):
            self._target.remove([task.target])
            return CombinedRows(task, unfit=other)
        self._narrow(task)
        made = File(task.target, file.size, file.modified_ns, xxh3_128_hexdigest(written))
        return CombinedRows(task, made, digest, unpermitted=self._given_permissions(task))

    def _given_permissions(self, task: CombineTask) -> str:
        first = task.sources[0]
        if not first.permissions:
            return ""
        try:
            return give_permissions(*self._systems.at(first.source), *self._systems.at(task.target))
        except OSError as error:
            raise trouble("set the permissions of", task.target, error) from error

    def _narrow(self, task: CombineTask) -> None:
        """Take from the file's group and others the rights that a source does not give, where a link leads to that
        source."""
        system, path = self._systems.at(task.target)
        for source in task.sources:
            try:
                narrow(source, *self._systems.at(source.source), system, path)
            except OSError as error:
                raise trouble("set the permissions of", task.target, error) from error

    def _contents(self, task: CombineTask) -> Iterator[bytes]:
        if self._readers == 1:
            yield from map(self._content, task.sources)
            return
        with ThreadPoolExecutor(self._readers, thread_name_prefix="combine-read") as pool:
            yield from pool.map(self._content, task.sources)

    def _content(self, task: CopyTask) -> bytes:
        if self._slots is None:
            return self._content_at_once(task)
        with self._slots.taken(1, lambda: False):
            return self._content_at_once(task)

    def _content_at_once(self, task: CopyTask) -> bytes:
        if (refused := self._systems.why_not_read(task.source)) is not None:
            raise SourceLost(task, str(refused))
        source: ReadableSystem
        source, path = self._systems.at(task.source)
        running = Running(task, self._terms.limit(task.size), monotonic())
        content, problem = read_listed(task, Metered(source, running, self._bucket), path)
        if problem:
            raise SourceLost(task, problem)
        return content


def why_other_rows(task: CombineTask, written: bytes, digest: str) -> str:
    """Return why the rows of the written file are other ones than those that were read, which have the digest `digest`;
    empty where they are the same."""
    try:
        read_digest = digest_of_rows(task.layout, [written])
    except Unfit as unfit:
        return str(unfit)
    return "" if read_digest == digest else "a file made of them has other rows: a value has no place in its type there"


def digest_at(target: FilesAtTarget, group: tuple[RowLayout, tuple[str, ...]]) -> str:
    """Return the digest of the rows in a group of files; empty where a file is not there, or has no rows that are
    understood."""

    def contents() -> Iterator[bytes]:
        for path in group[1]:
            content = target.read(path)
            if content is None:
                raise Unfit(f"{path} is not there")
            yield content

    try:
        return digest_of_rows(group[0], contents())
    except Unfit:
        return ""
