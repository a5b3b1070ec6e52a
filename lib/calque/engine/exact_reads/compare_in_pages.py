"""A large table that the target has already: what differs, found a page at a time, and only that read exactly.

Held at a time are the names of all partitions of both sides, the definitions of a page, and those of the partitions
that differ. The bracket spans all pages: a partition that was equal is so at its end unless an event touched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from calque.core.iceberg import is_iceberg
from calque.core.kinds import obstacle
from calque.core.land import has_incarnation, same_incarnation
from calque.core.limits import batches
from calque.engine.exact_reads.build_in_batches import Tell, is_of_all
from calque.engine.exact_reads.bulk_compare import TableLikeness, directory
from calque.engine.files.referenced_files import SharedFileCheck
from calque.engine.sides.journal_reads import touching
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import ROUNDS, AllPartitionsChanged, ExactTable, TableIsTooBusy, read_some
from calque.engine.target.observe import event_of, observe
from calque.errors import Unavailable
from calque.model.hive import Table, is_partitioned
from calque.model.names import Span, TableName


@dataclass(frozen=True, slots=True)
class PagedComparison:
    """What differs, exact at one event id, and the names of all partitions of the source's table."""

    exact: ExactTable
    partitions: Sequence[str]


def compare_pages(
    source: SourceSide, side: TargetSide, name: TableName, batch: int, tell: Tell, beside: Executor
) -> PagedComparison | None:
    """Compare the table with what the target has of it, `batch` partitions at a time; `beside` reads the target
    meanwhile. None where the target's table can't go on as this one, or is asked to be looked into. Raises as
    `read_exact`."""
    if side.read_requests.adopts(name) or side.read_requests.looks(name):
        return None
    for _ in range(ROUNDS):
        low = source.log.current()
        here, there = source.catalog.table(name), observe(side, [name], {}, with_files=False)[name]
        if here is None or there is None or not can_go_on(here, there.table, side):
            return None
        sifting = PageComparer(
            side, name, TableLikeness(source, side, low, SharedFileCheck(source.storage, side), beside), tell
        )
        names, differing = sifting.differing(batch)
        high = source.log.current()
        touched = touching(source, name, Span(low, high)) if high > low else []
        if any(map(is_of_all, touched)):
            continue
        differing |= {part for entry in touched for part in (*entry.keys.partitions, *entry.keys.others)}
        try:
            return PagedComparison(read_some(source, name, differing, high, side.policy.data != "none"), names)
        except AllPartitionsChanged:
            continue
    raise TableIsTooBusy(f"{name} changes faster than it can be compared: {ROUNDS} rounds did not settle it")


def can_go_on(here: Table, there: Table, side: TargetSide) -> bool:
    tables = is_partitioned(here) and is_partitioned(there) and not is_iceberg(here) and not obstacle(here)
    return tables and same_incarnation(there, here, side.imaging)


@dataclass(frozen=True, slots=True)
class PageComparer:
    """One pass over the table."""

    side: TargetSide
    name: TableName
    comparing: TableLikeness
    tell: Tell

    def differing(self, batch: int) -> tuple[Sequence[str], set[str]]:
        """The source's partitions, and those that differ, at one side alone included."""
        at, source = self.side.admission.name_at_target(self.name), self.comparing.source
        waiting = self.comparing.beside.submit(self.side.catalog.partition_names, at)
        names = source.catalog.partition_names(self.name)
        there = {*waiting.result()}
        differing = there.symmetric_difference(names)
        both = [name for name in names if name in there]
        for number, page in enumerate(batches(both, batch)):
            if self.side.stopping.is_set():
                raise Unavailable(
                    f"{self.name} is not compared yet", "calque ends", "It begins anew when it runs again"
                )
            differing |= self.of_page(at, page)
            self.tell(self.name, min((number + 1) * batch, len(both)), len(names))
        return names, differing

    def of_page(self, at: TableName, page: Sequence[str]) -> set[str]:
        comparing = self.comparing
        waiting = comparing.beside.submit(self.side.catalog.partitions, at, page)
        here, there = comparing.source.catalog.partitions(self.name, page), waiting.result()
        same = [
            name
            for name in page
            if name in here
            and name in there
            and event_of(there[name].parameters)
            and has_incarnation(there[name])
            and comparing.same_partition(self.name, here[name], there[name])
        ]
        if self.side.policy.data == "none":
            return {*page} - {*same}
        places = {name: (directory(here[name]), directory(there[name])) for name in same}
        found = comparing.same_places(places.values())
        return {*page} - {name for name, both in places.items() if both in found}
