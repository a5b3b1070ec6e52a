"""Definitions of the source by version: from events' messages, or from an exact read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from calque.core import decode
from calque.engine.read import Exact
from calque.model.hive import Partition, Table
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
    Part,
    PrepareFlipSweep,
    Rebuild,
    RenamePartition,
    Version,
)
from calque.ports import Journal


@dataclass(slots=True)
class EventImages:
    """After-images of events, fetched together and decoded once each."""

    events: Mapping[EventId, Event]
    tables: dict[EventId, Table] = field(default_factory=dict)
    partitions: dict[EventId, tuple[Partition, ...]] = field(default_factory=dict)

    @staticmethod
    def fetch(journal: Journal, ids: Iterable[EventId]) -> EventImages:
        wanted = sorted(set(ids) - {0})
        return EventImages(journal.events(wanted) if wanted else {})

    def table(self, version: Version) -> Table:
        if version.event_id not in self.tables:
            self.tables[version.event_id] = decode.table_after(self.events[version.event_id])
        return self.tables[version.event_id]

    def partition(self, version: Version) -> Partition:
        if version.event_id not in self.partitions:
            self.partitions[version.event_id] = decode.partitions_after(self.events[version.event_id])
        return self.partitions[version.event_id][version.index]


@dataclass(slots=True)
class ReadImages:
    """The objects of an exact read; versions as `core.land` numbers them."""

    exact: Exact
    ordered: list[Partition] = field(default_factory=list)

    def table(self, _version: Version) -> Table:
        assert self.exact.table is not None
        return self.exact.table

    def partition(self, version: Version) -> Partition:
        if not self.ordered:
            self.ordered = list(self.exact.partitions.values())
        return self.ordered[version.index]


def versions_of(plan: GroupPlan) -> set[EventId]:
    """Event ids whose images the plan writes."""
    found = {version.event_id for _, versions in plan.facets for _, version in versions}
    for hop in plan.hops:
        operation = hop.operation
        match operation:
            case CreateTable(_, head) | AlterTable(_, _, head):
                found.add(head.version.event_id)
            case HiddenBuild(_, head, partitions):
                found |= {head.version.event_id, *of_parts(partitions)}
            case AddPartitions(_, partitions) | AlterPartitions(_, partitions):
                found |= of_parts(partitions)
            case RenamePartition(_, _, _, part):
                found |= of_parts([("", part)])
            case PrepareFlipSweep(_, added, changed):
                found |= of_parts(added) | of_parts(changed)
            case Rebuild(_, _, head, touched) | CommitTable(_, _, head, touched):
                found |= {head.version.event_id, *of_parts(touched)}
            case _:
                pass
    return found


def of_parts(partitions: Iterable[tuple[str, Part | None]]) -> set[EventId]:
    return {event for _, part in partitions if part is not None for event in (part.version.event_id, part.columns)}
