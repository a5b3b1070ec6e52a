"""Wrappers of a replica's ports: they count copies, note failures of the storage, and refuse calls once the replica is
to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from calque.core.formats.layout import join
from calque.core.small_files.combined_note import NOTE, has_combined_files, understood
from calque.engine.sides.copy_progress import CopyProgress
from calque.engine.sides.kept_permissions import KeptPermissions
from calque.engine.sides.storage_failures import StorageFailures
from calque.errors import Unavailable
from calque.model.files import Listing
from calque.model.permissions import Permissions
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask, Storage
from calque.ports.forwarding import ForwardingStorage

P = ParamSpec("P")
R = TypeVar("R")
READERS = 16
"""Notes of combined files that are read at the same time."""


@dataclass(frozen=True, slots=True)
class StopInterceptor:
    """An interceptor of calls: it makes each call until `stopping` is set, and raises `Unavailable` in place of calls
    after that."""

    stopping: threading.Event

    def __call__(self, _method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if self.stopping.is_set():
            raise ends()
        return call(*arguments, **named)


def ends() -> Unavailable:
    return Unavailable("Not all was done", "calque ends", "It goes on where it was when it runs again")


class MonitoredStorage(ForwardingStorage):
    """`storage` with the directories of one target. `copy` and `combine` report to `copying`, and raise `Unavailable`
    soon after `stopping` is set. `storage_failures` is told of calls that are `Unavailable` before that. With
    `permissions` files are copied with the source's permissions, and what can't be given of them is noted there."""

    def __init__(
        self,
        storage: Storage,
        copying: CopyProgress,
        storage_failures: StorageFailures,
        stopping: threading.Event,
        permissions: KeptPermissions | None = None,
    ) -> None:
        super().__init__(storage, FailureRecorder(storage_failures, stopping))
        self._copying, self._stopping, self._kept_permissions = copying, stopping, permissions

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """List the directories; one of combined files is listed with the files of the source that they stand for."""
        listings = dict(super().list(locations))
        combined = [each for each in listings.values() if each.combination is None and has_combined_files(each)]
        if combined:
            with ThreadPoolExecutor(min(READERS, len(combined)), thread_name_prefix="combined") as pool:
                notes = pool.map(lambda listing: self.read(join(listing.location, NOTE)), combined)
            listings |= {each.location: understood(each, note) for each, note in zip(combined, notes, strict=True)}
        return listings

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        with self._copying.of([source for task in tasks for source in task.sources]) as report:

            def done(combined: CombinedRows) -> None:
                self._note(combined.unpermitted)
                for source in combined.task.sources:
                    report(CopiedFile(source, bytes_moved=source.size))
                if progress is not None:
                    progress(combined)
                if self._stopping.is_set():
                    raise Unavailable(
                        f"Files were not all combined into {len(tasks)}",
                        "calque ends",
                        "It is done again when it runs again",
                    )

            if self._kept_permissions is None:
                return super().combine(tasks, done)
            results = super().combine([replace(task, sources=with_permissions(task.sources)) for task in tasks], done)
            return [replace(result, task=task) for task, result in zip(tasks, results, strict=True)]

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        with self._copying.of(tasks) as report:

            def done(copied: CopiedFile) -> None:
                self._note(copied.unpermitted)
                report(copied)
                if progress is not None:
                    progress(copied)
                if self._stopping.is_set():
                    raise Unavailable(
                        f"{len(tasks)} files were not all copied",
                        "calque ends",
                        "It goes on where it was when it runs again",
                    )

            if self._kept_permissions is None:
                return super().copy(tasks, done)
            results = super().copy(with_permissions(tasks), done)
            return [replace(result, task=task) for task, result in zip(tasks, results, strict=True)]

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        problems = super().set_permissions(permissions)
        for problem in problems.values():
            self._note(problem)
        return problems

    def _note(self, unpermitted: str) -> None:
        if unpermitted and self._kept_permissions is not None:
            self._kept_permissions.note(unpermitted)


def with_permissions(tasks: Sequence[CopyTask]) -> tuple[CopyTask, ...]:
    """Return the tasks as tasks that copy the source's permissions, too."""
    return tuple(replace(task, permissions=True) for task in tasks)


@dataclass(frozen=True, slots=True)
class FailureRecorder:
    """An interceptor of calls that tells `storage_failures` how each call ended, except for calls that fail because
    `stopping` is set."""

    storage_failures: StorageFailures
    stopping: threading.Event

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            result = call(*arguments, **named)
        except Unavailable as error:
            if not self.stopping.is_set():
                self.storage_failures.note(method, error)
            raise
        self.storage_failures.note(method, None)
        return result
