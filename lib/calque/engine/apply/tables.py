"""Tables: created, altered, renamed, dropped; the content of a plain one switched."""

from __future__ import annotations

from dataclasses import replace

from calque.core.iceberg import is_iceberg
from calque.core.image import EVENT, Marks, moved
from calque.core.kinds import obstacle
from calque.core.layout import external_location, join, natural_location
from calque.engine.apply.context import HopContext, claim_of
from calque.engine.files.iceberg_metadata import make_ready
from calque.engine.files.stage import ContentLost, StagedFiles, StageRequest, stage_version
from calque.engine.target.observe import ShownTable, event_of
from calque.errors import Refused
from calque.model.files import DELTA_LOG, Listing
from calque.model.hive import Partition, Table, is_delta, is_partitioned, is_view, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AlterTable, CreateTable, Head, Version


def create_table(hand: HopContext, operation: CreateTable) -> None:
    definition, placed = new_table(hand, operation.table, operation.head)
    hand.call(hand.side.catalog.create_table, definition)
    created(hand, operation.table, operation.head, ShownTable(definition), placed)


def created(hand: HopContext, table: TableName, head: Head, shown: ShownTable, placed: StagedFiles) -> None:
    """Remember that the table is there now."""
    hand.shown[table] = shown
    if head.data is not None:
        hand.shows_files(table, "", placed)
    hand.record(table, "", shown.incarnation(), head.since, "create_table", placed)


def new_table(hand: HopContext, table: TableName, head: Head) -> tuple[Table, StagedFiles]:
    """The definition of a table that is not there yet, its files staged."""
    source = replicated(hand, head.version)
    placed = StagedFiles("", ()) if is_view(source) else root(hand, table, source, head)
    marks = Marks(head.since, head.incarnation)
    definition = hand.side.imaging.table(source, marks, placed.location or None)
    return pointed(hand, table, source, definition, None), placed


def root(hand: HopContext, table: TableName, source: Table, head: Head) -> StagedFiles:
    """Where the table is, with its files when it is a plain one."""
    if head.data is None and hand.side.policy.data == "none":
        return StagedFiles(location_of(source) or "", ())
    listing = hand.listing(head.data) if head.data is not None else Listing(location_of(source) or "", ())
    partitioned = is_partitioned(source)
    claim = claim_of(head.incarnation, source.create_time, partitioned)
    natural = natural_place(hand, table, source)
    if head.data is not None and hand.side.policy.data != "none":
        require_kind(source, listing)
    grows = partitioned or is_iceberg(source)
    shown = hand.is_shown(natural)
    wanted = StageRequest(listing, natural, hand.at(table), "", head.incarnation, head.since, claim, grows, shown)
    return hand.staged({"": wanted})[""]


def natural_place(hand: HopContext, table: TableName, source: Table) -> str:
    policy, at = hand.side.policy, hand.at(table)
    if source.type == "EXTERNAL_TABLE" and (location := location_of(source)):
        outside = external_location(location, policy.external_base, policy.locations)
        if outside is not None:
            return outside
        if policy.strict_locations:
            raise Refused(
                f"No place at the target is said for {location}",
                'strict_locations is set, and no prefix in "locations" fits',
                "Add a prefix for it, and release the table from quarantine",
            )
    return natural_location(policy.warehouse, at.database, at.table)


def alter_table(hand: HopContext, operation: AlterTable) -> None:
    """A new definition, name, or content of a plain table."""
    table, was, head = operation.table, operation.was, operation.head
    shown = hand.seen(was)
    placed = switched_content(hand, table, head, shown) if operation.switch else None
    definition = altered(hand, table, shown, head, placed)
    hand.call(
        hand.side.catalog.alter_table,
        hand.at(was),
        definition,
        cascade=operation.cascade,
        expected_event=expected(shown),
    )
    partitions = {name: followed(part, definition, operation.cascade) for name, part in shown.partitions.items()}
    now_under(hand, was, table, replace(shown, table=definition, partitions=partitions), head.since)
    if placed is not None:
        hand.shows_files(table, "", placed)
    change = "rename_table" if was != table else "alter_table"
    hand.record(table, "", hand.seen(table).incarnation(), head.since, change, placed)


def now_under(hand: HopContext, was: TableName, table: TableName, shown: ShownTable, event_id: EventId) -> None:
    """Remember what a table shows, perhaps under another name."""
    hand.shown[was] = None
    hand.shown[table] = shown
    if was != table:
        hand.record(was, "", shown.incarnation(), event_id, "rename_away")


def switched_content(hand: HopContext, table: TableName, head: Head, shown: ShownTable) -> StagedFiles | None:
    """The new files of a plain table, in a directory of their own."""
    if head.data is None:
        return None
    listing = hand.listing(head.data)
    require_kind(shown.table if head.version == BASE else hand.images.table(head.version), listing)
    if (placed := advanced(hand, shown, listing, head.since)) is not None:
        return placed
    incarnation = head.incarnation or shown.incarnation()
    return hand.staged({"": StageRequest(listing, None, hand.at(table), "", incarnation, head.since)})[""]


def advanced(hand: HopContext, shown: ShownTable, listing: Listing, event_id: EventId) -> StagedFiles | None:
    """A Delta table whose log went on where it is; None for other tables and other logs."""
    there = shown.listings.get("")
    if there is None or listing.version is None:
        return None
    placed = stage_version(hand.side, there, listing, event_id)
    if placed is not None:
        hand.count(placed)
    return placed


def require_kind(table: Table, listing: Listing) -> None:
    """`ContentLost` where a Delta table has files and no log, or another table has a log: what was listed is of before
    or after a conversion."""
    if is_delta(table) and listing.version is None and listing.files:
        raise ContentLost(join(listing.location, DELTA_LOG), "it has no commit yet, or any more")
    if not is_delta(table) and listing.version is not None:
        raise ContentLost(join(listing.location, DELTA_LOG), "it is the log of a Delta table, which the table is not")


def expected(shown: ShownTable) -> str:
    return (shown.table.parameters or {}).get(EVENT, "")


def altered(hand: HopContext, table: TableName, shown: ShownTable, head: Head, placed: StagedFiles | None) -> Table:
    """The definition after an alteration; one that the target showed before only changes place and mark."""
    there = shown.table
    if head.version == BASE:
        parameters = {**(there.parameters or {}), EVENT: str(head.since or event_of(there.parameters))}
        return replace(there, parameters=parameters, storage=moved(there.storage, hand.place(there, there, placed)))
    source = replicated(hand, head.version)
    marks = Marks(head.since, head.incarnation or shown.incarnation())
    definition = hand.side.imaging.table(source, marks, hand.place(there, source, placed))
    return pointed(hand, table, source, definition, there)


def pointed(hand: HopContext, table: TableName, source: Table, definition: Table, there: Table | None) -> Table:
    """The definition with what it points to at the target, made ready beforehand; `there` is the one before."""
    definition = hand.attachments.of(definition)
    if not is_iceberg(source) or hand.side.policy.data == "none":
        return definition
    definition, placed = make_ready(hand.side, source, definition, there)
    hand.count(placed)
    hand.made[table] = placed
    return definition


def replicated(hand: HopContext, version: Version) -> Table:
    """The source's definition. `Refused` for a kind of table that is not replicated."""
    source = hand.images.table(version)
    if problem := obstacle(source):
        raise Refused(problem)
    return source


def drop_table(hand: HopContext, table: TableName, event_id: EventId) -> None:
    incarnation = hand.seen(table).incarnation()
    hand.call(hand.side.catalog.drop_table, hand.at(table))
    hand.shown[table] = None
    hand.record(table, "", incarnation, event_id, "drop_table")


def followed(partition: Partition, table: Table, cascade: bool) -> Partition:
    """A partition after its table was altered: under its name, and with its columns where they cascade."""
    storage = partition.storage
    if cascade and storage is not None and table.storage is not None:
        storage = replace(storage, columns=table.storage.columns)
    return replace(partition, database=table.database, table=table.name, storage=storage)
