"""What processes statements at a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EngineRows:
    """What a statement gives back; no columns: nothing. `rows` come as the engine sends them, values as Python has
    them, and raise what `Engine.run` raises."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[object, ...]]


class Engine(Protocol):
    """One session at an engine: what a statement sets holds for the next one."""

    def run(self, statement: str, database: str | None, parameters: Sequence[str | int] = ()) -> EngineRows:
        """`parameters` are the values of its `?`. `database` is that of names without one; None leaves it as it is. A
        statement that writes has written when this returns. Raises `Refused` with the engine's own words, and
        `Unavailable` where it does not answer."""

    def close(self) -> None:
        """End the session."""
