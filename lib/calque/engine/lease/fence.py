"""Who lets calls at a target begin, and how its storage asks: its metastore's client asks by itself.

`run` has a lease; commands that write beside it have a deputy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from calque.core.lease import renewed_after
from calque.engine.failpoints import EFFECTS
from calque.engine.lease.keeper import elapsed
from calque.errors import Refused
from calque.ports import Leases, Storage

AT_A_TIME = 100
"""Files that are published on one look at the lease."""


class Fence(Protocol):
    """Whoever lets calls at a target begin."""

    def permit(self) -> None:
        """Raises where none may."""


class Unfenced:
    """For what touches no part of a replica."""

    def permit(self) -> None:
        return


class Deputy:
    """Lets calls begin beside a target's writer, or where none runs, as long as the target was last written from the
    same state folder: what another one's says of the target is out of date."""

    def __init__(
        self, leases: Leases, target: str, state: str, seconds: float, clock: Callable[[], float] = elapsed
    ) -> None:
        self.leases, self.target, self.state, self.clock = leases, target, state, clock
        self.every = renewed_after(seconds)
        self.until = float("-inf")

    def permit(self) -> None:
        """Raises `Refused`; `Unavailable`."""
        began = self.clock()
        if began < self.until:
            return
        newest = self.leases.newest()
        if newest is not None and newest.writer.state != self.state:
            raise Refused(
                f"{self.target} was last written from another state folder",
                f"by {newest.writer}, so what this one says of it is out of date",
                "Do it there, or start `calque run` here first",
            )
        self.until = began + self.every


def fenced(storage: Storage, fence: Fence) -> Storage:
    """`storage`, whose effects begin only where the fence permits it."""
    return cast(Storage, _Fenced(storage, fence))


class _Fenced:
    def __init__(self, storage: Storage, fence: Fence) -> None:
        self._storage, self._fence = storage, fence

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._storage, method)
        if method not in EFFECTS["storage"]:
            return found

        def permitted(*args: Any, **named: Any) -> Any:
            self._fence.permit()
            return found(*args, **named)

        return permitted

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(renames), AT_A_TIME):
            self._fence.permit()
            self._storage.publish(renames[start : start + AT_A_TIME])

    def remove(self, locations: Sequence[str]) -> None:
        for location in locations:
            self._fence.permit()
            self._storage.remove([location])
