"""Definitions of a chain's states, walked forward only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from calque.core.states.fold import Chain, LineageId, PartCell
from calque.model.names import EventId
from calque.model.plan import Head, Part, Version

Thing = TypeVar("Thing", Head, Part)
NOTHING: Mapping[Version, Version] = MappingProxyType({})


class StateWalk:
    """The tables and partitions at one state of a chain. A walk begins before the first step.

    `counted` has, by version, newer versions that differ by statistics alone: hops up to the state `end` may write them
    in place of the older ones.
    """

    def __init__(self, chain: Chain, counted: Mapping[Version, Version] = NOTHING, end: int = -1) -> None:
        self.chain = chain
        self.counted, self.end = counted, end
        self.written: set[Version] = set()
        """The newer versions of `counted` that were given out."""
        self.index = 0
        self.heads: dict[LineageId, Head] = dict(chain.heads)
        self.parts: dict[PartCell, Part | None] = dict(chain.parts)
        self.cascades: dict[LineageId, EventId] = {}
        """The newest event that gave all of a lineage's partitions the table's columns."""

    def to(self, index: int) -> None:
        """Go on to the state at `index`, which is not before the present one."""
        while self.index < index:
            step = self.chain.steps[self.index]
            self.heads.update(step.heads)
            self.parts.update(step.parts)
            self.cascades |= dict.fromkeys(step.cascades, step.event_id)
            self.index += 1

    def at(self, lineage: LineageId, name: str) -> Part | None:
        """Return a partition, with the event whose CASCADE gave it the columns that it has; None where it is not
        there."""
        part, cascade = self.parts[lineage, name], self.cascades.get(lineage, 0)
        current_part = part if part is None or part.version.event_id > cascade else replace(part, columns=cascade)
        return None if current_part is None else self.newest(current_part)

    def head(self, lineage: LineageId) -> Head:
        """Return the definition of a table."""
        return self.newest(self.heads[lineage])

    def newest(self, thing: Thing) -> Thing:
        """Return `thing` with its newest statistics, if the present state has any newer than its own."""
        newer = self.counted.get(thing.version)
        current_event = self.chain.steps[self.index - 1].event_id if self.index else 0
        if newer is None or (newer.event_id > current_event and self.index != self.end):
            return thing
        self.written.add(newer)
        return replace(thing, version=newer, since=max(thing.since, newer.event_id))

    def some(self, lineage: LineageId, names: Iterable[str]) -> tuple[tuple[str, Part], ...]:
        """Return the named partitions that are there, in order of their names."""
        return tuple((name, part) for name in sorted(names) if (part := self.at(lineage, name)) is not None)

    def all(self, lineage: LineageId) -> tuple[tuple[str, Part], ...]:
        """Return all partitions of a lineage that the window created."""
        return self.some(lineage, [name for of, name in self.parts if of == lineage])
