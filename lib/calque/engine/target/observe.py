"""Observation of the tables of a group at a target. They are read by name, with the touched partitions only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from calque.core.acid.contents import AcidLook, content_at, flattened
from calque.core.acid.directories import AcidDirectory
from calque.core.formats.bounded import number_of
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.layout import join
from calque.core.formats.symlinks import is_symlinks
from calque.core.images.image import DROPPED, EVENT, INCARNATION, SOURCE, source_mark
from calque.core.images.policies import marked
from calque.core.small_files.combined_note import as_stored
from calque.core.small_files.grouping import layout_of
from calque.core.states.locate import ObservedPart, ObservedTable
from calque.engine.sides.acid_looks import look_at
from calque.engine.sides.sides import TargetSide
from calque.model.files import File, Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import TableName
from calque.ports import Storage

NOT_FOLLOWED = (File("manifests that were not written for the target", 0, 0),)
"""A file that equals none of a source's. It stands for manifests that were not written for the target, and for rows of
which it can't be told which are seen."""
LookedTables = Mapping[TableName, Table | None]
"""Tables as the target had them a moment ago, by their names at the source; None for one that did not exist."""
NO_LOOKS: LookedTables = {}
AT_ONCE = 2000
"""The number of partitions that one call asks for without asking for their names first."""


@dataclass(slots=True)
class ShownTable:
    """One table as the target has it now: its definition and the partitions that were read. The hops of a window keep
    it up to date. `listings` are those of the target's own directories, by partition (`""`: a table without
    partitions)."""

    table: Table
    partitions: dict[str, Partition] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)

    def incarnation(self) -> str:
        return (self.table.parameters or {}).get(INCARNATION, "")


class NotOurReplica(Exception):
    """Raised where the object under a table's name at the target is not that table's replica; `mark` is its
    `calque.source`. `collides`: it is the replica of another table that the policy takes."""

    def __init__(self, table: TableName, at_target: TableName, mark: str, *, collides: bool) -> None:
        self.table, self.at_target = table, at_target
        super().__init__(
            f"{at_target} is the replica of {mark} already: two tables of the source go to one name; rename one of them"
            if collides
            else f"{at_target} exists at the target and is not ours (no matching calque.source): drop or rename it "
            "there, or take it over with `calque adopt`"
        )


class ForeignRows(NotOurReplica):
    """Raised where an ACID table of calque's at the target has rows that another writer put there."""

    def __init__(self, table: TableName, at_target: TableName, directory: str) -> None:
        self.table, self.at_target = table, at_target
        Exception.__init__(
            self,
            f"{at_target} has rows that calque did not write, in {directory}: save them if they count, and drop the "
            "table there, which calque then builds anew",
        )


def observe(
    side: TargetSide,
    names: Iterable[TableName],
    partitions: Mapping[TableName, Iterable[str]],
    with_files: bool = True,
    looked: LookedTables = NO_LOOKS,
) -> dict[TableName, ShownTable | None]:
    """Return the tables as the target has them, by their names at the source; None for one that does not exist.
    `partitions` are the names of partitions to read, by the names that their tables may have before or after renames.
    Tables that were `looked` at are not read again. Raises `NotOurReplica`."""
    shown: dict[TableName, ShownTable | None] = {}
    for name in names:
        at_target = side.admission.name_at_target(name)
        table = looked[name] if name in looked else side.catalog.table(at_target)
        if table is None:
            shown[name] = None
            continue
        mark = (table.parameters or {}).get(SOURCE, "")
        if mark != source_mark(side.policy.source, name):
            other = marked(mark, side.policy.source)
            raise NotOurReplica(name, at_target, mark, collides=other is not None and side.admission.takes(other))
        partition_names = sorted(partitions.get(name, ()))
        parts = side.catalog.partitions(at_target, partition_names) if partition_names and is_partitioned(table) else {}
        shown[name] = ShownTable(table, dict(parts))
    if with_files:
        read_files(side, shown)
    return shown


def every_partition(side: TargetSide, table: Table) -> Mapping[str, Partition]:
    """Return all partitions of a table at the target, by name."""
    few = side.catalog.few_partitions(table, AT_ONCE)
    if few is not None:
        return few
    target_name = TableName(table.database, table.name)
    return side.catalog.partitions(target_name, side.catalog.partition_names(target_name))


def read_files(side: TargetSide, shown: Mapping[TableName, ShownTable | None], *, with_foreign: bool = False) -> None:
    """List the directories of tables without partitions, and of the partitions that were read, and enter the listings
    in `shown`. Where the catalog itself knows the files (`Catalog.contents`), these are entered. Views and tables whose
    files stay at the source are left out, and so are Iceberg tables, whose definition says what is in them.
    `with_foreign` is as in `read_rows`, and so is what is raised."""
    locations: dict[tuple[TableName, str], str] = {}
    native: dict[TableName, ShownTable] = {}
    for name, table in shown.items():
        if table is None or is_view(table.table) or is_iceberg(table.table) or not side.admission.copies(name):
            continue
        if side.is_native(table.table):
            native[name] = table
            continue
        contents = side.catalog.contents(table.table, list(table.partitions))
        if contents is not None:
            table.listings.update(contents)
        elif is_partitioned(table.table):
            locations |= {(name, part): location_of(value) or "" for part, value in table.partitions.items()}
        else:
            locations[name, ""] = location_of(table.table) or ""
    if native:
        read_rows(side, native, with_foreign=with_foreign)
    listings = side.storage.list(sorted({location for location in locations.values() if location}))
    for (name, part), location in locations.items():
        shown_table = shown[name]
        if shown_table is not None and location:
            shown_table.listings[part] = believed(shown_table, part, listings[location])


def read_rows(side: TargetSide, tables: Mapping[TableName, ShownTable], *, with_foreign: bool = False) -> None:
    """Enter the files of ACID tables, by their names at the source, that a reader sees now, as listings of states have
    them (`core.acid.contents.flattened`). Raises `ForeignRows`, unless these are to be read `with_foreign` ones."""
    assert side.transactions is not None
    reader = side.transactions.reader
    states = reader.open_transactions()
    at_target = {name: TableName(one.table.database, one.table.name) for name, one in tables.items()}
    valid_of = reader.valid_write_ids(list(at_target.values()))
    for name, table in tables.items():
        valid = valid_of[at_target[name]]
        things = table.partitions if is_partitioned(table.table) else {"": table.table}
        places = {part: location_of(thing) or "" for part, thing in things.items()}
        looks = look_at(side.storage, filter(None, places.values()))
        for part, place in places.items():
            if place and not with_foreign and (foreign := foreign_rows(looks[place])) is not None:
                raise ForeignRows(name, at_target[name], join(place, foreign.name))
            content = (
                content_at(looks[place], valid, valid, states.is_committed, states.is_committed) if place else None
            )
            unknown = Listing(place, NOT_FOLLOWED)
            table.listings[part] = flattened(content, with_bases=True) if content is not None else unknown


def lost_row_files(storage: Storage, shown: Listing, *, with_times: bool) -> list[File]:
    """Return those of the files with rows of an ACID table that are not as its log says: gone, or of another size, or
    `with_times` of another time."""
    there = storage.files([file.path for file in shown.row_files])
    return [
        file
        for file in shown.row_files
        if file.path not in there
        or there[file.path].size != file.size
        or (with_times and there[file.path].modified_ns != file.modified_ns)
    ]


def distrust_lost_rows(storage: Storage, shown: ShownTable) -> None:
    """Enter in `shown` that it is not known which rows the partitions have whose files with rows are not as the log
    says."""
    for name, listing in shown.listings.items():
        if listing.row_files and lost_row_files(storage, listing, with_times=True):
            shown.listings[name] = replace(listing, files=NOT_FOLLOWED)


def foreign_rows(look: AcidLook) -> AcidDirectory | None:
    """Return a directory that calque did not make, if there is one: all of calque's, and those of compactions, are
    shown by a transaction that their names have. Those of open and aborted transactions count, because their write ids
    are the source's next ones."""
    return next((one for one in look.directories if one.visibility is None), None)


def believed(shown: ShownTable, partition: str, listing: Listing) -> Listing:
    """Return the listing that counts for the files. It is the one of the files that really lie there, where the
    definition gives files another meaning than when they were combined, for instance a header in each. Manifests that
    were not written for the target count as copies of none of the source's (`NOT_FOLLOWED`)."""
    combination, target_partition = listing.combination, shown.partitions.get(partition)
    if is_symlinks(target_partition or shown.table):
        is_followed = not listing.files or (combination is not None and combination.layout is None)
        return listing if is_followed else replace(listing, files=NOT_FOLLOWED, combination=None)
    if combination is None:
        return listing
    if combination.layout is None:
        return as_stored(listing)
    is_same = target_partition is not None and layout_of(shown.table, target_partition) is combination.layout
    return listing if is_same else as_stored(listing)


def as_observed(shown: ShownTable) -> ObservedTable:
    """Return the table in the terms of `core.states.locate`."""
    return ObservedTable(
        event_of(shown.table.parameters),
        shown.incarnation(),
        *content_of(shown, ""),
        {
            name: ObservedPart(
                max(event_of(part.parameters), event_of(part.parameters, DROPPED)),
                (part.parameters or {}).get(INCARNATION, ""),
                *content_of(shown, name),
            )
            for name, part in shown.partitions.items()
        },
    )


def content_of(shown: ShownTable, partition: str) -> tuple[str, int]:
    """Return the fingerprint of the target's own files, and their bytes."""
    listing = shown.listings.get(partition)
    return (listing.fingerprint(), listing.size) if listing is not None else ("", 0)


def event_of(parameters: Mapping[str, str] | None, mark: str = EVENT) -> int:
    return number_of((parameters or {}).get(mark, ""))
