"""Every persistent or visible effect passes a named failpoint, before and after.

`guard(port, name)` wraps an adapter: each of its effects calls `hit("name.method.before")` and `…after`. What a hit
does is set from outside: nothing (always, in production), kill the process, or raise. `CALQUE_FAILPOINT=NAME[@N]` in
the environment kills the process at the N-th hit (default the first), as `kill -9` would.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

EFFECTS = {
    "catalog": (
        "create_database",
        "alter_database",
        "drop_database",
        "create_table",
        "alter_table",
        "drop_table",
        "add_partitions",
        "alter_partitions",
        "rename_partition",
        "drop_partitions",
        "commit_table",
        "add_constraints",
        "drop_constraint",
        "put_statistics",
        "drop_statistics",
        "create_function",
        "drop_function",
    ),
    "lease": ("take", "renew", "forget"),
    "journal": ("append", "forget", "restart"),
    "gaps": ("add", "settle"),
    "evidence": ("append", "forget", "restart"),
    "pins": ("keep", "release"),
    "scans": ("append", "forget", "remember"),
    "ledger": ("publish", "put_tables", "remove_tables", "forget"),
    "storage": ("copy", "publish", "make_directories", "date", "write", "remove"),
}
"""The methods of each port that leave something behind."""

NAMES = tuple(
    f"{port}.{method}.{side}" for port, methods in EFFECTS.items() for method in methods for side in ("before", "after")
)
Hit = Callable[[str], None]
P = TypeVar("P")


def passing(name: str) -> None:
    """The hit that does nothing."""


def from_environment() -> Hit:
    """The hit that `CALQUE_FAILPOINT` asks for."""
    wanted = os.environ.get("CALQUE_FAILPOINT", "")
    if not wanted:
        return passing
    name, _, count = wanted.partition("@")
    return Kill(name, int(count or 1))


class Kill:
    """Kills the process at the `count`-th hit of `name`."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.left, self.lock = name, count, threading.Lock()

    def __call__(self, name: str) -> None:
        if name != self.name:
            return
        with self.lock:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def guard(port: P, name: str, hit: Hit) -> P:
    """`port` with its effects passing failpoints; everything else untouched."""
    return cast(P, _Guarded(port, name, hit)) if hit is not passing else port


class _Guarded:
    def __init__(self, port: object, name: str, hit: Hit) -> None:
        self._port, self._name, self._hit = port, name, hit
        self._effects = frozenset(EFFECTS[name])

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if method not in self._effects:
            return found

        def passed(*args: Any, **named: Any) -> Any:
            self._hit(f"{self._name}.{method}.before")
            result = found(*args, **named)
            self._hit(f"{self._name}.{method}.after")
            return result

        return passed
