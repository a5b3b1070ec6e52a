"""Compares one object at the source with the same object at the target, once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from calque.core.compare import (
    DATABASE,
    FUNCTION,
    TABLE,
    ComparedCounts,
    Difference,
    DifferenceKind,
    TableSide,
    called,
    compare_contents,
    compare_database,
    compare_function,
    compare_table,
    file_pairs,
    foreign,
    places_of,
)
from calque.core.iceberg import is_iceberg
from calque.core.image import is_ours
from calque.engine.apply.facet_sources import compare_facets
from calque.engine.files.delta_versions import VersionLost, live_files
from calque.engine.files.referenced_files import compare_files_of, expected_function, missing_resources
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import TableIsTooBusy, read_exact
from calque.engine.target.observe import ShownTable, read_files
from calque.engine.verify.iceberg import compare_lakes
from calque.engine.verify.outcomes import TOO_FAST, NotYetComparable, ObjectComparison, Outcome, TargetSnapshot, behind
from calque.engine.verify.report import SkippedObject, VerifiedObject
from calque.engine.verify.touching_events import TouchingEvents
from calque.errors import Refused, Unavailable
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.ledger import StateRow, TableState, shown_event
from calque.model.names import OURS, EventId, Span, TableName
from calque.ports import Storage

Compare = tuple[ComparedCounts, list[Difference], tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class ObjectComparer:
    """Compares single objects; safe from several threads."""

    source: SourceSide
    side: TargetSide
    data: str
    touches: TouchingEvents = field(init=False)

    def look(self) -> TargetSnapshot:
        """The position first: a table that left the window later has events after it."""
        epoch = self.side.ledger.last_epoch()
        rows = self.side.ledger.tables()
        return TargetSnapshot(epoch, rows, self.source.log.current())

    def attempt(self, thing: VerifiedObject, look: TargetSnapshot) -> Outcome:
        try:
            return self.compare(thing, look)
        except TableIsTooBusy:
            return SkippedObject(thing.name, TableState.LIVE.value, look.position, TOO_FAST)
        except (Refused, Unavailable) as error:
            self.source.log.current()
            self.side.catalog.database(OURS)
            return SkippedObject(thing.name, TableState.LIVE.value, look.position, str(error))

    def compare(self, thing: VerifiedObject, look: TargetSnapshot) -> Outcome:
        row, position = look.row(thing), look.position
        if row is not None and row.state is not TableState.LIVE:
            return self.out(thing, row)
        if position is None:
            shows = shown_event(row) if row is not None else None
            return NotYetComparable(
                SkippedObject(thing.name, TableState.UNKNOWN.value, shows, "the target has no epoch yet")
            )
        start = min(position, look.head)
        if event := self.touches.first(thing, Span(start, look.head)):
            return behind(thing, position, event)
        counts, differences, places = self.both_sides(thing, row, look.head)
        end = max(self.source.log.current(), start)
        if event := self.touches.first(thing, Span(start, end)):
            return behind(thing, position, event)
        return ObjectComparison(Span(start, end), counts, tuple(differences), places)

    def both_sides(self, thing: VerifiedObject, row: StateRow | None, head: EventId) -> Compare:
        match thing.kind:
            case "table":
                return self.table(thing.name, head)
            case "function":
                return *self.function(thing.name, row), ()
            case _:
                return *self.database(thing.name, head), ()

    def table(self, name: TableName, head: EventId) -> Compare:
        files = self.data != "none" and self.side.policy.data != "none"
        exact = read_exact(self.source, name, files)
        here = TableSide(exact.table, exact.partitions, exact.listings)
        there = self.at_target(name, files and exact.table is not None)
        here, there = self.with_live_files(here, self.source.storage), self.with_live_files(there, self.side.storage)
        counts, differences = compare_table(name, here, there, self.side.imaging, max(head, exact.exact_at))
        ours = there.table is not None and is_ours(there.table.parameters, self.side.policy.source)
        if ours and exact.table is not None and not is_view(exact.table):
            differences += compare_facets(self.source.catalog, self.side, exact.name, here, there)
        if files and ours and exact.table is not None and there.table is not None and is_iceberg(exact.table):
            stores = (self.source.storage, self.side.storage)
            more, found = compare_lakes(*stores, name, exact.table, there.table, checksums=self.data == "checksum")
            counts, differences = counts + more, differences + found
        if files and ours and exact.table is not None and there.table is not None:
            things: list[tuple[str, Table | Partition]] = [("", there.table), *there.partitions.items()]
            differences += compare_files_of(self.source.storage, self.side, name, things)
        if self.data == "checksum" and files and ours:
            pairs = file_pairs(here, there)
            sums = self.source.storage.checksums([pair.source for pair in pairs])
            target_sums = self.side.storage.checksums([pair.target for pair in pairs])
            differences += compare_contents(name, pairs, sums, target_sums)
        copied = ours and self.side.policy.data != "none"
        return counts, differences, tuple(places_of(there)) if copied else ()

    def with_live_files(self, seen: TableSide, storage: Storage) -> TableSide:
        """The same, with the files of a Delta table's version. A log that can't be read is left as its commit."""
        listings = dict(seen.listings)
        for partition, listing in listings.items():
            with suppress(VersionLost):
                listings[partition] = live_files(storage, listing)
        return replace(seen, listings=listings)

    def at_target(self, name: TableName, files: bool) -> TableSide:
        """The whole table; files of what is ours."""
        at = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(at)
        if table is None:
            return TableSide()
        shown = ShownTable(table)
        if is_partitioned(table):
            shown.partitions.update(self.side.catalog.partitions(at, self.side.catalog.partition_names(at)))
        if files and is_ours(table.parameters, self.side.policy.source):
            read_files(self.side, {name: shown})
        return TableSide(shown.table, shown.partitions, shown.listings)

    def database(self, name: TableName, head: EventId) -> tuple[ComparedCounts, list[Difference]]:
        """One that exists at the target and is not ours is used as it is; one of ours that the source lacks stays as
        long as something is in it."""
        if self.came_back(name.database):
            return ComparedCounts(), []
        found = self.source.catalog.database(name.database)
        at = self.side.admission.name_at_target(name).database
        there = self.side.catalog.database(at)
        if there is None:
            if found is None:
                return ComparedCounts(), []
            return ComparedCounts(databases=1), [
                Difference(name, "", DifferenceKind.MISSING, DATABASE, str(name), None, DATABASE)
            ]
        if not is_ours(there.parameters, self.side.policy.source):
            return ComparedCounts(), []
        if found is not None:
            return ComparedCounts(databases=1), compare_database(name, found, there, self.side.imaging, head)
        kept = self.side.policy.drops == "keep" or self.side.catalog.tables(at) or self.side.catalog.functions(at)
        return ComparedCounts(), [] if kept else [
            Difference(name, "", DifferenceKind.EXTRA, DATABASE, None, at, DATABASE)
        ]

    def came_back(self, database: str) -> bool:
        if not self.side.home.names:
            return False
        found = self.source.catalog.database(database)
        return found is not None and self.side.home.has(found.parameters)

    def function(self, name: TableName, row: StateRow | None) -> tuple[ComparedCounts, list[Difference]]:
        """Functions carry no marks: the ledger says which are ours."""
        found = self.source.catalog.function(name)
        if row is None and found is not None and self.came_back(name.database):
            return ComparedCounts(), []
        at = self.side.admission.name_at_target(name)
        there = self.side.catalog.function(at)
        if found is None:
            kept = row is None or there is None or self.side.policy.drops == "keep"
            return ComparedCounts(), [] if kept else [
                Difference(name, "", DifferenceKind.EXTRA, FUNCTION, None, str(at), FUNCTION)
            ]
        if there is None:
            return ComparedCounts(), [Difference(name, "", DifferenceKind.MISSING, FUNCTION, str(name), None, FUNCTION)]
        if row is None:
            return ComparedCounts(), [foreign_function(name, at)]
        expected = expected_function(self.source.storage, self.side, found)
        lost = [
            Difference(name, "", DifferenceKind.FILES, f"function: missing: {url}", None, None, FUNCTION)
            for url in missing_resources(self.side, there)
        ]
        return ComparedCounts(), compare_function(name, expected, there, self.side.imaging) + lost

    def out(self, thing: VerifiedObject, row: StateRow) -> Outcome:
        """Of an object that the ledger does not call live."""
        aside = SkippedObject(thing.name, row.state.value, shown_event(row), row.reason)
        if row.state is not TableState.QUARANTINED:
            return NotYetComparable(aside)
        return ObjectComparison(None, differences=self.foreign_namesake(thing), aside=aside)

    def foreign_namesake(self, thing: VerifiedObject) -> tuple[Difference, ...]:
        at = self.side.admission.name_at_target(thing.name)
        if thing.kind == FUNCTION:
            both = self.side.catalog.function(at) and self.source.catalog.function(thing.name)
            return (foreign_function(thing.name, at),) if both else ()
        there = self.side.catalog.table(at) if thing.kind == TABLE else None
        if there is None or is_ours(there.parameters, self.side.policy.source):
            return ()
        found = self.source.catalog.table(thing.name)
        return (foreign(thing.name, TABLE, called(found), called(there)),) if found is not None else ()

    def location(self, name: TableName, partition: str) -> str | None:
        """Where the object of ours at the target has its data now."""
        at = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(at)
        if table is None or is_view(table) or not is_ours(table.parameters, self.side.policy.source):
            return None
        if not partition:
            return location_of(table)
        found = self.side.catalog.partitions(at, [partition]).get(partition)
        return location_of(found) if found is not None else None


def foreign_function(name: TableName, at: TableName) -> Difference:
    return foreign(name, FUNCTION, f"function {name}", f"function {at}")
