"""Both sides as a replica has them: copies are counted, failures of storage are noted, and nothing is begun any more
once it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from calque.engine.sides.copy_progress import Copying
from calque.engine.sides.storage_failures import Troubles
from calque.errors import Unavailable
from calque.ports import Copied, CopyTask, Storage

if TYPE_CHECKING:
    pass

P = TypeVar("P")
R = TypeVar("R")


def attended(storage: Storage, copying: Copying, troubles: Troubles, stopping: threading.Event) -> Storage:
    """`storage`; `copy` reports to `copying`, and raises `Unavailable` soon after `stopping` is set. `troubles` gets
    what is `Unavailable` before that."""
    return cast(Storage, _Attended(storage, copying, troubles, stopping))


def ending(port: P, stopping: threading.Event) -> P:
    """`port`; what is called after `stopping` was set is not begun, and raises `Unavailable`."""
    return cast(P, _Ending(port, stopping))


def ends() -> Unavailable:
    return Unavailable("Not all was done", "calque ends", "It goes on where it was when it runs again")


class _Attended:
    def __init__(self, storage: Storage, copying: Copying, troubles: Troubles, stopping: threading.Event) -> None:
        self._storage, self._copying, self._troubles, self._stopping = storage, copying, troubles, stopping

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

            return self._noted("copy", lambda: self._storage.copy(tasks, done))

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._storage, method)
        return (lambda *args: self._noted(method, lambda: found(*args))) if callable(found) else found

    def _noted(self, method: str, call: Callable[[], R]) -> R:
        try:
            result = call()
        except Unavailable as error:
            if not self._stopping.is_set():
                self._troubles.note(method, error)
            raise
        self._troubles.note(method, None)
        return result


class _Ending:
    def __init__(self, port: object, stopping: threading.Event) -> None:
        self._port, self._stopping = port, stopping

    def __getattr__(self, method: str) -> Any:
        if self._stopping.is_set():
            raise ends()
        return getattr(self._port, method)
