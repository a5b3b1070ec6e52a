"""The comparison of one object at the source with the same object at the target, once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.pointers import Pointer, notes
from calque.core.images.compare import (
    DATABASE,
    FUNCTION,
    TABLE,
    ComparedCounts,
    Difference,
    DifferenceKind,
    FilePair,
    TableSide,
    called,
    compare_contents,
    compare_database,
    compare_files,
    compare_function,
    compare_table,
    file_pairs,
    foreign,
    places_of,
    some,
)
from calque.core.images.image import is_ours
from calque.engine.apply.facet_sources import compare_facets
from calque.engine.files.content_proof import is_combined_copy, other_rows
from calque.engine.files.copies import ContentLost
from calque.engine.files.delta_versions import VersionLost, live_files
from calque.engine.files.permissions import keeps_permissions
from calque.engine.files.referenced_files import compare_files_of, expected_function, missing_resources
from calque.engine.files.symlink_manifests import are_followed, named_files
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import TableIsTooBusy, read_exact
from calque.engine.target.observe import ShownTable, read_files
from calque.engine.verify.acid_rows import with_equal_rows
from calque.engine.verify.comparison import Comparison
from calque.engine.verify.iceberg import compare_lakes
from calque.engine.verify.outcomes import TOO_FAST, NotYetComparable, ObjectComparison, Outcome, TargetSnapshot, behind
from calque.engine.verify.permissions import compare_database_directory, compare_permissions
from calque.engine.verify.report import SkippedObject, VerifiedObject
from calque.engine.verify.row_files import compare_row_files
from calque.engine.verify.touching_events import TouchingEvents
from calque.errors import Refused, Unavailable
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.ledger import StateRow, TableState, shown_event
from calque.model.names import OURS, EventId, Span, TableName
from calque.ports import Storage

LOG = logging.getLogger(__name__)
Compare = tuple[ComparedCounts, list[Difference], tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class ObjectComparer:
    """A comparer of single objects of one target. `data` says how files are compared: `none`, `size` or `checksum`.
    Safe from several threads."""

    source: SourceSide
    side: TargetSide
    data: str
    others: Sequence[Comparison] = ()
    """The comparisons of plugins that are made of each database and table, too."""
    touching_events: TouchingEvents = field(init=False)
    notes: dict[TableName, tuple[Pointer, ...]] = field(default_factory=dict)
    """The places that parameters name and calque does not follow, by table that was compared."""

    def look(self) -> TargetSnapshot:
        """Return what the ledger says and the source's newest event. The position is read first, because a table that
        left the windows later has events after it."""
        epoch = self.side.ledger.last_epoch()
        rows = self.side.ledger.tables()
        return TargetSnapshot(epoch, rows, self.source.log.current())

    def attempt(self, verified_object: VerifiedObject, snapshot: TargetSnapshot) -> Outcome:
        try:
            with work_on(f"comparison of {verified_object.kind} {verified_object.name}", TableIsTooBusy):
                return self.compare(verified_object, snapshot)
        except ObjectDefect as error:
            LOG.exception("%s", error, exc_info=traceback_of(error))
            return SkippedObject(verified_object.name, TableState.LIVE.value, snapshot.position, str(error))
        except TableIsTooBusy:
            return SkippedObject(verified_object.name, TableState.LIVE.value, snapshot.position, TOO_FAST)
        except (Refused, Unavailable) as error:
            self.source.log.current()
            self.side.catalog.database(OURS)
            return SkippedObject(verified_object.name, TableState.LIVE.value, snapshot.position, str(error))

    def compare(self, verified_object: VerifiedObject, snapshot: TargetSnapshot) -> Outcome:
        row, position = snapshot.row(verified_object), snapshot.position
        if row is not None and row.state is not TableState.LIVE:
            return self.out(verified_object, row)
        if position is None:
            shows = shown_event(row) if row is not None else None
            return NotYetComparable(
                SkippedObject(verified_object.name, TableState.UNKNOWN.value, shows, "the target has no epoch yet")
            )
        start = min(position, snapshot.head)
        if event := self.touching_events.first(verified_object, Span(start, snapshot.head)):
            return behind(verified_object, position, event)
        counts, differences, places = self.both_sides(verified_object, row, snapshot.head)
        end = max(self.source.log.current(), start)
        if event := self.touching_events.first(verified_object, Span(start, end)):
            return behind(verified_object, position, event)
        return ObjectComparison(Span(start, end), counts, tuple(differences), places)

    def both_sides(self, verified_object: VerifiedObject, row: StateRow | None, head: EventId) -> Compare:
        match verified_object.kind:
            case "table":
                return self.table(verified_object.name, head)
            case "function":
                return *self.function(verified_object.name, row), ()
            case _:
                return *self.database(verified_object.name, head), ()

    def table(self, name: TableName, head: EventId) -> Compare:
        with_files = self.data != "none" and self.side.admission.copies(name)
        exact_read = read_exact(self.source, name, with_files)
        self.notes[name] = tuple(notes(exact_read.table)) if exact_read.table is not None else ()
        source = TableSide(exact_read.table, exact_read.partitions, exact_read.listings)
        target = self.at_target(name, with_files and exact_read.table is not None)
        source = self.with_live_files(source, self.source.storage)
        target = self.with_live_files(target, self.side.storage)
        if with_files:
            target = with_equal_rows(self.source, self.side, name, source, target)
        target, row_differences = compare_row_files(self.source, self.side, name, source, target, self.data)
        counts, differences = compare_table(name, source, target, self.side.imaging, max(head, exact_read.exact_at))
        differences += row_differences
        is_own = target.table is not None and is_ours(target.table.parameters, self.side.policy.source)
        if is_own and source.table is not None and not is_view(source.table):
            differences += compare_facets(self.source.catalog, self.side, exact_read.name, source, target)
        if with_files and is_own and source.table is not None and target.table is not None and is_iceberg(source.table):
            stores = (self.source.storage, self.side.storage)
            iceberg_counts, iceberg_differences = compare_lakes(
                *stores, name, source.table, target.table, checksums=self.data == "checksum"
            )
            counts, differences = counts + iceberg_counts, differences + iceberg_differences
        if with_files and is_own and source.table is not None and target.table is not None:
            located_objects: list[tuple[str, Table | Partition]] = [("", target.table), *target.partitions.items()]
            differences += compare_files_of(self.source.storage, self.side, name, located_objects)
        if is_own and source.table is not None:
            at_target = self.side.admission.name_at_target(name)
            differences += [found for one in self.others for found in one.differences(name, at_target, TABLE)]
        if with_files and is_own and keeps_permissions(self.side):
            differences += compare_permissions(self.side, name, source, target)
        if with_files and is_own:
            named_counts, named_differences = self.compare_named_files(name, source, target)
            counts, differences = counts + named_counts, differences + named_differences
        if self.data == "checksum" and with_files and is_own:
            pairs = file_pairs(source, target)
            source_sums = self.source.storage.checksums([pair.source for pair in pairs])
            target_sums = self.side.storage.checksums([pair.target for pair in pairs])
            differences += compare_contents(name, pairs, source_sums, target_sums)
            differences += self.compare_rows(name, source, target)
        is_copied = is_own and self.side.admission.copies(name)
        return counts, differences, tuple(places_of(target)) if is_copied else ()

    def compare_named_files(
        self, name: TableName, source: TableSide, target: TableSide
    ) -> tuple[ComparedCounts, list[Difference]]:
        """Return how many files the manifests of symlink tables name, and which of them differ, where both sides have
        the same manifests."""
        counts, differences = ComparedCounts(), list[Difference]()
        stores = (self.source.storage, self.side.storage)
        for partition, target_listing in sorted(target.listings.items()):
            source_listing = source.listings.get(partition)
            if source_listing is None or not are_followed(source_listing, target_listing):
                continue
            try:
                named = named_files(*stores, source_listing, target_listing)
            except ContentLost as lost:
                raise TableIsTooBusy(str(lost)) from lost
            source_files, target_files = named.listings()
            counts += ComparedCounts(files=len(source_files.files), bytes=source_files.size)
            differences += compare_files(name, partition, source_files, target_files)
            if self.data == "checksum":
                pairs = [FilePair(partition, path, path, copy) for path, copy in named.comparable().items()]
                source_sums = stores[0].checksums([pair.source for pair in pairs])
                target_sums = stores[1].checksums([pair.target for pair in pairs])
                differences += compare_contents(name, pairs, source_sums, target_sums)
        return counts, differences

    def compare_rows(self, name: TableName, source: TableSide, target: TableSide) -> list[Difference]:
        """Return the differences in rows of partitions whose files were combined."""
        differences = []
        for partition, target_listing in sorted(target.listings.items()):
            source_listing = source.listings.get(partition)
            if source_listing is None or not is_combined_copy(source_listing, target_listing):
                continue
            if are_followed(source_listing, target_listing):
                continue
            paths = other_rows(self.source.storage, self.side.storage, source_listing, target_listing)
            if paths:
                what = f"other rows: {some(sorted(paths))}"
                differences.append(Difference(name, partition, DifferenceKind.CONTENT, what, None, None))
        return differences

    def with_live_files(self, table_side: TableSide, storage: Storage) -> TableSide:
        """Return the side of the table with the files of a Delta table's version. A log that can't be read is left as
        its commit."""
        listings = dict(table_side.listings)
        for partition, listing in listings.items():
            with suppress(VersionLost):
                listings[partition] = live_files(storage, listing)
        return replace(table_side, listings=listings)

    def at_target(self, name: TableName, with_files: bool) -> TableSide:
        """Return what the target has of the table: all partitions, and the files of a table that is ours."""
        target_name = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(target_name)
        if table is None:
            return TableSide()
        shown = ShownTable(table)
        if is_partitioned(table):
            shown.partitions.update(
                self.side.catalog.partitions(target_name, self.side.catalog.partition_names(target_name))
            )
        if with_files and is_ours(table.parameters, self.side.policy.source):
            read_files(self.side, {name: shown}, with_foreign=True)
        return TableSide(shown.table, shown.partitions, shown.listings)

    def database(self, name: TableName, head: EventId) -> tuple[ComparedCounts, list[Difference]]:
        """Compare a database. One that exists at the target and is not ours is used as it is, so it has no differences.
        One of ours that the source lacks is a difference only when it is empty, because it stays as long as there are
        tables or functions in it, and with `drops = "keep"`."""
        if self.came_back(name.database):
            return ComparedCounts(), []
        source_database = self.source.catalog.database(name.database)
        target_name = self.side.admission.name_at_target(name).database
        target_database = self.side.catalog.database(target_name)
        if target_database is None:
            if source_database is None:
                return ComparedCounts(), []
            return ComparedCounts(databases=1), [
                Difference(name, "", DifferenceKind.MISSING, DATABASE, str(name), None, DATABASE)
            ]
        if not is_ours(target_database.parameters, self.side.policy.source):
            return ComparedCounts(), []
        if source_database is not None:
            differences = compare_database(name, source_database, target_database, self.side.imaging, head)
            at_target = TableName(target_name)
            differences += [found for one in self.others for found in one.differences(name, at_target, DATABASE)]
            differences += compare_database_directory(self.side, name, source_database, target_database)
            return ComparedCounts(databases=1), differences
        stays = (
            self.side.policy.drops == "keep"
            or self.side.catalog.tables(target_name)
            or self.side.catalog.functions(target_name)
        )
        return ComparedCounts(), [] if stays else [
            Difference(name, "", DifferenceKind.EXTRA, DATABASE, None, target_name, DATABASE)
        ]

    def came_back(self, database: str) -> bool:
        if not self.side.origins.names:
            return False
        source_database = self.source.catalog.database(database)
        return source_database is not None and self.side.origins.has(source_database.parameters)

    def function(self, name: TableName, row: StateRow | None) -> tuple[ComparedCounts, list[Difference]]:
        """Compare a function. Functions carry no marks: the ledger says which are ours."""
        source_function = self.source.catalog.function(name)
        if row is None and source_function is not None and self.came_back(name.database):
            return ComparedCounts(), []
        target_name = self.side.admission.name_at_target(name)
        target_function = self.side.catalog.function(target_name)
        if source_function is None:
            stays = row is None or target_function is None or self.side.policy.drops == "keep"
            return ComparedCounts(), [] if stays else [
                Difference(name, "", DifferenceKind.EXTRA, FUNCTION, None, str(target_name), FUNCTION)
            ]
        if target_function is None:
            return ComparedCounts(), [Difference(name, "", DifferenceKind.MISSING, FUNCTION, str(name), None, FUNCTION)]
        if row is None:
            return ComparedCounts(), [foreign_function(name, target_name)]
        expected = expected_function(self.source.storage, self.side, name, source_function)
        missing_files = [
            Difference(name, "", DifferenceKind.FILES, f"function: missing: {url}", None, None, FUNCTION)
            for url in missing_resources(self.side, name, target_function)
        ]
        return ComparedCounts(), compare_function(name, expected, target_function, self.side.imaging) + missing_files

    def out(self, verified_object: VerifiedObject, row: StateRow) -> Outcome:
        """Return the outcome for an object that the ledger does not call live: not yet comparable, or, for a
        quarantined one, skipped, with a difference where an object that is not ours stands under its name."""
        skipped = SkippedObject(verified_object.name, row.state.value, shown_event(row), row.reason)
        if row.state is not TableState.QUARANTINED:
            return NotYetComparable(skipped)
        return ObjectComparison(None, differences=self.foreign_namesake(verified_object), skipped=skipped)

    def foreign_namesake(self, verified_object: VerifiedObject) -> tuple[Difference, ...]:
        target_name = self.side.admission.name_at_target(verified_object.name)
        if verified_object.kind == FUNCTION:
            both_exist = self.side.catalog.function(target_name) and self.source.catalog.function(verified_object.name)
            return (foreign_function(verified_object.name, target_name),) if both_exist else ()
        target_table = self.side.catalog.table(target_name) if verified_object.kind == TABLE else None
        if target_table is None or is_ours(target_table.parameters, self.side.policy.source):
            return ()
        source_table = self.source.catalog.table(verified_object.name)
        return (
            (foreign(verified_object.name, TABLE, called(source_table), called(target_table)),)
            if source_table is not None
            else ()
        )

    def location(self, name: TableName, partition: str) -> str | None:
        """Return the directory where the table of ours at the target, or its partition, has its data now; None where
        there is none."""
        target_name = self.side.admission.name_at_target(name)
        table = self.side.catalog.table(target_name)
        if table is None or is_view(table) or not is_ours(table.parameters, self.side.policy.source):
            return None
        if not partition:
            return location_of(table)
        target_partition = self.side.catalog.partitions(target_name, [partition]).get(partition)
        return location_of(target_partition) if target_partition is not None else None


def foreign_function(name: TableName, target_name: TableName) -> Difference:
    return foreign(name, FUNCTION, f"function {name}", f"function {target_name}")
