"""Which tables are still what they were: a target and its source compared in bulk, before anything is read exactly.

A batch of tables is bracketed by event ids as an exact read is: a table that is equal at both sides, and that no event
of the bracket touches, is exact at its end, without a call at the target. The comparison is that of `core.land`, so
what it finds equal an exact read would leave as it is. Both sides are read at the same time, the partitions of a table
by one call at each, directories many at once; a page of partitions is held at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import groupby

from calque.core.attached import Thing
from calque.core.compare import TableSide, compare_locations
from calque.core.fold import names_in
from calque.core.iceberg import is_iceberg
from calque.core.image import SOURCE, Marks, is_ours, source_mark
from calque.core.kinds import obstacle
from calque.core.land import is_ahead, same_incarnation, unchanged
from calque.core.limits import batches
from calque.engine.apply.facet_sources import compare_facets
from calque.engine.files.referenced_files import SharedFileCheck
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.stable_listings import list_what_can_be
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.ports import CatalogReader, Journal

BATCH = 100
"""Tables of one bracket: many brackets are surveyed side by side, and a short one meets few events."""
PAGE = 1000
"""Partitions, and directories, that are held at a time; entries of the journal that are read at once."""
NO_MARKS = Marks(0, "")
LOST_PARTITIONS = frozenset({EventKind.DROP_PARTITIONS, EventKind.RENAME_PARTITION})

Gone = tuple[TableName, str]
"""An object by the table's name at the source and the partition's (`""`: the table itself)."""


@dataclass(frozen=True, slots=True)
class BulkComparison:
    """Tables that are what they are at the source at event `at`, and others that must be read. `gone` says of these
    what the target has and the source lost, without an event that says so: it would be dropped by difference.
    `objects` are the tables and partitions at the target."""

    at: EventId
    equal: tuple[TableName, ...]
    others: tuple[TableName, ...]
    gone: Mapping[TableName, int] = field(default_factory=dict)
    objects: int = 0


class JournaledDrops:
    """What the journal says was dropped, or renamed away, after the event that it begins after. Safe from several
    threads."""

    def __init__(self, journal: Journal, after: EventId) -> None:
        self.journal, self.upto = journal, after
        self.found: set[Gone] = set()
        self.lock = threading.Lock()

    def read_to(self, upto: EventId) -> None:
        """Take the events up to `upto` in, which the journal has."""
        with self.lock:
            self.upto = max(self.upto, (self.journal.oldest() or upto + 1) - 1)
            while self.upto < upto:
                span = Span(self.upto, min(self.upto + PAGE, upto))
                for entry in self.journal.entries(span):
                    self.found |= dropped_by(entry)
                self.upto = span.upto

    def says(self, name: TableName, partition: str = "") -> bool:
        """Whether an event dropped the object, or the whole table that it was in."""
        return (name, partition) in self.found or (name, "") in self.found


def dropped_by(entry: Entry) -> set[Gone]:
    keys = entry.keys
    if keys.table is None:
        return set()
    if keys.kind in LOST_PARTITIONS:
        return {(keys.table, partition) for partition in (*keys.partitions, *keys.others)}
    if keys.kind is EventKind.DROP_TABLE:
        return {(keys.table, "")}
    return {(keys.other, "")} if keys.kind is EventKind.RENAME_TABLE and keys.other is not None else set()


@dataclass(slots=True)
class _TablePair:
    """One table at both sides. `gone` are the target's partitions that the source has not."""

    name: TableName
    here: Table | None
    there: Table | None
    equal: bool = False
    partitions: int = 0
    gone: list[str] = field(default_factory=list)


def compare_in_bulk(
    source: SourceSide, side: TargetSide, names: Sequence[TableName], dropped: JournaledDrops, beside: Executor
) -> BulkComparison:
    """Compare at most `BATCH` tables; `beside` reads the target meanwhile. Reads only. Raises `Unavailable`, and
    `Refused` where one of the tables can't be read."""
    low = source.log.current()
    at = [side.admission.name_at_target(name) for name in names]
    waiting = beside.submit(headers, side.catalog, at)
    here, there = headers(source.catalog, names), waiting.result()
    comparing = TableLikeness(source, side, low, SharedFileCheck(source.storage, side), beside)
    looks = [_TablePair(name, here.get(name), there.get(place)) for name, place in zip(names, at, strict=True)]
    for look in looks:
        look.equal = comparing.same_header(look)
        if look.there is not None and is_partitioned(look.there):
            comparing.partitions(look)
        elif look.equal and look.here is not None and look.there is not None:
            comparing.files(look, [(look.here, look.there)])
    comparing.list_files()
    high = source.log.current()
    if high > low:
        wait_for_journal(source, high)
        touched = names_in(source.journal.entries(Span(low, high)))
        for look in looks:
            look.equal = look.equal and look.name not in touched
    dropped.read_to(high)
    return surveyed(side, high, looks, dropped)


def surveyed(side: TargetSide, at: EventId, looks: Sequence[_TablePair], dropped: JournaledDrops) -> BulkComparison:
    ours = [look for look in looks if look.there is not None and is_ours(look.there.parameters, side.policy.source)]
    gone = {look.name: count for look in ours if (count := lost_of(side, look, dropped))}
    return BulkComparison(
        at,
        tuple(look.name for look in looks if look.equal),
        tuple(look.name for look in looks if not look.equal),
        gone,
        sum(1 + look.partitions for look in ours),
    )


def lost_of(side: TargetSide, look: _TablePair, dropped: JournaledDrops) -> int:
    """How many objects of the table are at the target alone, and no event says why."""
    if look.here is not None:
        return sum(not dropped.says(look.name, partition) for partition in look.gone)
    if side.policy.drops == "keep" or dropped.says(look.name):
        return 0
    return 1 + look.partitions


@dataclass(frozen=True, slots=True)
class TableLikeness:
    """What is equal at both sides. `low` is an event id that no mark may pass: one that does is of a log that went
    back. `places` are directories at the source and the target that are still to be listed."""

    source: SourceSide
    side: TargetSide
    low: EventId
    doubts: SharedFileCheck
    beside: Executor
    places: list[tuple[_TablePair, str, str]] = field(default_factory=list)

    def same_header(self, look: _TablePair) -> bool:
        """Iceberg tables are never called equal: their files are told by metadata of their own."""
        here, there = look.here, look.there
        if here is None or there is None or obstacle(here) or is_iceberg(here) or is_iceberg(there):
            return False
        if (there.parameters or {}).get(SOURCE) != source_mark(self.side.policy.source, look.name):
            return False
        return same_incarnation(there, here, self.side.imaging) and self.same(
            look.name, here, there, self.side.imaging.table(here, NO_MARKS, None)
        )

    def same_partition(self, name: TableName, here: Partition, there: Partition) -> bool:
        return self.same(name, here, there, self.side.imaging.partition(here, name, NO_MARKS, None))

    def same(self, name: TableName, here: Thing, there: Thing, wanted: Thing) -> bool:
        if is_ahead(there.parameters, self.low) or not unchanged(self.doubts.as_found(there), wanted):
            return False
        return self.side.policy.data != "none" or not compare_locations(name, "", here, there)

    def partitions(self, look: _TablePair) -> None:
        """Count the target's partitions, and compare them where the table's header is equal."""
        if look.equal and self.few_partitions(look):
            return
        at = self.side.admission.name_at_target(look.name)
        waiting = self.beside.submit(self.side.catalog.partition_names, at)
        names_here = self.source.catalog.partition_names(look.name) if look.here is not None else ()
        names_there = waiting.result()
        look.partitions, look.gone = len(names_there), sorted({*names_there} - {*names_here})
        look.equal = look.equal and {*names_here} == {*names_there}
        for page in batches(names_here, PAGE):
            if not look.equal:
                return
            reading = self.beside.submit(self.side.catalog.partitions, at, page)
            here = self.source.catalog.partitions(look.name, page)
            look.equal = self.same_partitions(look, here, reading.result()) and len(here) == len(page)

    def few_partitions(self, look: _TablePair) -> bool:
        """The same where no side has more than a page of them; False where one has."""
        assert look.here is not None
        assert look.there is not None
        waiting = self.beside.submit(self.side.catalog.few_partitions, look.there, PAGE)
        here, there = self.source.catalog.few_partitions(look.here, PAGE), waiting.result()
        if here is None or there is None:
            return False
        look.partitions, look.gone = len(there), sorted(there.keys() - here.keys())
        look.equal = self.same_partitions(look, here, there)
        return True

    def same_partitions(self, look: _TablePair, here: Mapping[str, Partition], there: Mapping[str, Partition]) -> bool:
        """Whether the definitions are equal; the files are compared later."""
        if here.keys() != there.keys():
            return False
        if not all(self.same_partition(look.name, partition, there[name]) for name, partition in here.items()):
            return False
        self.files(look, [(partition, there[name]) for name, partition in here.items()])
        return True

    def files(self, look: _TablePair, pairs: Sequence[tuple[Table | Partition, Table | Partition]]) -> None:
        """Compare the directories of both, with the next page of them."""
        if self.side.policy.data != "none":
            self.places.extend((look, directory(here), directory(there)) for here, there in pairs)
        if len(self.places) >= PAGE:
            self.list_files()

    def list_files(self) -> None:
        """Tables of which a directory does not hold the same files are not equal."""
        same = self.same_places([(here, there) for _, here, there in self.places])
        for look, *both in self.places:
            look.equal = look.equal and tuple(both) in same
        self.places.clear()

    def same_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of the directories, at the source and at the target, that hold the same files, as an exact read tells
        them; `""` is nowhere."""
        ours, theirs = {here for here, _ in places if here}, {there for _, there in places if there}
        waiting = self.beside.submit(list_what_can_be, self.side.storage, sorted(theirs))
        here, there = list_what_can_be(self.source.storage, sorted(ours))[0], waiting.result()[0]
        return {
            (one, other)
            for one, other in places
            if one == other == ""
            or (one in here and other in there and here[one].fingerprint() == there[other].fingerprint())
        }


def other_facets(source: SourceSide, side: TargetSide, names: Sequence[TableName]) -> list[TableName]:
    """Which of the tables, whose definitions are equal, have other column statistics or constraints at the target than
    at the source, as both have them now. Views, and tables that are gone, are left out. Raises `Unavailable`,
    `Refused`."""
    found = []
    for name, table in headers(source.catalog, names).items():
        if is_view(table):
            continue
        partitions = source.catalog.partition_names(name) if is_partitioned(table) else ()
        seen = TableSide(table, dict.fromkeys(partitions, Partition()))
        if compare_facets(source.catalog, side, name, seen, seen):
            found.append(name)
    return found


def directory(thing: Table | Partition) -> str:
    """Where its own files lie; nowhere for a view."""
    return "" if isinstance(thing, Table) and is_view(thing) else location_of(thing) or ""


def headers(catalog: CatalogReader, names: Sequence[TableName]) -> dict[TableName, Table]:
    """The tables of several databases that exist."""
    found: dict[TableName, Table] = {}
    for database, of_it in groupby(sorted(set(names)), key=lambda name: name.database):
        rows = catalog.headers(database, [name.table for name in of_it])
        found |= {TableName(database, table): row for table, row in rows.items()}
    return found
