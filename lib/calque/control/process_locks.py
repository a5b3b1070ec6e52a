"""What a process does on a state folder: each of it in one process only."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TextIO

from calque.errors import Unavailable
from calque.model.state_places import SourcePlaces, TargetPlaces

LOOKED_AT_SECONDS = 0.2
"""Who asks for the holder has the lock for a moment."""


def roles(sources: Iterable[SourcePlaces], targets: Iterable[str]) -> list[str]:
    """Those of a process that captures these sources and replicates to these targets."""
    return [*(source.role for source in sources), *(TargetPlaces(target).role for target in targets)]


BOOT = Path("/proc/sys/kernel/random/boot_id")


class Roles:
    """Those that this process has in the state folder; the rest is given back at the end of `with`."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.held_roles: dict[str, ExitStack] = {}
        self.locks: dict[str, str] = {}

    def take(self, role: str) -> None:
        """Raises `Unavailable` when another process has it."""
        stack = ExitStack()
        self.locks[role] = stack.enter_context(only_one(self.state, role))
        self.held_roles[role] = stack

    def proof(self, role: str) -> str:
        """What names the lock of a role that is held: all others that ever had one of this name are dead, as the
        kernel gives it to one. Empty where the role is not held, or the system does not tell its kernels apart."""
        return self.locks.get(role, "") if role in self.held_roles else ""

    def give_back(self, role: str) -> None:
        self.held_roles.pop(role).close()

    def __enter__(self) -> Roles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in list(self.held_roles):
            self.give_back(role)


def holder(state: Path, role: str) -> int | None:
    """The process of this host that has the role; None where none has it."""
    try:
        with lock_of(state, role).open("r") as lock:
            if taken(lock, fcntl.LOCK_SH):
                return None
            return int(lock.read().strip() or 0)
    except (FileNotFoundError, ValueError):
        return None


@contextmanager
def only_one(state: Path, role: str) -> Iterator[str]:
    """Gives the name of the lock: the kernel's, since it started, and the file's."""
    path = lock_of(state, role)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        until = time.monotonic() + LOOKED_AT_SECONDS
        while not taken(lock, fcntl.LOCK_EX):
            if time.monotonic() < until:
                time.sleep(0.02)
                continue
            lock.seek(0)
            raise Unavailable(
                f"Another process runs {role} on {state}",
                f"it is process {lock.read().strip() or 'unknown'}",
                "Stop it first, or give this one a state folder of its own",
            )
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        file = os.fstat(lock.fileno())
        yield f"{BOOT.read_text().strip()}:{file.st_dev}:{file.st_ino}" if BOOT.exists() else ""


def lock_of(state: Path, role: str) -> Path:
    return state / "locks" / f"{role.replace(' ', '.')}.lock"


def taken(lock: TextIO, mode: int) -> bool:
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
