"""The rows of ACID tables at a target: they are committed by a transaction of calque's.

The directories of write ids that a state has, and the target lacks, are copied under their own names with the
transaction's id as suffix, so that no reader sees them before its commit, and every reader sees all of them after it.
Write ids are the source's. Those of aborted transactions have no directories and count as committed.

A death may leave directories of a transaction that is open (`begun_transactions`). Whoever comes next goes on with it:
what was copied counts as copied, and what the next state does not need is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from calque.core.acid.contents import nested_path
from calque.core.acid.directories import AcidDirectory, directory_of, readable
from calque.core.acid.write_ids import ValidWriteIds, WriteId
from calque.core.formats.layout import full_paths, join
from calque.core.images.image import COMMIT_MARK
from calque.engine.apply import begun_transactions, hidden_build
from calque.engine.apply.begun_transactions import begin, end_begun, transactions_of
from calque.engine.apply.context import HopContext
from calque.engine.apply.hidden_table import clear, hidden_name
from calque.engine.apply.partitions import (
    PartitionWrite,
    Parts,
    altered_partitions,
    definitions,
    forget,
    incarnation_of,
    new_partitions,
    remember,
)
from calque.engine.apply.tables import alter_table, created, drop_table, new_table
from calque.engine.files.copies import copied
from calque.engine.files.stage import StagedFiles
from calque.engine.sides.calque_database import ensure_managed_place
from calque.engine.target.observe import ShownTable, read_rows
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Table, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, CommitRows, Head, HiddenBuild, PrepareFlipSweep, Rebuild
from calque.model.transactions import CommitMark, TransactionId
from calque.ports import Conflict, CopyTask

NOTES = ("_metadata_acid", "_orc_acid_version")
"""Files by which Hive says how a directory of write ids was written. They are no data, and no listing has them."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """The rows that a table's directory gets: `wanted` are the files of the state at the source, `shown` those that the
    target shows. `location` is the target's directory; `since` the event for the ledger's row."""

    location: str
    wanted: Listing
    shown: Listing
    since: EventId

    def new_files(self) -> list[File]:
        present = {file.path for file in self.shown.files}
        return [file for file in self.wanted.files if file.path not in present]


ChangesByTable = Mapping[TableName, Mapping[str, RowChange]]
"""The rows that change by the source's names of tables, and by partition."""


def commit_rows(context: HopContext, operation: CommitRows, event_id: EventId) -> None:
    """Commit the rows of the tables, or of some of their partitions, in one transaction."""
    changes = {}
    for rows in operation.tables:
        changes[rows.table] = changes_of(context, context.shown_table(rows.table), rows.head, rows.partitions)
    put(context, changes, copy(context, by_root(context, changes)), event_id)
    changed = tuple(sorted(table for table, of_table in changes.items() if of_table))
    if len(changed) > 1:
        context.applied.together.append(changed)


def put(context: HopContext, changes: ChangesByTable, rows: CopiedRows | None, event_id: EventId) -> None:
    """Commit rows of tables as they are shown, and record them."""
    tables = {context.name_at_target(table): context.shown_table(table) for table in changes}
    commit(context, tables, rows, event_id)
    for table, of_table in changes.items():
        shown = context.shown_table(table)
        for partition, change in of_table.items():
            listing = replace(change.wanted, location=change.location, kept=(), pin="", missing=False)
            shown.listings[partition] = listing
            incarnation = incarnation_of(shown.partitions[partition]) if partition else shown.incarnation()
            context.record(
                table, partition, incarnation, change.since, "commit_rows", StagedFiles(change.location, listing.files)
            )


def by_root(context: HopContext, changes: ChangesByTable) -> dict[str, list[RowChange]]:
    """Return the changes by the directories of their tables; tables without changes have none."""
    roots = {table: location_of(context.shown_table(table).table) or "" for table in changes}
    return {roots[table]: list(of_table.values()) for table, of_table in changes.items() if of_table}


def changes_of(context: HopContext, shown: ShownTable, head: Head | None, parts: Parts) -> dict[str, RowChange]:
    """Return the rows that change, by partition."""
    changes = {}
    if head is not None and head.data is not None:
        location = location_of(shown.table) or ""
        changes[""] = RowChange(
            location, context.listing(head.data), shown.listings.get("", nothing_at(location)), head.since
        )
    for name, part in parts:
        location = location_of(shown.partitions[name]) or ""
        listing = shown.listings.get(name, nothing_at(location))
        changes[name] = RowChange(location, context.listing(part.data), listing, part.since)
    return {
        name: change for name, change in changes.items() if change.wanted.fingerprint() != change.shown.fingerprint()
    }


def nothing_at(location: str) -> Listing:
    return Listing(location, ())


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows that no reader sees before the transaction `number` is committed. `highest` are the highest write ids of
    their directories, by the directories of their tables."""

    number: int
    highest: Mapping[str, WriteId]


def copy(context: HopContext, changes: Mapping[str, Sequence[RowChange]]) -> CopiedRows | None:
    """Copy the rows that tables lack, by the tables' directories, in one transaction; None where nothing lacks. Raises
    `ContentLost` where files of the source are gone."""
    if not changes:
        return None
    side = context.side
    for change in chain.from_iterable(changes.values()):
        require_hiding(change)
    made = {
        root: sorted({one for change in of_root for one in directories(change)}) for root, of_root in changes.items()
    }
    number, transaction = begin(side, made)
    for change in chain.from_iterable(changes.values()):
        copy_rows(context, change, transaction)
    highest = {root: max(map(high_of, of_root), default=0) for root, of_root in made.items()}
    return CopiedRows(number, highest)


def commit(
    context: HopContext, tables: Mapping[TableName, ShownTable], rows: CopiedRows | None, event_id: EventId
) -> None:
    """Commit the rows to the target's `tables`, by their names there. The transaction marks one of them alone, the
    first that gets rows (`COMMIT_MARK`). Raises `Conflict` where the transaction, which a process before has begun,
    can't have them; it is ended then."""
    if rows is None:
        return
    side, transactions = context.side, transactions_of(context.side)
    wanted = {
        name: high for name, shown in tables.items() if (high := rows.highest.get(location_of(shown.table) or ""))
    }
    valid = transactions.reader.valid_write_ids(tables)
    for name, high in wanted.items():
        if valid[name].holds(high):
            continue
        try:
            transactions.writer.allocate(rows.number, name, high)
        except Conflict:
            for root in rows.highest:
                end_begun(side, root)
            raise
        except Refused as refused:
            raise not_able(name, f"{refused.what}: {refused.why}") from refused
    marked = next(iter(wanted or tables))
    shown = tables[marked]
    mark = CommitMark(table_id(context, marked, shown), COMMIT_MARK, str(event_id))
    context.call(transactions.writer.commit, rows.number, mark)
    context.ended_transactions.update(tables)
    begun_transactions.forget(side, rows.highest)
    shown.table = replace(shown.table, parameters={**(shown.table.parameters or {}), COMMIT_MARK: str(event_id)})


def require_hiding(change: RowChange) -> None:
    """Raise `Refused` where directories that the target shows would be read beside those of the new state."""
    known = {one.name: one for one in (*acid_directories(change.shown), *acid_directories(change.wanted))}
    high = max((one.high for one in known.values()), default=0)
    read = {one.name for one in readable(known.values(), ValidWriteIds(high)).all()}
    wanted = {one.name for one in acid_directories(change.wanted)}
    if read != wanted:
        raise Refused(
            f"Rows of {change.location} can't be taken away by a transaction",
            f"{', '.join(sorted(read - wanted))} went at the source, and nothing there hides it",
            "Read the table again: `calque repair`",
        )


def acid_directories(listing: Listing) -> list[AcidDirectory]:
    names = sorted({file.path.partition("~")[0] for file in listing.files})
    return [one for name in names if (one := directory_of(name)) is not None]


def directories(change: RowChange) -> Iterable[str]:
    """Yield the directories that the change makes, without the suffix of a transaction."""
    for file in change.new_files():
        name, separator, _ = file.path.partition("~")
        if separator:
            yield join(change.location, name)


def high_of(directory: str) -> int:
    known = directory_of(directory.rpartition("/")[2])
    return known.high if known is not None else 0


def copy_rows(context: HopContext, change: RowChange, transaction: TransactionId) -> None:
    """Copy the files that the target lacks to directories that the transaction shows."""
    side, sources = context.side, full_paths(change.wanted)
    tasks, empty = [], []
    for file in change.new_files():
        target = join(change.location, nested_path(file.path, transaction))
        if target.endswith("/"):
            empty.append(target.rstrip("/"))
        else:
            within = change.wanted.pin or change.wanted.location
            tasks.append(CopyTask(sources[file.path], target, file.size, file.modified_ns, ours=True, within=within))
    side.storage.make_directories(empty)
    results = copied(side, tasks)
    context.count(StagedFiles("", (), len(results), sum(result.bytes_moved for result in results.values())))
    copy_notes(context, change, transaction)


def copy_notes(context: HopContext, change: RowChange, transaction: TransactionId) -> None:
    """Copy what Hive says of the directories of write ids, where the source has them still."""
    storage = context.side.storage
    named = {file.path.partition("~")[0] for file in change.new_files() if "~" in file.path}
    of_source = {path.rpartition("/")[0] for file, path in full_paths(change.wanted).items() if "~" in file}
    for directory in sorted(of_source):
        name = directory.rpartition("/")[2]
        target = next((one for one in named if name == one or name.startswith(f"{one}_v")), None)
        if target is None:
            continue
        for note in NOTES:
            content = storage.read(join(directory, note))
            if content is not None:
                storage.write(join(change.location, f"{target}_v{transaction:07d}/{note}"), content)


def table_id(context: HopContext, target_name: TableName, shown: ShownTable) -> int:
    """Return the id that the target's metastore gave the table. Raises `Refused` where it gives none: then commits set
    no marks either, and readers of that version take no directories that a transaction shows."""
    if shown.table.id is None:
        table = context.side.catalog.table(target_name)
        if table is None:
            raise Conflict(f"{target_name} is not there")
        if table.id is None:
            raise not_able(target_name, "It gives tables no ids")
        shown.table = replace(shown.table, id=table.id)
    assert shown.table.id is not None
    return shown.table.id


def not_able(target_name: TableName, why: str) -> Refused:
    return Refused(
        f"The target's metastore can't have {target_name} as an ACID table of calque's, as Hive 4 can",
        why,
        'Set acid = "external" or "skip" for the table',
    )


# Operations that are made of several


def build(context: HopContext, operation: HiddenBuild, event_id: EventId) -> None:
    """Build a new ACID table with its partitions and rows under a hidden name, and rename it in by one call. A build
    that a death cut short goes on."""
    table, head = operation.table, operation.head
    definition, placed = new_table(context, table, head)
    shown = ShownTable(definition)
    partitions = new_partitions(context, table, shown, operation.partitions)
    hidden = hidden_name(context.name_at_target(table), shown.incarnation())
    data = {"": head.data} if head.data is not None else {}
    data |= {name: part.data for name, part in operation.partitions}
    wanted = {name: context.listing(one) for name, one in data.items() if one.location}
    hidden_table = begun_build(context, hidden, definition, partitions, wanted)
    if hidden_table is None:
        for location in (placed.location, *(location_of(write.definition) or "" for write in partitions.values())):
            remove_rows(context, location)
        side = context.side
        ensure_managed_place(side.catalog, side.policy.warehouse, context.name_at_target(table).database)
        hidden_build.make(context, table, hidden, definition, definitions(partitions))
        hidden_table = ShownTable(definition, {name: write.definition for name, write in partitions.items()})
    table_id(context, hidden, hidden_table)
    changes = changes_of(context, hidden_table, head, operation.partitions)
    root = location_of(hidden_table.table) or ""
    rows = copy(context, {root: list(changes.values())} if changes else {})
    commit(context, {hidden: hidden_table}, rows, event_id)
    context.call(context.side.catalog.alter_table, hidden, definition)
    contents = {name: listing.files for name, listing in wanted.items()}
    created(context, table, head, shown, replace(placed, files=contents.get("", ())))
    written = {
        name: replace(write, placed=replace(write.placed or StagedFiles("", ()), files=contents.get(name, ())))
        for name, write in partitions.items()
    }
    remember(context, table, written)


def begun_build(
    context: HopContext,
    hidden: TableName,
    definition: Table,
    partitions: Mapping[str, PartitionWrite],
    wanted: Mapping[str, Listing],
) -> ShownTable | None:
    """Return the table that an attempt before left under the hidden name, with partitions that it had not made. None
    where there is none, or one of another state, which is dropped. `wanted` are the files to build, by partition."""
    catalog = context.side.catalog
    table = catalog.table(hidden)
    if table is None:
        return None
    names = catalog.partition_names(hidden) if partitions else ()
    shown = ShownTable(table, dict(catalog.partitions(hidden, names)) if names else {})
    read_rows(context.side, {hidden: shown})
    places = {"": location_of(definition)} | {name: location_of(one.definition) for name, one in partitions.items()}
    made_places = {"": location_of(table)} | {name: location_of(part) for name, part in shown.partitions.items()}
    is_of_state = all(
        {file.path for file in listing.files} <= {file.path for file in wanted[name].files}
        for name, listing in shown.listings.items()
        if name in wanted
    )
    if not is_of_state or not made_places.items() <= places.items():
        clear(context, hidden)
        return None
    missing = {name: write.definition for name, write in partitions.items() if name not in shown.partitions}
    for part in missing.values():
        remove_rows(context, location_of(part) or "")
    if missing:
        in_hidden = [replace(part, database=hidden.database, table=hidden.table) for part in missing.values()]
        context.add_partitions(hidden, hidden, in_hidden)
    shown.partitions |= missing
    return shown


def remove_rows(context: HopContext, location: str) -> None:
    """Remove what a dead process left in a directory that no table has yet."""
    names = context.side.storage.children(location) if location else ()
    context.side.storage.remove([join(location, name) for name in names if directory_of(name) is not None])


def rebuild(context: HopContext, operation: Rebuild, event_id: EventId) -> None:
    """Drop the table, and make another one of its name."""
    if operation.was is not None:
        drop_table(context, operation.was, event_id)
    parts = tuple((name, part) for name, part in operation.partitions if part is not None)
    build(context, HiddenBuild(operation.table, operation.head, parts), event_id)


def flip(context: HopContext, operation: PrepareFlipSweep, event_id: EventId) -> None:
    """Bring definitions, partitions and rows to a state, each in a call of its own, the rows of all partitions in one
    transaction. Everything is copied before the first call."""
    table, header = operation.table, operation.header
    before = context.shown_table(header.was if header is not None else table)
    added = new_partitions(context, table, before, operation.added)
    places = {**before.partitions, **{name: write.definition for name, write in added.items()}}
    head = header.head if header is not None and header.switch else None
    changes = changes_of(context, replace(before, partitions=places), head, (*operation.added, *operation.changed))
    rows = copy(context, {location_of(before.table) or "": list(changes.values())} if changes else {})
    if header is not None:
        alter_table(context, replace(header, switch=False))
    shown, target_name = context.shown_table(table), context.name_at_target(table)
    if added:
        context.add_partitions(table, target_name, definitions(added))
        remember(context, table, added)
    redefined = [(name, part) for name, part in operation.changed if part.version != BASE]
    altered = altered_partitions(context, table, shown, redefined, frozenset())
    if altered:
        context.alter_partitions(target_name, definitions(altered))
        remember(context, table, altered)
    put(context, {table: changes}, rows, event_id)
    if operation.doomed:
        context.drop_partitions(target_name, operation.doomed)
        forget(context, table, operation.doomed, event_id)
