"""Both sides as a replica has them: copies are counted, failures of storage are noted, and nothing is begun any more
once it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from calque.engine.sides.copy_progress import Copying
from calque.engine.sides.storage_failures import Troubles
from calque.errors import Unavailable
from calque.ports import Copied, CopyTask, Storage
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

    def __init__(self, storage: Storage, copying: Copying, troubles: Troubles, stopping: threading.Event) -> None:
        super().__init__(storage, Noting(troubles, stopping))
        self._copying, self._stopping = copying, stopping

    def copy(self, tasks: Sequence[CopyTask], progress: Callable[[Copied], None] | None = None) -> Sequence[Copied]:
        with self._copying.of(tasks) as report:

            def done(copied: Copied) -> None:
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
class Noting:
    """Has `troubles` know how each call ended, but for what `stopping` ended."""

    troubles: Troubles
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
