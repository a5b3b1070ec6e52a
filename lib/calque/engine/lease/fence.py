"""Fences, which decide whether a process may begin calls at a target, and the wrappers by which a storage asks them.
The client of the target's metastore asks by itself.

`run` has a lease; commands that write beside it have a deputy. The role that a process has in the state folder is a
fence, too: each of its effects passes a failpoint, and asks there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from calque.core.records.lease import renewed_after
from calque.engine.failpoints import EFFECTS, Hit
from calque.engine.lease.keeper import elapsed
from calque.errors import WrittenElsewhere
from calque.ports import Leases, Storage
from calque.ports.forwarding import ForwardingStorage

P = ParamSpec("P")
R = TypeVar("R")

AT_A_TIME = 100
"""The number of files that are published after one look at the lease."""
OWN_RECORDS = "record.processes."
"""Records of processes. They need no fence, because each process has its own, which no other process writes."""


class Fence(Protocol):
    """The part of a process that decides whether its calls at a target may begin."""

    def permit(self) -> None:
        """Return if a call may begin; raise if none may."""


class NoFence:
    """The fence for calls that touch no part of a replica: it permits all."""

    def permit(self) -> None:
        return


class CommandFence:
    """The fence of a command that runs beside a target's writer, or where none runs. Calls may begin as long as the
    target was last written from this state folder. If it was written from another one, what this folder knows of the
    target is out of date."""

    def __init__(
        self, leases: Leases, target: str, state: str, seconds: float, clock: Callable[[], float] = elapsed
    ) -> None:
        self.leases, self.target, self.state, self.clock = leases, target, state, clock
        self.every = renewed_after(seconds)
        self.until = float("-inf")

    def permit(self) -> None:
        """Return if a call may begin. One look at the lease holds for the time after which leases are renewed. Raises
        `WrittenElsewhere`; `Unavailable`."""
        began = self.clock()
        if began < self.until:
            return
        newest = self.leases.newest()
        if newest is not None and newest.writer.state != self.state:
            raise WrittenElsewhere(
                f"{self.target} was last written from another state folder",
                f"It was written by {newest.writer}, so what this one says of it is out of date",
                "Do it there, or start `calque run` here first",
            )
        self.until = began + self.every


class FencedStorage(ForwardingStorage):
    """`storage`, whose effects begin only if the fence permits them."""

    def __init__(self, storage: Storage, fence: Fence) -> None:
        super().__init__(storage, FencedEffects(fence))

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(renames), AT_A_TIME):
            super().publish(renames[start : start + AT_A_TIME])

    def remove(self, locations: Sequence[str]) -> None:
        for location in locations:
            super().remove([location])


@dataclass(frozen=True, slots=True)
class FencedEffects:
    """A guard of a storage's calls that asks the fence before each effect."""

    fence: Fence

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if method in EFFECTS["storage"]:
            self.fence.permit()
        return call(*arguments, **named)


@dataclass(frozen=True, slots=True)
class FencedHit:
    """A failpoint that asks the fence before each effect, and then calls `hit`."""

    fence: Fence
    hit: Hit

    def __call__(self, name: str) -> None:
        if name.endswith(".before") and not name.startswith(OWN_RECORDS):
            self.fence.permit()
        self.hit(name)
