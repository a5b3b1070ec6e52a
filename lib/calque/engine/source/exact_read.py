"""Exact reads: one table as it was at one event id, while the source goes on changing it (docs/architecture.md).

Metastore reads are no snapshots. So each round puts what it reads between two event ids and waits for the journal. What
an event between them touches is in doubt, and the next round reads it again; the rest stands. Rounds get smaller, and
their number is bounded:

    A round begins at event 80 and ends at event 84. Event 82 altered partition `ds=1`, which may have been read before
    or after that. The next round reads `ds=1` again. No event of the table comes until it ends, at event 86: the table
    is exact at event 86.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.core.events.effects import OF_PARTITIONS_OR_FILES
from calque.core.events.kinds import HUDI_TIMELINE, is_plain
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import join
from calque.engine.sides.journal_reads import touching
from calque.engine.sides.sides import SourceSide
from calque.engine.source.acid_read import read_state
from calque.engine.source.stable_listings import UnsureDirectories, emptied_lately
from calque.errors import Refused
from calque.model.files import DELTA_LOG, Listing, agree
from calque.model.hive import (
    PROJECTION,
    Partition,
    Table,
    is_delta,
    is_partitioned,
    is_transactional,
    is_view,
    location_of,
    projects_partitions,
)
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.ports import CatalogReader

ROUNDS = 60
PATIENCE_NS = 20_000_000


class TableIsTooBusy(Exception):
    """Raised where the table changes faster than it can be read."""


class AllPartitionsChanged(Exception):
    """Raised where an event may have changed any partition of a table of which only some are read."""


class TableIsLarge(Exception):
    """Raised where the table has more partitions than one process is to hold at a time."""


@dataclass(frozen=True, slots=True)
class ExactTable:
    """A table as it was at the event `exact_at`; `table` is None if there was none. `listings` are by partition, `""`
    for a table without partitions. With `only` the value has only these partitions and says nothing of the others."""

    name: TableName
    exact_at: EventId
    table: Table | None = None
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)
    only: frozenset[str] | None = None


@dataclass(slots=True)
class _PartialRead:
    """The parts of a table that were read so far. `reads_all`: the next round reads everything again; `doubtful` are
    the partitions that it reads (`""`: the files of a table without partitions). `partial`: only some partitions are
    wanted."""

    table: Table | None = None
    partitions: dict[str, Partition] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)
    reads_all: bool = True
    doubtful: set[str] = field(default_factory=set)
    partial: bool = False
    doubted_names: set[str] = field(default_factory=set)
    """All partitions that were in doubt one by one in some round."""
    unsure: UnsureDirectories = field(default_factory=UnsureDirectories)


def read_exact(source: SourceSide, name: TableName, with_files: bool = True, most: int | None = None) -> ExactTable:
    """Return the table, exact at the event id that ended its last round. Each round begins at the event where the one
    before ended, so that no event falls between. With `with_files` the listings of its directories are exact, too.
    Raises `TableIsTooBusy` where events touch the table faster than it is read, `Unavailable`, `Refused` for a table
    whose content calque can't tell, and `TableIsLarge` where there are more than `most` partitions."""
    reading = _PartialRead()
    return settled(source, name, reading, source.log.current(), with_files, most)


def read_some(
    source: SourceSide, name: TableName, partitions: Iterable[str], low: EventId, with_files: bool
) -> ExactTable:
    """Return the table's header, the `partitions`, and other partitions that were touched after the event `low`, exact
    at one event id. Raises as `read_exact` does, and `AllPartitionsChanged`."""
    reading = _PartialRead(reads_all=False, doubtful={*partitions}, partial=True)
    exact = settled(source, name, reading, low, with_files)
    return replace(exact, only=frozenset(reading.doubted_names))


def settled(
    source: SourceSide, name: TableName, reading: _PartialRead, low: EventId, with_files: bool, most: int | None = None
) -> ExactTable:
    """Read rounds until one ends in which no event touched what was read. Raises as `read_exact` and `read_some` do."""
    for attempt in range(ROUNDS):
        started_ns = source.clock.now_ns()
        read = read_round(source, name, reading, with_files, most)
        table, transactions = reading.table, source.transactions
        if with_files and transactions is not None and table is not None and is_transactional(table):
            state = read_state(source, transactions, table, places_of(reading))
            high, reading.listings = state.high, state.listings or {}
            unsettled = {""} if state.listings is None else set[str]()
        else:
            unsettled = list_files(source, reading, read, started_ns) if with_files else set()
            high = source.log.current()
        touched = touching(source, name, Span(low, high))
        if not touched and not unsettled:
            require_log(reading)
            return ExactTable(name, high, reading.table, reading.partitions, reading.listings)
        low = high
        reading.reads_all, reading.doubtful = False, unsettled
        doubt(reading, touched)
        if reading.reads_all and reading.partial:
            raise AllPartitionsChanged
        if not touched:
            source.clock.sleep(min(0.02 * (attempt + 1), 0.5))
    raise TableIsTooBusy(f"{name} changes faster than it can be read: {ROUNDS} rounds did not settle it")


def read_round(
    source: SourceSide, name: TableName, reading: _PartialRead, with_files: bool, most: int | None = None
) -> Sequence[str]:
    """Read what is in doubt, and return the partitions that were read (`""`: the table itself)."""
    reading.table = source.catalog.table(name)
    require_no_listed_partitions(source.catalog, reading.table)
    if reading.reads_all:
        reading.partitions, reading.listings = {}, {}
        if with_files:
            require_no_timeline(source, reading.table)
        if reading.table is None or not is_partitioned(reading.table):
            return [""]
        few = source.catalog.few_partitions(reading.table, most) if most is not None else None
        if few is not None:
            reading.partitions = dict(few)
            return sorted(few)
        names = source.catalog.partition_names(name)
        if most is not None and len(names) > most:
            raise TableIsLarge(f"{name} has {len(names)} partitions")
        reading.partitions = dict(source.catalog.partitions(name, names))
        return names
    doubtful_names = sorted(partition for partition in reading.doubtful if partition)
    reading.doubted_names.update(doubtful_names)
    for partition in doubtful_names:
        reading.partitions.pop(partition, None)
        reading.listings.pop(partition, None)
    if doubtful_names:
        reading.partitions.update(source.catalog.partitions(name, doubtful_names))
    return sorted(reading.doubtful)


def list_files(source: SourceSide, reading: _PartialRead, read: Sequence[str], started_ns: int) -> set[str]:
    """List the directories of the partitions `read`, and return the partitions whose directories are not settled."""
    places = {partition: location for partition in read if (location := place_of(reading, partition)) is not None}
    listings, unsettled = listed(source, places, started_ns, reading.unsure)
    reading.listings |= listings
    return unsettled


def listed(
    source: SourceSide, places: Mapping[str, str], started_ns: int, unsure: UnsureDirectories
) -> tuple[dict[str, Listing], set[str]]:
    """List directories, given by partition, twice. Return the listings, and the partitions that are not settled: the
    two listings differ, a file is younger than the start of the read and changed a moment ago, or the directory went
    missing or lost all files lately."""
    locations = sorted(set(places.values()))
    first, second = source.storage.list(locations), source.storage.list(locations)
    limit, now_ns = started_ns - PATIENCE_NS, source.clock.elapsed_ns()
    emptied = emptied_lately(source.storage, second.values(), source.clock.now_ns())
    listings, unsettled = {}, set()
    for partition, location in places.items():
        listing = listings[partition] = second[location]
        certain = unsure.is_certain(listing, now_ns, just_emptied=location in emptied)
        if not certain or not agree(first[location], listing) or not unsure.is_at_rest(listing, limit, now_ns):
            unsettled.add(partition)
    return listings, unsettled


def require_no_listed_partitions(catalog: CatalogReader, table: Table | None) -> None:
    """Raise `Refused` for a table with partition projection whose metastore has partitions, because engines differ in
    what its rows are."""
    if table is not None and projects_partitions(table) and catalog.few_partitions(table, 0) is None:
        raise Refused(
            f"The metastore has partitions of {table.database}.{table.name}, and {PROJECTION} is true",
            "Engines that make up partitions read other rows than those that ask the metastore",
            "Drop its partitions, which leaves an external table's files, or set the parameter to false",
        )


def require_no_timeline(source: SourceSide, table: Table | None) -> None:
    """Raise `Refused` for a table that is a Hudi table as its directory says, and that the metastore does not know as
    one."""
    if table is None or not is_plain(table):
        return
    location = location_of(table)
    if location and source.storage.exists(timeline := join(location, HUDI_TIMELINE)):
        raise Refused(
            f"{timeline} makes the directory a Hudi table, and the metastore does not say so",
            "Its readers take files of all versions for one content",
            "Leave the table out",
        )


def require_log(reading: _PartialRead) -> None:
    """Raise `Refused` for a Delta table that has files and no log, and for another table whose directory has a Delta
    log."""
    listing, table = reading.listings.get(""), reading.table
    if listing is None or table is None or is_delta(table) == (listing.version is not None):
        return
    log = join(listing.location, DELTA_LOG)
    if is_delta(table):
        if not listing.files:
            return
        raise Refused(
            f"{log} has no commit", "The table is a Delta table without a log", "Drop it, or put its log back"
        )
    raise Refused(
        f"{log} makes the directory a Delta table, and the metastore does not say so",
        "Its readers take files of all versions for one content",
        "Register it as a Delta table, or move it",
    )


def places_of(reading: _PartialRead) -> dict[str, str]:
    """Return the directories of all that was read, by partition."""
    partitions = reading.partitions or ("",)
    return {partition: place for partition in partitions if (place := place_of(reading, partition)) is not None}


def place_of(reading: _PartialRead, partition: str) -> str | None:
    if partition:
        definition = reading.partitions.get(partition)
        return location_of(definition) if definition else None
    table = reading.table
    if table is None or is_view(table) or is_partitioned(table) or is_iceberg(table):
        return None
    return location_of(table)


def doubt(reading: _PartialRead, touched: Sequence[Entry]) -> None:
    """Enter in `reading` what the next round has to read again because of the entries `touched`. The table's header is
    read in every round. Statistics change definitions, because a parameter tells which columns have them, so their
    partitions are in doubt too."""
    for entry in touched:
        if entry.keys.kind is EventKind.FACET:
            reading.doubtful |= {*entry.keys.partitions}
        elif entry.keys.kind in OF_PARTITIONS_OR_FILES:
            reading.doubtful |= {*entry.keys.partitions, *entry.keys.others} or {""}
        else:
            reading.reads_all = True
