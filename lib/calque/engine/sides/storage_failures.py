"""What a target's storage fails in now, whoever asked: it is told before anybody gives up."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from calque.errors import CalqueError

LASTING_SECONDS = 90.0
"""What was not tried again for so long is no trouble any more: what needed it may be gone."""


class StorageFailures:
    """The newest failure of each call, until the same call succeeds, or files come through. Any thread notes and
    asks."""

    def __init__(self, elapsed_ns: Callable[[], int]) -> None:
        self._elapsed_ns = elapsed_ns
        self._lock = Lock()
        self._failures: dict[str, tuple[int, str]] = {}

    def note(self, call: str, error: CalqueError | None) -> None:
        """How the call ended last."""
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
