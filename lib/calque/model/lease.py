"""Who writes at a target, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Writer:
    """One process at one target. `id` is of this writer alone; `state` names its state folder. `proof` is the lock that
    it holds: whoever holds the same one knows that all others who did are dead; empty where there is no such proof."""

    id: str
    host: str
    pid: int
    state: str
    proof: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True)
class Generation:
    """One reign over a target. `renewals` counts up as long as the writer lives; others may take the next number when
    nothing changed here for `seconds`, or at once where it is `released`. `ledger` is the id of the writer's, which was
    at `epoch` by the last renewal; empty where that is not known."""

    number: int
    writer: Writer
    seconds: float
    renewals: int = 0
    released: bool = False
    ledger: str = ""
    epoch: int = 0
