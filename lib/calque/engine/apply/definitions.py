"""The definitions of the source by version: from events' messages, or from an exact read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from calque.core.events import decode
from calque.core.formats.pointers import relocated
from calque.core.states.moves import Move, places
from calque.engine.sides.journal_reads import AT_ONCE
from calque.engine.source.exact_read import ExactTable
from calque.model.hive import Partition, Table, location_of
from calque.model.journal import Event
from calque.model.names import EventId
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    GroupPlan,
    HiddenBuild,
    Operation,
    Part,
    PrepareFlipSweep,
    Rebuild,
    RenamePartition,
    Version,
)
from calque.ports import Journal

TABLE = -1
Needs = dict[EventId, set[int]]
"""Numbers of definitions (`DefinitionKey`) by event."""


class EventImages:
    """The after-images of the events that a plan writes, each decoded once.

    Messages are fetched as they come to be used, at most about `most` bytes of them at once. A message is let go of as
    soon as the definitions that the plan needs of it are decoded, and a definition behind the last hop that needs it. A
    plan of few or light messages fetches them in one call, ahead of its first hop.
    """

    def __init__(self, journal: Journal, plan: GroupPlan, most: int = AT_ONCE, moves: Sequence[Move] = ()) -> None:
        self.journal, self.most, self.moves = journal, most, moves
        """Partitions lie where the `moves` up to the hop in hand left them."""
        self.hop_events = [*(hop.to_event for hop in plan.hops), inf]
        self.hop = 0
        uses = [*(gathered(needs_of(hop.operation)) for hop in plan.hops), gathered(facet_needs(plan))]
        self.last_uses = last_of_each(uses)
        self.needs = united(uses)
        self.ahead = sorted(self.needs.keys() - {0})
        """Events that were not fetched yet, ascending."""
        self.events: dict[EventId, Event] = {}
        """Events that were fetched and not decoded yet."""
        self.tables: dict[EventId, Table] = {}
        self.partitions: dict[EventId, dict[int, Partition]] = {}
        if self.ahead:
            self.fetch(self.ahead[0])

    def table(self, version: Version) -> Table:
        if version.event_id not in self.tables:
            self.decode(self.event(version.event_id), TABLE)
        return self.tables[version.event_id]

    def partition(self, version: Version) -> Partition:
        if version.index not in self.partitions.get(version.event_id, ()):
            self.decode(self.event(version.event_id), version.index)
        partition = self.partitions[version.event_id][version.index]
        location = location_of(partition)
        if not location or (place := self.place(version.event_id, location)) == location:
            return partition
        return relocated(partition, place)

    def place(self, event_id: EventId, location: str) -> str:
        if not self.moves:
            return location
        upto = self.hop_events[self.hop]
        return places(event_id, location, (move for move in self.moves if move.event_id <= upto))[-1]

    def passed(self, hop: int) -> None:
        self.hop = hop + 1
        for event_id, numbers in self.last_uses[hop].items():
            if TABLE in numbers:
                self.tables.pop(event_id, None)
            partitions = self.partitions.get(event_id, {})
            for number in numbers:
                partitions.pop(number, None)

    def event(self, event_id: EventId) -> Event:
        if event_id not in self.events:
            self.fetch(event_id)
        return self.events.pop(event_id)

    def fetch(self, event_id: EventId) -> None:
        """Fetch the event, and those that are used after it; what was fetched before is decoded first."""
        for event in self.events.values():
            self.decode(event)
        self.events.clear()
        index = bisect_left(self.ahead, event_id)
        is_ahead = index < len(self.ahead) and self.ahead[index] == event_id
        self.events |= self.journal.events(self.ahead[index:] if is_ahead else [event_id], self.most)
        if is_ahead:
            del self.ahead[index : index + len(self.events)]

    def decode(self, event: Event, also: int | None = None) -> None:
        """Decode what the plan needs of the event, and its definition number `also`."""
        numbers = self.needs.get(event.event_id, set()) | ({also} if also is not None else set())
        if TABLE in numbers:
            self.tables[event.event_id] = decode.table_after(event)
        if numbers - {TABLE}:
            decoded = decode.partitions_after(event)
            self.partitions[event.event_id] = {number: decoded[number] for number in numbers if number != TABLE}


@dataclass(slots=True)
class ReadImages:
    """The definitions of the objects of an exact read; versions are numbered as by `core.states.exact_state`."""

    exact: ExactTable
    ordered: list[Partition] = field(default_factory=list)

    def table(self, _version: Version) -> Table:
        assert self.exact.table is not None
        return self.exact.table

    def place(self, _event_id: EventId, location: str) -> str:
        return location

    def passed(self, hop: int) -> None:
        """Do nothing: the objects of a read are held as long as the read itself."""

    def partition(self, version: Version) -> Partition:
        if not self.ordered:
            self.ordered = list(self.exact.partitions.values())
        return self.ordered[version.index]


class DefinitionKey(NamedTuple):
    """One definition of an event's message: the `number`-th of its partitions, or `TABLE`."""

    event_id: EventId
    number: int


def needs_of(operation: Operation) -> Iterator[DefinitionKey]:
    """Yield the definitions that an operation writes."""
    match operation:
        case CreateTable(_, head) | AlterTable(_, _, head):
            yield DefinitionKey(head.version.event_id, TABLE)
        case HiddenBuild(_, head, partitions):
            yield DefinitionKey(head.version.event_id, TABLE)
            yield from needs_of_parts(partitions)
        case AddPartitions(_, partitions) | AlterPartitions(_, partitions):
            yield from needs_of_parts(partitions)
        case RenamePartition(_, _, _, part):
            yield from needs_of_parts([("", part)])
        case PrepareFlipSweep(_, added, changed, _, header):
            if header is not None:
                yield from needs_of(header)
            yield from needs_of_parts([*added, *changed])
        case Rebuild(_, _, head, touched) | CommitTable(_, _, head, touched):
            yield DefinitionKey(head.version.event_id, TABLE)
            yield from needs_of_parts(touched)
        case _:
            pass


def needs_of_parts(partitions: Iterable[tuple[str, Part | None]]) -> Iterator[DefinitionKey]:
    for _, part in partitions:
        if part is not None:
            yield DefinitionKey(part.version.event_id, part.version.index)
            if part.columns:
                yield DefinitionKey(part.columns, TABLE)


def facet_needs(plan: GroupPlan) -> Iterator[DefinitionKey]:
    """Yield the definitions whose statistics are written after the last hop."""
    for _, versions in plan.facets:
        for name, version in versions:
            yield DefinitionKey(version.event_id, version.index if name else TABLE)


def events_of(plan: GroupPlan) -> set[EventId]:
    """Return the events whose images the plan writes."""
    hops = (need for hop in plan.hops for need in needs_of(hop.operation))
    return {event_id for event_id, _ in (*hops, *facet_needs(plan))}


def gathered(keys: Iterable[DefinitionKey]) -> Needs:
    needs: Needs = {}
    for event_id, number in keys:
        needs.setdefault(event_id, set()).add(number)
    return needs


def united(uses: Iterable[Needs]) -> Needs:
    needs: Needs = {}
    for use in uses:
        for event_id, numbers in use.items():
            needs.setdefault(event_id, set()).update(numbers)
    return needs


def last_of_each(uses: Sequence[Needs]) -> list[Needs]:
    """Return of each use, in order, the definitions that no later use needs."""
    later: Needs = {}
    last_uses: list[Needs] = []
    for use in reversed(uses):
        last_uses.append({event_id: numbers - later.get(event_id, set()) for event_id, numbers in use.items()})
        for event_id, numbers in use.items():
            later.setdefault(event_id, set()).update(numbers)
    return last_uses[::-1]
