"""What a process does on a state folder: each of it in one process only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from calque.errors import Unavailable

CAPTURE = "capture"


def role_of(target: str) -> str:
    return f"target {target}"


def roles(targets: Sequence[str], *, capture: bool) -> list[str]:
    return [*([CAPTURE] if capture else []), *map(role_of, targets)]


class Roles:
    """Those that this process has in the state folder; the rest is given back at the end of `with`."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.held: dict[str, ExitStack] = {}

    def take(self, role: str) -> None:
        """Raises `Unavailable` when another process has it."""
        stack = ExitStack()
        stack.enter_context(only_one(self.state, role))
        self.held[role] = stack

    def give_back(self, role: str) -> None:
        self.held.pop(role).close()

    def __enter__(self) -> Roles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in list(self.held):
            self.give_back(role)


@contextmanager
def only_one(state: Path, role: str) -> Iterator[None]:
    path = state / "locks" / f"{role.replace(' ', '.')}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise Unavailable(
                f"Another process runs {role} on {state}",
                f"it is process {lock.read().strip() or 'unknown'}",
                "Stop it first, or give this one a state folder of its own",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
