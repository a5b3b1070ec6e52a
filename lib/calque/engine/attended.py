"""A target's storage whose copies are counted, and end when calque does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from calque.engine.progress import Copying
from calque.errors import Unavailable
from calque.ports import Copied, CopyTask, Storage


def attended(storage: Storage, copying: Copying, stopping: threading.Event) -> Storage:
    """`storage`; `copy` reports to `copying`, and raises `Unavailable` soon after `stopping` is set."""
    return cast(Storage, _Attended(storage, copying, stopping))


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
