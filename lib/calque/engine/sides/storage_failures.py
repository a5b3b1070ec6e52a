"""The failures that a target's storage has now, in any thread's calls. They are shown to operators before a caller
gives up."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from calque.errors import CalqueError

LASTING_SECONDS = 90.0
"""Seconds after which a failure counts no more if the call was not tried again: what needed it may be gone."""


class StorageFailures:
    """The newest failure of each kind of call, until a call of that kind succeeds, or a copy does. Safe from several
    threads."""

    def __init__(self, elapsed_ns: Callable[[], int]) -> None:
        self._elapsed_ns = elapsed_ns
        self._lock = Lock()
        self._failures: dict[str, tuple[int, str]] = {}

    def note(self, call: str, error: CalqueError | None) -> None:
        """Note how a call ended: with `error`, or well (None). A `copy` that ends well clears all failures."""
        if error is None and not self._failures:
            return
        with self._lock:
            if error is not None:
                self._failures[call] = self._elapsed_ns(), str(error)
            elif call == "copy":
                self._failures.clear()
            else:
                self._failures.pop(call, None)

    def newest(self) -> str | None:
        with self._lock:
            failed_ns, text = max(self._failures.values(), default=(0, None))
        return text if self._elapsed_ns() - failed_ns < LASTING_SECONDS * 1e9 else None
