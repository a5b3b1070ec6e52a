"""Both sides as a replica has them: copies are counted, and nothing is begun any more once it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from calque.engine.progress import Copying
from calque.errors import Unavailable
from calque.ports import Clock, Copied, CopyTask, Storage

if TYPE_CHECKING:
    from calque.engine.world import SourceSide

P = TypeVar("P")


def attended(storage: Storage, copying: Copying, stopping: threading.Event) -> Storage:
    """`storage`; `copy` reports to `copying`, and raises `Unavailable` soon after `stopping` is set."""
    return cast(Storage, _Attended(storage, copying, stopping))


def ending(port: P, stopping: threading.Event) -> P:
    """`port`; what is called after `stopping` was set is not begun, and raises `Unavailable`."""
    return cast(P, _Ending(port, stopping))


def ending_source(source: SourceSide, stopping: threading.Event) -> SourceSide:
    """The source for one replica: after `stopping` nothing is asked of it, and who waits, waits no longer."""
    return replace(
        source,
        log=ending(source.log, stopping),
        catalog=ending(source.catalog, stopping),
        storage=ending(source.storage, stopping),
        clock=_EndingClock(source.clock, stopping),
    )


def ends() -> Unavailable:
    return Unavailable("Not all was done", "calque ends", "It goes on where it was when it runs again")


class _Attended:
    def __init__(self, storage: Storage, copying: Copying, stopping: threading.Event) -> None:
        self._storage, self._copying, self._stopping = storage, copying, stopping

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

            return self._storage.copy(tasks, done)

    def __getattr__(self, method: str) -> Any:
        return getattr(self._storage, method)


class _Ending:
    def __init__(self, port: object, stopping: threading.Event) -> None:
        self._port, self._stopping = port, stopping

    def __getattr__(self, method: str) -> Any:
        if self._stopping.is_set():
            raise ends()
        return getattr(self._port, method)


@dataclass(frozen=True, slots=True)
class _EndingClock:
    clock: Clock
    stopping: threading.Event

    def now_ns(self) -> int:
        return self.clock.now_ns()

    def elapsed_ns(self) -> int:
        return self.clock.elapsed_ns()

    def sleep(self, seconds: float) -> None:
        if self.stopping.is_set():
            raise ends()
        self.clock.sleep(seconds)
