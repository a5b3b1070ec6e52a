"""The lease on a target: the process that may write there, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Writer:
    """One process that writes, or wants to write, to one target. `id` is of this writer alone; `state` names its state
    folder. `proof` names a lock that the process holds: a process that holds the lock of that name knows that all
    others who held it are dead. It is empty where there is no such proof."""

    id: str
    host: str
    pid: int
    state: str
    proof: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True)
class Generation:
    """One reign of a writer over a target. `renewals` counts up as long as the writer lives. Another process may take
    the next `number` when nothing changed here for `seconds`, or at once where `released` is set. `ledger` is the id of
    the writer's ledger, which was at `epoch` by the last renewal; empty where that is not known."""

    number: int
    writer: Writer
    seconds: float
    renewals: int = 0
    released: bool = False
    ledger: str = ""
    epoch: int = 0
