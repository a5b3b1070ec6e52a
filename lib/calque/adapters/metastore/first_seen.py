"""The metastore that a process saw first at its addresses. A fail-over list, or a restart, may lead to another one."""

from __future__ import annotations

import threading

from calque.errors import AccessRefused


class FirstSeen:
    """The id of the metastore that answered first, shared by all clients of one metastore in a process. It travels with
    them into other processes."""

    def __init__(self, id: str = "") -> None:  # noqa: A002
        self.id = id
        """The id; empty until a metastore has answered that has one."""
        self._lock = threading.Lock()

    def meet(self, metastore_id: str, address: str) -> None:
        """Note that a metastore with this id (empty: with none) answers at `address`. Raises `AccessRefused` where
        another id was seen before: no table is at fault then, and nothing may be concluded from what that server
        says."""
        with self._lock:
            self.id = self.id or metastore_id
            if metastore_id == self.id:
                return
        raise AccessRefused(
            f"Another metastore answers at {address} than before",
            f"It was {self.id}, and {metastore_id or 'one without an id'} answers",
            "See that all addresses lead to one metastore; where it was replaced, start calque again",
        )

    def __repr__(self) -> str:
        return f"FirstSeen({self.id!r})"

    def __getstate__(self) -> tuple[str]:
        return (self.id,)

    def __setstate__(self, state: tuple[str]) -> None:
        (self.id,), self._lock = state, threading.Lock()
