"""The operations on tables: they are created, altered, renamed, dropped, and the content of a plain one is switched."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import external_location, join, natural_location
from calque.core.formats.pointers import relocated
from calque.core.formats.symlinks import is_symlinks, require_same_reading
from calque.core.images.image import EVENT, TYPE, Marks
from calque.core.images.table_layout import has_own_row_files, like, with_format, with_row_files
from calque.core.states.moves import Move, move_of_tables
from calque.engine.apply.begun_transactions import end_begun
from calque.engine.apply.context import HopContext
from calque.engine.apply.hidden_table import begin, clear, hidden_name
from calque.engine.files.copies import ContentLost
from calque.engine.files.iceberg_metadata import make_ready
from calque.engine.files.stage import StagedFiles, StageRequest, stage_version
from calque.engine.sides.calque_database import ensure_managed_place, ensure_own_database
from calque.engine.target.armed_tables import disarmed, is_armed
from calque.engine.target.observe import ShownTable, event_of, every_partition
from calque.errors import Refused
from calque.model.files import DELTA_LOG, Listing
from calque.model.hive import Partition, Table, is_delta, is_partitioned, is_transactional, is_view, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AlterTable, CreateTable, Head, Rebuild, Version
from calque.ports import FormatMisfit

LOG = logging.getLogger(__name__)
ARMED = (
    "%s is external again: somebody made it such that the target's metastore could move or delete the source's files"
)


def create_table(context: HopContext, operation: CreateTable) -> None:
    """Create a table in one call; a table whose files stay at the source is made under a hidden name, and renamed in by
    a second call."""
    table, catalog = operation.table, context.side.catalog
    definition, placed = new_table(context, table, operation.head)
    shown = ShownTable(definition)
    if context.lies_at_source(table, definition):
        hidden = hidden_name(context.name_at_target(table), shown.incarnation())
        begin(context, table, hidden, definition)
        context.call(catalog.alter_table, hidden, definition)
    else:
        if context.side.is_native(definition):
            ensure_managed_place(catalog, context.side.policy.warehouse, definition.database)
        context.call(catalog.create_table, definition)
    created(context, table, operation.head, shown, placed)


def created(context: HopContext, table: TableName, head: Head, shown: ShownTable, placed: StagedFiles) -> None:
    """Note that the table is there now, with a row for the ledger."""
    context.shown[table] = shown
    if head.data is not None:
        context.shows_files(table, "", placed)
    context.record(table, "", shown.incarnation(), head.since, "create_table", placed)


def new_table(context: HopContext, table: TableName, head: Head, table_format: str = "") -> tuple[Table, StagedFiles]:
    """Return the definition of a table that is not there yet, and its directory with its files staged; `table_format`
    is what its mark of that name says."""
    source = replicated(context, head.version)
    if is_transactional(source) and context.side.wanted_format(source) != table_format:
        raise FormatMisfit("it has become an ACID table")
    if is_view(source):
        placed = StagedFiles("", ())
    elif table_format:
        placed = root_with_log(context, table, source, head)
    else:
        placed = root(context, table, source, head)
    marks = Marks(head.since, head.incarnation)
    definition = context.side.imaging.table(source, marks, placed.location or None)
    if text := table_format or context.formats.get(table):
        definition = with_format(definition, text)
    if table_format:
        definition = with_row_files(definition, source)
    return pointed(context, table, source, definition, None), placed


def root_with_log(context: HopContext, table: TableName, source: Table, head: Head) -> StagedFiles:
    """Return the directory where a table's log and contents come to lie; of a table without partitions with its first
    content."""
    own_place = root(context, table, source, replace(head, data=None))
    if head.data is None or is_transactional(source):
        return own_place
    listing = context.listing(head.data)
    require_kind(source, listing)
    name = context.name_at_target(table)
    request = StageRequest(
        listing, None, name, "", head.incarnation, head.since, root=own_place.location, symlinks=is_symlinks(source)
    )
    return context.staged(table, {"": request})[""]


def root(context: HopContext, table: TableName, source: Table, head: Head) -> StagedFiles:
    """Return the directory of the table, with its files when it is a plain one; the source's where files stay there."""
    copies = context.side.admission.copies(table)
    if head.data is None and not copies:
        return StagedFiles(location_of(source) or "", ())
    listing = Listing(location_of(source) or "", ())
    is_native = context.side.is_native(source) and context.side.admission.acid(table) == "native"
    if head.data is not None and not is_native:
        listing = context.listing(head.data)
    partitioned = is_partitioned(source)
    natural = natural_place(context, table, source)
    if head.data is not None and copies:
        require_kind(source, listing)
    grows = partitioned or head.data is None or is_iceberg(source) or is_native
    shown = context.is_shown(natural)
    symlinks = head.data is not None and is_symlinks(source)
    name = context.name_at_target(table)
    request = StageRequest(
        listing,
        natural,
        name,
        "",
        head.incarnation,
        head.since,
        grows=grows,
        shown=shown,
        symlinks=symlinks,
        is_acid=is_native,
    )
    return context.staged(table, {"": request})[""]


def natural_place(context: HopContext, table: TableName, source: Table) -> str:
    policy, target_name = context.side.policy, context.name_at_target(table)
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
    return natural_location(policy.warehouse, target_name.database, target_name.table)


def alter_table(context: HopContext, operation: AlterTable) -> None:
    """Give a table a new definition, a new name, or, when it is plain, a new content."""
    table, was, head = operation.table, operation.was, operation.head
    shown = context.shown_table(was)
    placed = switched_content(context, table, head, shown) if operation.switch else None
    definition = altered(context, table, shown, head, placed)
    if was != table or placed is not None:
        context.leave(was)
    if (move := move_of_directory(context, operation, shown.table)) is not None:
        moved_partitions = with_directory(every_partition(context.side, shown.table), move)
        context.alter_partitions(context.name_at_target(was), moved_partitions.values())
        shown.partitions.update({name: part for name, part in moved_partitions.items() if name in shown.partitions})
    context.call(
        context.side.catalog.alter_table,
        context.name_at_target(was),
        definition,
        cascade=operation.cascade,
        expected_event=expected(shown),
    )
    partitions = {name: followed(part, definition, operation.cascade) for name, part in shown.partitions.items()}
    now_under(context, was, table, replace(shown, table=definition, partitions=partitions), head.since)
    if placed is not None:
        context.shows_files(table, "", placed)
    change = "rename_table" if was != table else "alter_table"
    context.record(table, "", context.shown_table(table).incarnation(), head.since, change, placed)


def move_of_directory(context: HopContext, operation: AlterTable | Rebuild, target_table: Table) -> Move | None:
    """Return the move of the partitions' directories at the source when the table was renamed, for files that stay
    there; None where nothing moved. No event says so. The directories are in the new place already, so rows are right
    before the table is renamed, and after it."""
    was, head = operation.was, operation.head
    if was is None or was == operation.table or not is_partitioned(target_table) or context.side.admission.copies(was):
        return None
    old_type = (target_table.parameters or {}).get(TYPE, "")
    after = context.images.table(head.version)
    return move_of_tables(location_of(target_table), was.table, old_type, after, head.since)


def with_directory(partitions: Mapping[str, Partition], move: Move) -> dict[str, Partition]:
    """Return those of the partitions whose directories went along, where they are now."""
    locations = {name: location_of(partition) or "" for name, partition in partitions.items()}
    return {
        name: relocated(partition, place)
        for name, partition in partitions.items()
        if (place := move.follow(locations[name])) != locations[name]
    }


def disarm(context: HopContext) -> None:
    """Take back what users did to the group's tables that would have calls reach the source's files."""
    for table, shown in context.shown.items():
        if shown is not None and is_armed(shown.table) and not context.side.admission.copies(table):
            target_name, definition = context.name_at_target(table), disarmed(shown.table)
            context.call(context.side.catalog.alter_table, target_name, definition, expected_event=expected(shown))
            LOG.warning(ARMED, target_name)
            context.applied.disarmed.append(table)
            shown.table = definition


def now_under(context: HopContext, was: TableName, table: TableName, shown: ShownTable, event_id: EventId) -> None:
    """Note in `context` that the source's `table`, which was called `was` before, is shown now as `shown`, and nothing
    under `was`. A table that changed its name gets a row in the ledger that ends its old name."""
    context.shown[was] = None
    context.shown[table] = shown
    if was != table:
        context.record(was, "", shown.incarnation(), event_id, "rename_away")


def switched_content(context: HopContext, table: TableName, head: Head, shown: ShownTable) -> StagedFiles | None:
    """Return the new files of a plain table, in a directory of their own; None where it has no content of its own."""
    if head.data is None:
        return None
    listing = context.listing(head.data)
    definition = shown.table if head.version == BASE else context.images.table(head.version)
    require_kind(definition, listing)
    if (placed := advanced(context, shown, listing, head.since)) is not None:
        return placed
    incarnation, own_root = head.incarnation or shown.incarnation(), context.root(shown.table)
    name = context.name_at_target(table)
    symlinks = is_symlinks(definition)
    request = StageRequest(listing, None, name, "", incarnation, head.since, root=own_root, symlinks=symlinks)
    return context.staged(table, {"": request})[""]


def advanced(context: HopContext, shown: ShownTable, listing: Listing, event_id: EventId) -> StagedFiles | None:
    """Let the log of a Delta table go on where it is, and return its directory; None for other tables and other
    logs."""
    target_listing = shown.listings.get("")
    if target_listing is None or listing.version is None:
        return None
    placed = stage_version(context.side, target_listing, listing, event_id)
    if placed is not None:
        context.count(placed)
    return placed


def require_kind(table: Table, listing: Listing) -> None:
    """Raise `ContentLost` where a Delta table has files and no log, or another table has a log: what was listed is of
    before or after a conversion."""
    if is_delta(table) and listing.version is None and listing.files:
        raise ContentLost(join(listing.location, DELTA_LOG), "it has no commit yet, or any more")
    if not is_delta(table) and listing.version is not None:
        raise ContentLost(join(listing.location, DELTA_LOG), "it is the log of a Delta table, which the table is not")


def expected(shown: ShownTable) -> str:
    return (shown.table.parameters or {}).get(EVENT, "")


def altered(context: HopContext, table: TableName, shown: ShownTable, head: Head, placed: StagedFiles | None) -> Table:
    """Return the definition of a table after an alteration; a definition that the target showed before only changes
    place and mark."""
    target_table = shown.table
    if head.version == BASE:
        parameters = {**(target_table.parameters or {}), EVENT: str(head.since or event_of(target_table.parameters))}
        kept = replace(target_table, parameters=parameters)
        return relocated(kept, context.place(table, target_table, target_table, placed))
    source = replicated(context, head.version)
    require_same_kind(context, source, target_table)
    if placed is None and not is_partitioned(source) and context.side.admission.copies(table):
        require_same_reading(target_table, source)
    marks = Marks(head.since, head.incarnation or shown.incarnation())
    definition = context.side.imaging.table(source, marks, context.place(table, target_table, source, placed))
    return pointed(context, table, source, like(definition, target_table), target_table)


def require_same_kind(context: HopContext, source: Table, target_table: Table) -> None:
    """Raise `FormatMisfit` where the table has become an ACID table, or none, and the rows of one of both lie in files
    of their own."""
    is_wanted = is_transactional(source) and bool(context.side.wanted_format(source))
    if is_wanted is not has_own_row_files(target_table):
        raise FormatMisfit("it has become an ACID table" if is_wanted else "it is no ACID table any more")


def pointed(
    context: HopContext, table: TableName, source: Table, definition: Table, target_table: Table | None
) -> Table:
    """Return the definition with the files that it points to at the target, which are made ready first; `target_table`
    is the definition before."""
    definition = context.attachments.of(table, definition)
    if not is_iceberg(source) or not context.side.admission.copies(table):
        return definition
    definition, placed = make_ready(context.side, source, definition, target_table)
    context.count(placed)
    context.prepared_files[table] = placed
    return definition


def replicated(context: HopContext, version: Version) -> Table:
    """Return the source's definition. Raises `Refused` for a kind of table that is not replicated."""
    source = context.images.table(version)
    if problem := context.side.obstacle(source):
        raise Refused(problem)
    return source


def drop_table(context: HopContext, table: TableName, event_id: EventId) -> None:
    incarnation = context.shown_table(table).incarnation()
    shown, target_name = context.shown_table(table), context.name_at_target(table)
    context.leave(table)
    if is_transactional(shown.table):
        # A metastore of 4.x keeps the write ids of a name whose table is dropped without its files.
        if context.side.transactions is not None:
            end_begun(context.side, location_of(shown.table) or "")
        ensure_own_database(context.side.catalog, context.side.policy.warehouse)
        away_name = hidden_name(target_name, f"old_{event_id}")
        clear(context, away_name)
        definition = replace(shown.table, database=away_name.database, name=away_name.table)
        context.call(context.side.catalog.alter_table, target_name, definition)
        target_name = away_name
    context.call(context.side.catalog.drop_table, target_name)
    context.shown[table] = None
    context.record(table, "", incarnation, event_id, "drop_table")


def followed(partition: Partition, table: Table, cascade: bool) -> Partition:
    """Return a partition as it is after its table was altered: under the table's name, and with its columns where they
    cascade."""
    storage = partition.storage
    if cascade and storage is not None and table.storage is not None:
        storage = replace(storage, columns=table.storage.columns)
    return replace(partition, database=table.database, table=table.name, storage=storage)
