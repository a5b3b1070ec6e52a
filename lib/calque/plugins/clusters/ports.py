"""The port of an engine, which processes statements at a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EngineRows:
    """The result of a statement at an engine. No columns mean that it gives nothing back. `rows` come as the engine
    sends them, with Python's values; reading them raises what `Engine.run` raises."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[object, ...]]


class Engine(Protocol):
    """A session at an engine. Settings that one statement makes hold for the next."""

    def run(self, statement: str, database: str | None, parameters: Sequence[str | int] = ()) -> EngineRows:
        """Run the statement and return its result. `parameters` are the values of its `?`. `database` is that of names
        without one; None leaves the session's. A statement that writes has written when this returns. Raises `Refused`
        with the engine's own words, and `Unavailable` where it does not answer."""

    def close(self) -> None:
        """End the session."""
