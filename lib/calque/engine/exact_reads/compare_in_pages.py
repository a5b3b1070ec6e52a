"""The comparison of a large table that the target has already: it finds what differs, a page at a time, and only that
is read exactly.

The names of all partitions of both sides are held at a time, the definitions of a page, and those of the partitions
that differ. The bracket spans all pages: a partition that was equal is so at its end unless an event touched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from calque.core.events.kinds import obstacle
from calque.core.formats.iceberg import is_iceberg
from calque.core.images.table_layout import committed_format
from calque.core.plan.limits import batches
from calque.core.states.exact_state import has_incarnation, same_incarnation
from calque.engine.exact_reads.build_in_batches import Tell, is_of_all
from calque.engine.exact_reads.bulk_compare import TableComparison, directory
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
    """The partitions that differ, read exact at one event id, and the names of all partitions of the source's table."""

    exact: ExactTable
    partitions: Sequence[str]


def compare_pages(
    source: SourceSide, side: TargetSide, name: TableName, batch: int, tell: Tell, target_reader: Executor
) -> PagedComparison | None:
    """Compare the table with what the target has of it, `batch` partitions at a time, and read what differs;
    `target_reader` reads the target meanwhile. Return None where the target's table can't go on as this one, or an
    operator asked to adopt it or to look into its files. Raises as `read_exact`."""
    if side.read_requests.adopts(name) or side.read_requests.looks(name):
        return None
    for _ in range(ROUNDS):
        low = source.log.current()
        source_table, target_table = source.catalog.table(name), observe(side, [name], {}, with_files=False)[name]
        if source_table is None or target_table is None or not can_go_on(source_table, target_table.table, side):
            return None
        comparer = PageComparer(
            side, name, TableComparison(source, side, low, SharedFileCheck(source.storage, side), target_reader), tell
        )
        names, differing = comparer.differing(batch)
        high = source.log.current()
        touched = touching(source, name, Span(low, high)) if high > low else []
        if any(map(is_of_all, touched)):
            continue
        differing |= {part for entry in touched for part in (*entry.keys.partitions, *entry.keys.others)}
        try:
            return PagedComparison(read_some(source, name, differing, high, side.admission.copies(name)), names)
        except AllPartitionsChanged:
            continue
    raise TableIsTooBusy(f"{name} changes faster than it can be compared: {ROUNDS} rounds did not settle it")


def can_go_on(source_table: Table, target_table: Table, side: TargetSide) -> bool:
    is_comparable = (
        is_partitioned(source_table)
        and is_partitioned(target_table)
        and not is_iceberg(source_table)
        and not committed_format(target_table)
        and not obstacle(source_table)
    )
    return is_comparable and same_incarnation(target_table, source_table, side.imaging)


@dataclass(frozen=True, slots=True)
class PageComparer:
    """One pass of the comparison over the partitions of a table."""

    side: TargetSide
    name: TableName
    comparison: TableComparison
    tell: Tell

    def differing(self, batch: int) -> tuple[Sequence[str], set[str]]:
        """Return the names of the source's partitions, and of those that differ, at one side alone included. `batch`
        partitions are compared at a time. Raises `Unavailable` when calque ends."""
        target_name, source = self.side.admission.name_at_target(self.name), self.comparison.source
        target_read = self.comparison.target_reader.submit(self.side.catalog.partition_names, target_name)
        names = source.catalog.partition_names(self.name)
        target_names = {*target_read.result()}
        differing = target_names.symmetric_difference(names)
        common_names = [name for name in names if name in target_names]
        for number, page in enumerate(batches(common_names, batch)):
            if self.side.stopping.is_set():
                raise Unavailable(
                    f"{self.name} is not compared yet", "calque ends", "It begins anew when it runs again"
                )
            differing |= self.of_page(target_name, page)
            self.tell(self.name, min((number + 1) * batch, len(common_names)), len(names))
        return names, differing

    def of_page(self, target_name: TableName, page: Sequence[str]) -> set[str]:
        comparison = self.comparison
        target_read = comparison.target_reader.submit(self.side.catalog.partitions, target_name, page)
        source_partitions, target_partitions = (
            comparison.source.catalog.partitions(self.name, page),
            target_read.result(),
        )
        same_names = [
            name
            for name in page
            if name in source_partitions
            and name in target_partitions
            and event_of(target_partitions[name].parameters)
            and has_incarnation(target_partitions[name])
            and comparison.same_partition(self.name, source_partitions[name], target_partitions[name])
        ]
        if not self.side.admission.copies(self.name):
            return {*page} - {*same_names}
        places = {name: (directory(source_partitions[name]), directory(target_partitions[name])) for name in same_names}
        same_places = comparison.same_places(places.values())
        return {*page} - {name for name, locations in places.items() if locations in same_places}
