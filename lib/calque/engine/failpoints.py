"""Every persistent or visible effect passes a named failpoint, before and after.

`guard(port, name)` wraps an adapter: each of its effects calls `hit("name.method.before")`, `…after`. `guard_records`
does the same for the records of the state folder. What a hit does is set from outside: nothing (always, in production),
kill the process, or raise. `CALQUE_FAILPOINT=NAME[@N]` in the environment kills the process at the N-th hit (default
the first), as `kill -9` would; with `lost` in place of `after` the process lives, and is told that the effect, which
happened, is `Unavailable`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from calque.errors import Unavailable

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
    "ledger": ("publish", "put_tables", "remove_tables", "put_records", "remove_records", "forget"),
    "storage": ("copy", "publish", "make_directories", "date", "write", "remove"),
}
"""The methods of each port that leave something behind."""
RECORDS = {
    "journal": ("put",),
    "identity": ("put",),
    "windows": ("put",),
    "requests": ("put", "remove"),
    "paused": ("put", "remove"),
    "paused-tables": ("put", "remove"),
    "reload": ("put",),
    "sweep": ("put",),
    "processes": ("put", "remove"),
    "running": ("put", "remove"),
    "capturing": ("put", "remove"),
}
"""The records of the state folder, by the first word of their names, and what is done to them. Those of gaps are a
port's. Wake counters and locks decide nothing: a start wakes whoever it starts, and locks end with their process."""
CHANGES = ("put", "remove")

AFTER, LOST = "after", "lost"
EFFECT_NAMES = tuple(
    f"{port}.{method}"
    for port, methods in (EFFECTS | {f"record.{word}": done for word, done in RECORDS.items()}).items()
    for method in methods
)
NAMES = tuple(f"{effect}.{side}" for effect in EFFECT_NAMES for side in ("before", AFTER))
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
    effect, _, side = name.rpartition(".")
    return Lose(effect, int(count or 1)) if side == LOST else Kill(name, int(count or 1))


def is_known(name: str) -> bool:
    """Whether `CALQUE_FAILPOINT` may name it, without a count."""
    effect, _, side = name.rpartition(".")
    return name in NAMES or (side == LOST and effect in EFFECT_NAMES)


class Countdown:
    """True at the `count`-th time that it is asked of `name`, once. Safe from several threads."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.left, self.lock = name, count, threading.Lock()

    def is_over(self, name: str) -> bool:
        if name != self.name:
            return False
        with self.lock:
            self.left -= 1
            return self.left == 0


class Kill:
    """Kills the process at the `count`-th hit of `name`."""

    def __init__(self, name: str, count: int) -> None:
        self.countdown = Countdown(name, count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            os.kill(os.getpid(), signal.SIGKILL)


class Lose:
    """The caller of `effect` does not hear that it happened, the `count`-th time."""

    def __init__(self, effect: str, count: int) -> None:
        self.countdown = Countdown(f"{effect}.{AFTER}", count)

    def __call__(self, name: str) -> None:
        if self.countdown.is_over(name):
            raise Unavailable(f"The answer at {name} is lost", "CALQUE_FAILPOINT wants it", "It is tried again")


def guard(port: P, name: str, hit: Hit) -> P:
    """`port` with its effects passing failpoints; everything else untouched."""
    return cast(P, _Guarded(port, EFFECTS[name], lambda _: name, hit)) if hit is not passing else port


def guard_records(store: P, hit: Hit) -> P:
    """The same of the state folder's records: the first argument of an effect is the record's name."""

    def named(record: str) -> str:
        return f"record.{record.partition('/')[0]}"

    return cast(P, _Guarded(store, CHANGES, named, hit)) if hit is not passing else store


class _Guarded:
    def __init__(self, port: object, effects: Iterable[str], named: Callable[[Any], str], hit: Hit) -> None:
        self._port, self._effects, self._named, self._hit = port, frozenset(effects), named, hit

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if method not in self._effects:
            return found

        def passed(*args: Any, **named: Any) -> Any:
            name = self._named(args[0] if args else "")
            self._hit(f"{name}.{method}.before")
            result = found(*args, **named)
            self._hit(f"{name}.{method}.{AFTER}")
            return result

        return passed
