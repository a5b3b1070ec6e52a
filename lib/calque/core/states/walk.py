"""A chain's definitions at a state, walked forward only."""

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
    """Heads and partitions at an index; begins before the first step. `counted` are definitions in the state `end` that
    hops may write instead of others, as they differ by newer statistics alone."""

    def __init__(self, chain: Chain, counted: Mapping[Version, Version] = NOTHING, end: int = -1) -> None:
        self.chain = chain
        self.counted, self.end = counted, end
        self.written: set[Version] = set()
        """Of them, those that were given out."""
        self.index = 0
        self.heads: dict[LineageId, Head] = dict(chain.heads)
        self.parts: dict[PartCell, Part | None] = dict(chain.parts)
        self.cascades: dict[LineageId, EventId] = {}
        """The newest event that gave all of a lineage's partitions the table's columns."""

    def to(self, index: int) -> None:
        """Go on to a later state."""
        while self.index < index:
            step = self.chain.steps[self.index]
            self.heads.update(step.heads)
            self.parts.update(step.parts)
            self.cascades |= dict.fromkeys(step.cascades, step.event_id)
            self.index += 1

    def at(self, lineage: LineageId, name: str) -> Part | None:
        """A partition with the columns that it has."""
        part, cascade = self.parts[lineage, name], self.cascades.get(lineage, 0)
        current_part = part if part is None or part.version.event_id > cascade else replace(part, columns=cascade)
        return None if current_part is None else self.newest(current_part)

    def head(self, lineage: LineageId) -> Head:
        """The definition of a table."""
        return self.newest(self.heads[lineage])

    def newest(self, thing: Thing) -> Thing:
        """The same with its newest statistics, if there are any by now."""
        newer = self.counted.get(thing.version)
        current_event = self.chain.steps[self.index - 1].event_id if self.index else 0
        if newer is None or (newer.event_id > current_event and self.index != self.end):
            return thing
        self.written.add(newer)
        return replace(thing, version=newer, since=max(thing.since, newer.event_id))

    def some(self, lineage: LineageId, names: Iterable[str]) -> tuple[tuple[str, Part], ...]:
        """The named partitions, in order of their names."""
        return tuple((name, part) for name in sorted(names) if (part := self.at(lineage, name)) is not None)

    def all(self, lineage: LineageId) -> tuple[tuple[str, Part], ...]:
        """All partitions of a lineage that the window created."""
        return self.some(lineage, [name for of, name in self.parts if of == lineage])
