"""The comparison of a target and its source in bulk: it finds the tables that are still what they were, before anything
is read exactly.

A batch of tables is bracketed by event ids as an exact read is: a table that is equal at both sides, and that no event
of the bracket touches, is exact at its end, without a call at the target. The comparison is that of
`core.states.exact_state`, so an exact read would leave as it is what is found equal here. Both sides are read at the
same time, the partitions of a table by one call at each, directories many at once; a page of partitions is held at a
time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import chain, groupby

from calque.core.events.effects import FREES_PARTITION_NAMES
from calque.core.events.kinds import obstacle
from calque.core.formats.attached import Thing
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.symlinks import is_symlinks
from calque.core.images.compare import TableSide, compare_locations, same_place
from calque.core.images.image import SOURCE, Marks, is_ours, source_mark
from calque.core.images.table_layout import committed_format
from calque.core.plan.limits import batches
from calque.core.states.exact_state import is_ahead, same_incarnation, unchanged
from calque.core.states.fold import names_in
from calque.engine.apply.facet_sources import compare_facets
from calque.engine.files.permissions import contents_of, keeps_permissions, permissions_of
from calque.engine.files.referenced_files import SharedFileCheck
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.stable_listings import list_what_can_be
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of, projects_partitions
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.ports import CatalogReader, Journal

BATCH = 100
"""Tables of one bracket. Many brackets are compared side by side, and a short one meets few events."""
PAGE = 1000
"""Partitions, and directories, that are held at a time; entries of the journal that are read at once."""
NO_MARKS = Marks(0, "")

DroppedObject = tuple[TableName, str]
"""An object by the table's name at the source and the partition's (`""`: the table itself)."""


@dataclass(frozen=True, slots=True)
class BulkComparison:
    """A comparison of tables as of event `event_id`: those in `equal` are what they are at the source, and `others`
    must be read. `loss_counts` says of tables among these how many objects the target has that the source lost without
    an event that says so: a read would drop them by difference. `objects` is the number of tables and partitions of
    ours at the target."""

    event_id: EventId
    equal: tuple[TableName, ...]
    others: tuple[TableName, ...]
    loss_counts: Mapping[TableName, int] = field(default_factory=dict)
    objects: int = 0
    gone: frozenset[TableName] = frozenset()
    """Tables in `loss_counts` of which the source has nothing."""


class JournaledDrops:
    """The objects that the journal says were dropped, or renamed away, after event `after`. Safe from several
    threads."""

    def __init__(self, journal: Journal, after: EventId) -> None:
        self.journal, self.upto = journal, after
        self.objects: set[DroppedObject] = set()
        self.lock = threading.Lock()

    def read_to(self, upto: EventId) -> None:
        """Take in the events up to `upto`, which the journal has."""
        with self.lock:
            self.upto = max(self.upto, (self.journal.oldest() or upto + 1) - 1)
            while self.upto < upto:
                span = Span(self.upto, min(self.upto + PAGE, upto))
                for entry in self.journal.entries(span):
                    self.objects |= dropped_by(entry)
                self.upto = span.upto

    def says(self, name: TableName, partition: str = "") -> bool:
        """Tell whether an event dropped the object, or the whole table that it was in."""
        return (name, partition) in self.objects or (name, "") in self.objects


def dropped_by(entry: Entry) -> set[DroppedObject]:
    keys = entry.keys
    if keys.table is None:
        return set()
    if keys.kind in FREES_PARTITION_NAMES:
        return {(keys.table, partition) for partition in (*keys.partitions, *keys.others)}
    if keys.kind is EventKind.DROP_TABLE:
        return {(keys.table, "")}
    return {(keys.other, "")} if keys.kind is EventKind.RENAME_TABLE and keys.other is not None else set()


@dataclass(slots=True)
class _TablePair:
    """One table at both sides. `extra_partitions` are the target's partitions that the source does not have."""

    name: TableName
    source_table: Table | None
    target_table: Table | None
    equal: bool = False
    partitions: int = 0
    extra_partitions: list[str] = field(default_factory=list)


def compare_in_bulk(
    source: SourceSide, side: TargetSide, names: Sequence[TableName], dropped: JournaledDrops, target_reader: Executor
) -> BulkComparison:
    """Compare at most `BATCH` tables, and return which are equal at one event; `target_reader` reads the target
    meanwhile. Writes nothing. Raises `Unavailable`, and `Refused` where one of the tables can't be read."""
    low = source.log.current()
    target_names = [side.admission.name_at_target(name) for name in names]
    target_read = target_reader.submit(headers, side.catalog, target_names)
    source_tables, target_tables = headers(source.catalog, names), target_read.result()
    comparison = TableComparison(source, side, low, SharedFileCheck(source.storage, side), target_reader)
    pairs = [
        _TablePair(name, source_tables.get(name), target_tables.get(target_name))
        for name, target_name in zip(names, target_names, strict=True)
    ]
    for pair in pairs:
        pair.equal = comparison.same_header(pair)
        if pair.target_table is not None and is_partitioned(pair.target_table):
            comparison.partitions(pair)
        elif pair.equal and pair.source_table is not None and pair.target_table is not None:
            comparison.files(pair, [(pair.source_table, pair.target_table)])
    comparison.list_files()
    high = source.log.current()
    if high > low:
        wait_for_journal(source, high)
        touched = names_in(source.journal.entries(Span(low, high)))
        for pair in pairs:
            pair.equal = pair.equal and pair.name not in touched
    dropped.read_to(high)
    return surveyed(side, high, pairs, dropped)


def surveyed(
    side: TargetSide, event_id: EventId, pairs: Sequence[_TablePair], dropped: JournaledDrops
) -> BulkComparison:
    own_pairs = [
        pair
        for pair in pairs
        if pair.target_table is not None and is_ours(pair.target_table.parameters, side.policy.source)
    ]
    loss_counts = {pair.name: count for pair in own_pairs if (count := lost_of(side, pair, dropped))}
    return BulkComparison(
        event_id,
        tuple(pair.name for pair in pairs if pair.equal),
        tuple(pair.name for pair in pairs if not pair.equal),
        loss_counts,
        sum(1 + pair.partitions for pair in own_pairs),
        frozenset(pair.name for pair in own_pairs if pair.name in loss_counts and pair.source_table is None),
    )


def lost_of(side: TargetSide, pair: _TablePair, dropped: JournaledDrops) -> int:
    """Return how many objects of the table are at the target alone without an event that dropped them."""
    if pair.source_table is not None:
        return sum(not dropped.says(pair.name, partition) for partition in pair.extra_partitions)
    if side.policy.drops == "keep" or dropped.says(pair.name):
        return 0
    return 1 + pair.partitions


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A comparison of tables that collects directories and lists them page by page. `low` is an event id that no mark
    may pass: a mark beyond it is of a log that went back. `places` are directories at the source and the target that
    are still to be listed."""

    source: SourceSide
    side: TargetSide
    low: EventId
    shared_files: SharedFileCheck
    target_reader: Executor
    places: list[tuple[_TablePair, str, str]] = field(default_factory=list)

    def same_header(self, pair: _TablePair) -> bool:
        """Tell whether the tables' definitions are equal. Iceberg tables, and tables that are Delta tables at the
        target, never are, because their files are told by metadata of their own. Nor are projected tables, because the
        metastore has to be asked whether they have partitions."""
        source_table, target_table = pair.source_table, pair.target_table
        if (
            source_table is None
            or target_table is None
            or obstacle(source_table)
            or projects_partitions(source_table)
            or is_iceberg(source_table)
            or is_iceberg(target_table)
            or committed_format(target_table)
        ):
            return False
        if (target_table.parameters or {}).get(SOURCE) != source_mark(self.side.policy.source, pair.name):
            return False
        return same_incarnation(target_table, source_table, self.side.imaging) and self.same(
            pair.name, source_table, target_table, self.side.imaging.table(source_table, NO_MARKS, None)
        )

    def same_partition(self, name: TableName, source_partition: Partition, target_partition: Partition) -> bool:
        image = self.side.imaging.partition(source_partition, name, NO_MARKS, None)
        return self.same(name, source_partition, target_partition, image)

    def same(self, name: TableName, source_object: Thing, target_object: Thing, image: Thing) -> bool:
        """Tell whether an object has the same definition and an allowed place at both sides. An object of symlink
        manifests never has, because nothing here tells that its manifests lead to the target's files."""
        if is_symlinks(source_object):
            return False
        if is_ahead(target_object.parameters, self.low) or not unchanged(
            self.shared_files.as_found(name, target_object), image
        ):
            return False
        if self.side.admission.copies(name):
            return not directory(source_object) or not same_place(source_object, target_object)
        return not compare_locations(name, "", source_object, target_object)

    def partitions(self, pair: _TablePair) -> None:
        """Count the target's partitions, and compare them where the table's header is equal."""
        if pair.equal and self.few_partitions(pair):
            return
        target_name = self.side.admission.name_at_target(pair.name)
        target_read = self.target_reader.submit(self.side.catalog.partition_names, target_name)
        source_names = self.source.catalog.partition_names(pair.name) if pair.source_table is not None else ()
        target_names = target_read.result()
        pair.partitions, pair.extra_partitions = len(target_names), sorted({*target_names} - {*source_names})
        pair.equal = pair.equal and {*source_names} == {*target_names}
        for page in batches(source_names, PAGE):
            if not pair.equal:
                return
            page_read = self.target_reader.submit(self.side.catalog.partitions, target_name, page)
            source_partitions = self.source.catalog.partitions(pair.name, page)
            is_same = self.same_partitions(pair, source_partitions, page_read.result())
            pair.equal = is_same and len(source_partitions) == len(page)

    def few_partitions(self, pair: _TablePair) -> bool:
        """Count and compare the partitions as `partitions` does, where neither side has more than a page of them.
        Return False, with nothing compared, where a side has more."""
        assert pair.source_table is not None
        assert pair.target_table is not None
        target_read = self.target_reader.submit(self.side.catalog.few_partitions, pair.target_table, PAGE)
        source_partitions = self.source.catalog.few_partitions(pair.source_table, PAGE)
        target_partitions = target_read.result()
        if source_partitions is None or target_partitions is None:
            return False
        pair.partitions = len(target_partitions)
        pair.extra_partitions = sorted(target_partitions.keys() - source_partitions.keys())
        pair.equal = self.same_partitions(pair, source_partitions, target_partitions)
        return True

    def same_partitions(
        self, pair: _TablePair, source_partitions: Mapping[str, Partition], target_partitions: Mapping[str, Partition]
    ) -> bool:
        """Tell whether the partitions have equal names and definitions; their files are compared later."""
        if source_partitions.keys() != target_partitions.keys():
            return False
        if not all(
            self.same_partition(pair.name, partition, target_partitions[name])
            for name, partition in source_partitions.items()
        ):
            return False
        self.files(pair, [(partition, target_partitions[name]) for name, partition in source_partitions.items()])
        return True

    def files(self, pair: _TablePair, objects: Sequence[tuple[Table | Partition, Table | Partition]]) -> None:
        """Keep the directories of `objects` to be compared, and list them as soon as there is a page of them."""
        if self.side.admission.copies(pair.name):
            self.places.extend(
                (pair, directory(source_object), directory(target_object)) for source_object, target_object in objects
            )
        if len(self.places) >= PAGE:
            self.list_files()

    def list_files(self) -> None:
        """List the directories that were collected in `places`, at both sides. A table of which a directory does not
        hold the same files at both sides is not equal."""
        same_places = self.same_places(
            [(source_location, target_location) for _, source_location, target_location in self.places]
        )
        for pair, *locations in self.places:
            pair.equal = pair.equal and tuple(locations) in same_places
        self.places.clear()

    def same_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those pairs of directories, at the source and at the target, that hold the same files, as an exact
        read tells them, with the same permissions where these are kept; `""` is no directory."""
        source_locations = sorted({source for source, _ in places if source})
        target_locations = sorted({target for _, target in places if target})
        target_read = self.target_reader.submit(list_what_can_be, self.side.storage, target_locations)
        source_listings = list_what_can_be(self.source.storage, source_locations)[0]
        target_listings = target_read.result()[0]
        same_files = {
            (source, target)
            for source, target in places
            if source in source_listings
            and target in target_listings
            and source_listings[source].fingerprint() == target_listings[target].fingerprint()
        }
        same_nowhere = {pair for pair in places if pair == ("", "")}
        return same_nowhere | with_same_permissions(self.side, same_files, source_listings, target_listings)


def with_same_permissions(
    side: TargetSide,
    places: set[tuple[str, str]],
    source_listings: Mapping[str, Listing],
    target_listings: Mapping[str, Listing],
) -> set[tuple[str, str]]:
    """Return those pairs of directories, which hold the same files, that also have the same permissions, where they are
    kept."""
    if not places or not keeps_permissions(side):
        return places
    contents = {
        (source, target): contents_of({"": source_listings[source]}, {"": target_listings[target]})
        for source, target in places
    }
    differing = {
        (source, target)
        for source, target, wanted, current in permissions_of(side, chain.from_iterable(contents.values()))
        if wanted != current
    }
    return {place for place, pairs in contents.items() if differing.isdisjoint(pairs)}


def other_facets(source: SourceSide, side: TargetSide, names: Sequence[TableName]) -> list[TableName]:
    """Return those of the tables, whose definitions are equal, that have other column statistics or constraints at the
    target than at the source, as both have them now. Views, and tables that are gone, are left out. Raises
    `Unavailable` and `Refused` as the ports do."""
    other_names = []
    for name, table in headers(source.catalog, names).items():
        if is_view(table):
            continue
        partitions = source.catalog.partition_names(name) if is_partitioned(table) else ()
        table_side = TableSide(table, dict.fromkeys(partitions, Partition()))
        if compare_facets(source.catalog, side, name, table_side, table_side):
            other_names.append(name)
    return other_names


def directory(thing: Table | Partition) -> str:
    """Return the directory of the object's own files; `""` for a view, or where it has none."""
    return "" if isinstance(thing, Table) and is_view(thing) else location_of(thing) or ""


def headers(catalog: CatalogReader, names: Sequence[TableName]) -> dict[TableName, Table]:
    """Return the definitions of the tables that exist; `names` may be of several databases."""
    tables: dict[TableName, Table] = {}
    for database, database_names in groupby(sorted(set(names)), key=lambda name: name.database):
        rows = catalog.headers(database, [name.table for name in database_names])
        tables |= {TableName(database, table): row for table, row in rows.items()}
    return tables
