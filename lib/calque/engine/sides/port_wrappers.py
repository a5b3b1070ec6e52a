"""Both sides as a replica has them: copies are counted, failures of storage are noted, and nothing is begun any more
once it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from calque.engine.sides.copy_progress import CopyProgress
from calque.engine.sides.storage_failures import StorageFailures
from calque.errors import Unavailable
from calque.ports import CopiedFile, CopyTask, Storage
from calque.ports.forwarding import ForwardingStorage

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Ending:
    """Begins no call after `stopping` was set: raises `Unavailable` then."""

    stopping: threading.Event

    def __call__(self, _method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if self.stopping.is_set():
            raise ends()
        return call(*arguments, **named)


def ends() -> Unavailable:
    return Unavailable("Not all was done", "calque ends", "It goes on where it was when it runs again")


class AttendedStorage(ForwardingStorage):
    """`storage`; `copy` reports to `copying`, and raises `Unavailable` soon after `stopping` is set. `troubles` gets
    what is `Unavailable` before that."""

    def __init__(
        self, storage: Storage, copying: CopyProgress, troubles: StorageFailures, stopping: threading.Event
    ) -> None:
        super().__init__(storage, FailureRecorder(troubles, stopping))
        self._copying, self._stopping = copying, stopping

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        with self._copying.of(tasks) as report:

            def done(copied: CopiedFile) -> None:
                report(copied)
                if progress is not None:
                    progress(copied)
                if self._stopping.is_set():
                    raise Unavailable(
                        f"{len(tasks)} files were not all copied",
                        "calque ends",
                        "It goes on where it was when it runs again",
                    )

            return super().copy(tasks, done)


@dataclass(frozen=True, slots=True)
class FailureRecorder:
    """Has `troubles` know how each call ended, but for what `stopping` ended."""

    troubles: StorageFailures
    stopping: threading.Event

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            result = call(*arguments, **named)
        except Unavailable as error:
            if not self.stopping.is_set():
                self.troubles.note(method, error)
            raise
        self.troubles.note(method, None)
        return result
