"""One hop: stage its files, make its call, remember what the target shows now.

Every call sets the marks of what it writes in the same call. A call that finds the target otherwise than the plan
expected raises `Conflict`; the caller observes and plans again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, assert_never

from calque.core.image import EVENT, INCARNATION, STATISTICS, Marks, moved
from calque.core.kinds import obstacle
from calque.core.layout import external_location, join, natural_location
from calque.engine.observe import Shown, event_of
from calque.engine.stage import Placed, Wanted, stage, stage_append
from calque.engine.world import TargetSide
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Database, Partition, Table, is_view, location_of
from calque.model.ledger import ObjectRow
from calque.model.names import OURS, EventId, TableName
from calque.model.plan import (
    BASE,
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    Head,
    HiddenBuild,
    Hop,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
    Version,
)
from calque.model.policy import Limits
from calque.ports import Conflict


class Images(Protocol):
    """Definitions of the source by version."""

    def table(self, version: Version, /) -> Table: ...

    def partition(self, version: Version, /) -> Partition: ...


@dataclass(slots=True)
class Applied:
    """What the hops of a group did."""

    objects: list[ObjectRow] = field(default_factory=list)
    calls: int = 0
    files: int = 0
    bytes: int = 0


T = TypeVar("T")


@dataclass(slots=True)
class Applier:
    """Applies hops of one group. `shown` is what the target has, by the source's names; `listing` gives the source's
    files of a content."""

    side: TargetSide
    images: Images
    listing: Callable[[Data], Listing]
    shown: dict[TableName, Shown | None]
    last: Hop | None = None
    """The group's last hop: with `drops = "keep"` a table that ends absent stays."""
    applied: Applied = field(default_factory=Applied)

    def run(self, hop: Hop) -> None:
        """Do one hop. Raises `Conflict`, `ContentLost`."""
        operation = hop.operation
        match operation:
            case CreateTable(table, head):
                self.create(table, head, ())
            case HiddenBuild(table, head, partitions):
                self.create(table, head, partitions)
            case AlterTable():
                self.alter(operation)
            case DropTable(table):
                if self.side.policy.drops == "keep" and hop == self.last:
                    return
                self.call(lambda: self.side.catalog.drop_table(self.at(table)))
                self.record(table, "", self.seen(table).incarnation(), hop.to_event, "drop_table")
                self.shown[table] = None
            case AddPartitions(table, partitions):
                self.add(table, partitions)
            case AlterPartitions(table, partitions, switched):
                self.alter_partitions(table, partitions, switched)
            case RenamePartition():
                self.rename_partition(operation)
            case DropPartitions(table, names):
                self.drop_partitions(table, names, hop.to_event)
            case Publish():
                self.publish(operation)
            case PrepareFlipSweep():
                self.flip(operation, hop.to_event)
            case Rebuild():
                self.rebuild(operation, hop.to_event)
            case CommitTable():
                raise NotImplementedError
            case _:
                assert_never(operation)

    # Tables

    def create(self, table: TableName, head: Head, partitions: Sequence[tuple[str, Part]]) -> None:
        """A new table; with partitions it is built hidden, then renamed in."""
        definition, files = self.new_table(table, head)
        if not partitions:
            self.call(lambda: self.side.catalog.create_table(definition))
            self.shown[table] = Shown(definition)
        else:
            self.shown[table] = Shown(definition)
            self.build(table, definition, self.new_partitions(table, partitions, head.incarnation))
        if head.data is not None:
            self.shown_listing(table, "", files)
        self.record_head(table, head, "create_table", files)

    def build(self, table: TableName, definition: Table, partitions: Mapping[str, Partition]) -> None:
        """Build `definition` with `partitions` under a hidden name, and rename it in by one call."""
        hidden = hidden_name(self.at(table), self.seen(table).incarnation())
        ensure_hidden_database(self.side)
        if self.side.catalog.table(hidden) is not None:
            self.call(lambda: self.side.catalog.drop_table(hidden))
        self.call(
            lambda: self.side.catalog.create_table(replace(definition, database=hidden.database, name=hidden.table))
        )
        inside = [replace(part, database=hidden.database, table=hidden.table) for part in partitions.values()]
        for batch in batches(inside, self.limits().add_partitions):
            self.call(lambda batch=batch: self.side.catalog.add_partitions(hidden, batch))  # type: ignore[misc]
        self.call(lambda: self.side.catalog.alter_table(hidden, definition))
        self.seen(table).partitions.update(partitions)

    def new_table(self, table: TableName, head: Head) -> tuple[Table, Placed]:
        """The definition of a table that is not there yet, its files staged."""
        source = self.replicated(head.version)
        placed = Placed("", ())
        if not is_view(source):
            placed = self.root(table, source, head)
        marks = Marks(head.since, head.incarnation)
        return self.side.imaging.table(source, marks, placed.location or None), placed

    def root(self, table: TableName, source: Table, head: Head) -> Placed:
        """Where the table is, with its files when it is a plain one."""
        listing = self.listing(head.data) if head.data is not None else Listing(location_of(source) or "", ())
        if head.data is None and self.side.policy.data == "none":
            return Placed(location_of(source) or "", ())
        claim = claim_of(head.incarnation, source.create_time)
        wanted = Wanted(listing, self.natural(table, source), self.at(table), "", head.incarnation, head.since, claim)
        return self.staged([wanted])[0]

    def natural(self, table: TableName, source: Table) -> str:
        policy, at = self.side.policy, self.at(table)
        if source.type == "EXTERNAL_TABLE" and (location := location_of(source)):
            outside = external_location(location, policy.external_base, policy.locations)
            if outside is not None:
                return outside
        return natural_location(policy.warehouse, at.database, at.table)

    def alter(self, operation: AlterTable) -> None:
        """A new definition, name, or content of a plain table."""
        table, head = operation.table, operation.head
        shown = self.seen(operation.was)
        placed: Placed | None = None
        location = location_of(shown.table)
        if operation.switch and head.data is not None:
            wanted = Wanted(
                self.listing(head.data), None, self.at(table), "", head.incarnation or shown.incarnation(), head.since
            )
            placed = self.staged([wanted])[0]
            location = placed.location
        definition = self.altered(shown.table, head, location, shown.incarnation())
        self.call(
            lambda: self.side.catalog.alter_table(
                self.at(operation.was),
                definition,
                cascade=operation.cascade,
                expected_event=(shown.table.parameters or {}).get(EVENT, ""),
            )
        )
        self.shown[operation.was] = None
        partitions = {name: followed(part, definition, operation.cascade) for name, part in shown.partitions.items()}
        self.shown[table] = replace(shown, table=definition, partitions=partitions)
        if operation.was != table:
            self.record(operation.was, "", shown.incarnation(), head.since, "rename_away")
        change = "rename_table" if operation.was != table else "alter_table"
        if placed is not None:
            self.shown_listing(table, "", placed)
        self.record_head(table, head, change, placed)

    def altered(self, shown: Table, head: Head, location: str | None, incarnation: str) -> Table:
        """The definition after an alteration; one that the target showed before only changes place and mark."""
        if head.version == BASE:
            parameters = {**(shown.parameters or {}), EVENT: str(head.since or event_of(shown.parameters))}
            return replace(shown, parameters=parameters, storage=moved(shown.storage, location))
        source = self.replicated(head.version)
        return self.side.imaging.table(source, Marks(head.since, head.incarnation or incarnation), location)

    def replicated(self, version: Version) -> Table:
        """The source's definition. `Refused` for a kind of table that is not replicated."""
        source = self.images.table(version)
        if problem := obstacle(source):
            raise Refused(problem)
        return source

    # Partitions

    def add(self, table: TableName, partitions: Sequence[tuple[str, Part]]) -> None:
        added = self.new_partitions(table, partitions, self.seen(table).incarnation())
        for batch in batches(list(added.values()), self.limits().add_partitions):
            self.call(lambda batch=batch: self.side.catalog.add_partitions(self.at(table), batch))  # type: ignore[misc]
        self.seen(table).partitions.update(added)

    def new_partitions(
        self, table: TableName, partitions: Sequence[tuple[str, Part]], incarnation: str
    ) -> dict[str, Partition]:
        """Definitions of partitions that are not there yet, their files staged."""
        root = location_of(self.seen(table).table) or ""
        stored = [(name, part) for name, part in partitions if part.data.location]
        staged = self.staged(
            [
                Wanted(
                    self.listing(part.data),
                    join(root, name),
                    self.at(table),
                    name,
                    incarnation,
                    part.since,
                    claim_of(part.incarnation or f"moved{part.since}", self.created(part)),
                )
                for name, part in stored
            ]
        )
        placed = {name: place for (name, _), place in zip(stored, staged, strict=True)}
        found = {}
        for name, part in partitions:
            place = placed.get(name, Placed("", ()))
            marked = self.marked(table, part)
            image = self.images.partition(part.version)
            marks = Marks(part.since, marked.incarnation)
            found[name] = self.side.imaging.partition(image, table, marks, place.location or None)
            self.shown_listing(table, name, place)
            self.record_part(table, name, marked, "add_partition", place)
        return found

    def created(self, part: Part) -> int | None:
        return self.images.partition(part.version).create_time

    def marked(self, table: TableName, part: Part) -> Part:
        """The part with the incarnation that the target shows, when it was there under another name."""
        there = self.seen(table).partitions.get(part.lineage)
        if part.incarnation or there is None:
            return part
        return replace(part, incarnation=(there.parameters or {}).get(INCARNATION, ""))

    def alter_partitions(
        self, table: TableName, partitions: Sequence[tuple[str, Part]], switched: frozenset[str]
    ) -> None:
        altered = self.altered_partitions(table, partitions, switched)
        for batch in batches(list(altered.values()), self.limits().alter_partitions):
            self.call(lambda batch=batch: self.side.catalog.alter_partitions(self.at(table), batch))  # type: ignore[misc]
        self.seen(table).partitions.update(altered)

    def altered_partitions(
        self, table: TableName, partitions: Sequence[tuple[str, Part]], switched: frozenset[str]
    ) -> dict[str, Partition]:
        """New definitions of partitions that are there; `switched` ones get a directory of their own."""
        shown = self.seen(table)
        to_stage = [(name, part) for name, part in partitions if name in switched]
        placed = dict(
            zip(
                [name for name, _ in to_stage],
                self.staged(
                    [
                        Wanted(self.listing(part.data), None, self.at(table), name, shown.incarnation(), part.since)
                        for name, part in to_stage
                    ]
                ),
                strict=True,
            )
        )
        found = {}
        for name, part in partitions:
            there = shown.partitions[name]
            location = placed[name].location if name in placed else location_of(there)
            found[name] = self.altered_partition(table, there, part, location)
            if name in placed:
                self.shown_listing(table, name, placed[name])
            self.record_part(table, name, part, "alter_partition", placed.get(name))
        return found

    def altered_partition(self, table: TableName, there: Partition, part: Part, location: str | None) -> Partition:
        if part.version == BASE:
            parameters = {**(there.parameters or {}), EVENT: str(part.since or event_of(there.parameters))}
            return replace(there, parameters=parameters, storage=moved(there.storage, location))
        incarnation = part.incarnation or (there.parameters or {}).get(INCARNATION, "")
        source = self.images.partition(part.version)
        return self.side.imaging.partition(source, table, Marks(part.since, incarnation), location)

    def rename_partition(self, operation: RenamePartition) -> None:
        table, part = operation.table, operation.part
        shown = self.seen(table)
        there = shown.partitions[operation.was]
        renamed = self.altered_partition(table, there, part, location_of(there))
        self.call(lambda: self.side.catalog.rename_partition(self.at(table), there.values, renamed))
        del shown.partitions[operation.was]
        shown.partitions[operation.name] = renamed
        if operation.was in shown.listings:
            shown.listings[operation.name] = shown.listings.pop(operation.was)
        self.record(table, operation.was, part.incarnation, part.since, "rename_away")
        self.record_part(table, operation.name, part, "rename_partition", None)

    def drop_partitions(self, table: TableName, names: Sequence[str], event_id: EventId) -> None:
        for batch in batches(list(names), self.limits().drop_partitions):
            self.call(lambda batch=batch: self.side.catalog.drop_partitions(self.at(table), batch))  # type: ignore[misc]
        shown = self.seen(table)
        for name in names:
            there = shown.partitions.pop(name, None)
            incarnation = (there.parameters or {}).get(INCARNATION, "") if there else ""
            self.record(table, name, incarnation, event_id, "drop_partition")

    # Files

    def publish(self, operation: Publish) -> None:
        """Append files to a live directory, in order."""
        table, partition = operation.table, operation.partition
        shown = self.seen(table)
        there = shown.listings[partition]
        append = stage_append(self.side, there, self.listing(operation.data), operation.since)
        if append.renames:
            self.side.storage.publish(append.renames)
        self.count(append.placed)
        files = merged(self.known_files(table, partition, there), append.placed.files)
        self.shown_listing(table, partition, Placed(there.location, files))
        incarnation = shown.incarnation()
        if partition:
            incarnation = (shown.partitions[partition].parameters or {}).get(INCARNATION, "")
        self.record(table, partition, incarnation, operation.since, "append", Placed(there.location, files))

    def known_files(self, table: TableName, partition: str, there: Listing) -> tuple[File, ...]:
        """The files of a live directory with the checksums that the ledger remembers."""
        row = self.side.ledger.latest_objects([(*table, partition)]).get((*table, partition))
        known = {(file.path, file.size): file.checksum for file in row.files} if row else {}
        return tuple(replace(file, checksum=known.get((file.path, file.size))) for file in there.files)

    # Bridges

    def flip(self, operation: PrepareFlipSweep, event_id: EventId) -> None:
        """New partitions first point at an empty directory; one call switches new, changed and doomed together."""
        table = operation.table
        shown = self.seen(table)
        empty = join(natural_location(self.side.policy.warehouse, OURS), "empty")
        self.side.storage.make_directories([empty])
        added = self.new_partitions(table, operation.added, shown.incarnation()) if operation.added else {}
        waiting = [replace(part, storage=moved(part.storage, empty)) for part in added.values()]
        for batch in batches(waiting, self.limits().add_partitions):
            self.call(lambda batch=batch: self.side.catalog.add_partitions(self.at(table), batch))  # type: ignore[misc]
        different = {name for name, part in operation.changed if self.listing(part.data) != shown.listings.get(name)}
        changed = self.altered_partitions(table, operation.changed, self.to_switch(table, operation.changed, different))
        doomed = {
            name: replace(shown.partitions[name], storage=moved(shown.partitions[name].storage, empty))
            for name in operation.doomed
        }
        flipped = [*added.values(), *changed.values(), *doomed.values()]
        for batch in batches(flipped, self.limits().alter_partitions):
            self.call(lambda batch=batch: self.side.catalog.alter_partitions(self.at(table), batch))  # type: ignore[misc]
        shown.partitions.update(added)
        shown.partitions.update(changed)
        if operation.doomed:
            self.drop_partitions(table, operation.doomed, event_id)

    def to_switch(
        self, table: TableName, partitions: Sequence[tuple[str, Part]], candidates: Iterable[str]
    ) -> frozenset[str]:
        """Which of the partitions have other files than the target shows."""
        shown = self.seen(table)
        wanted = {name: self.listing(part.data).fingerprint() for name, part in partitions if name in set(candidates)}
        return frozenset(
            name
            for name, fingerprint in wanted.items()
            if name not in shown.listings or shown.listings[name].fingerprint() != fingerprint
        )

    def rebuild(self, operation: Rebuild, event_id: EventId) -> None:
        """Build the whole table hidden over the same files, rename the old away and the new in."""
        table, was = operation.table, operation.was
        old = self.seen(was) if was is not None else None
        if operation.whole or old is None:
            definition, placed = self.new_table(table, operation.head)
            self.shown[table] = Shown(definition)
            kept: dict[str, Partition] = {}
        else:
            kept = self.every_partition(was or table)
            definition, placed = self.rebuilt_table(operation, old), Placed("", ())
            self.shown[table] = Shown(definition, kept, old.listings)
        parts = [(name, part) for name, part in operation.partitions if part is not None]
        new = [(name, part) for name, part in parts if name not in kept]
        altered = [(name, part) for name, part in parts if name in kept]
        partitions = {name: part for name, part in kept.items() if (name, None) not in operation.partitions}
        partitions |= self.altered_partitions(
            table, altered, self.to_switch(table, altered, [name for name, _ in altered])
        )
        partitions |= self.new_partitions(table, new, operation.head.incarnation or self.seen(table).incarnation())
        versions = {name: part.version.event_id for name, part in parts}
        partitions = {
            name: followed(part, definition, versions.get(name, 0) < operation.cascade)
            for name, part in partitions.items()
        }
        self.swap(table, was, definition, partitions, event_id)
        self.record_head(table, operation.head, "rebuild", placed)

    def rebuilt_table(self, operation: Rebuild, old: Shown) -> Table:
        head = operation.head
        location = location_of(old.table)
        if head.data is not None and head.data.event_id:
            listing = self.listing(head.data)
            there = old.listings.get("")
            if there is None or there.fingerprint() != listing.fingerprint():
                wanted = Wanted(listing, None, self.at(operation.table), "", old.incarnation(), head.since)
                location = self.staged([wanted])[0].location
        return self.altered(old.table, head, location, old.incarnation())

    def swap(
        self,
        table: TableName,
        was: TableName | None,
        definition: Table,
        partitions: Mapping[str, Partition],
        event_id: EventId,
    ) -> None:
        """Hidden build, then the old away, the new in, the old dropped."""
        at, listings = self.at(table), self.seen(table).listings
        hidden = hidden_name(at, f"{self.seen(table).incarnation()}_{event_id}")
        away = hidden_name(at, f"old_{event_id}")
        ensure_hidden_database(self.side)
        for name in (hidden, away):
            if self.side.catalog.table(name) is not None:
                self.call(lambda name=name: self.side.catalog.drop_table(name))  # type: ignore[misc]
        inside = replace(definition, database=hidden.database, name=hidden.table)
        self.call(lambda: self.side.catalog.create_table(inside))
        rows = [replace(part, database=hidden.database, table=hidden.table) for part in partitions.values()]
        for batch in batches(rows, self.limits().add_partitions):
            self.call(lambda batch=batch: self.side.catalog.add_partitions(hidden, batch))  # type: ignore[misc]
        if was is not None:
            current = self.side.catalog.table(self.at(was))
            if current is not None:
                gone = replace(current, database=away.database, name=away.table)
                self.call(lambda: self.side.catalog.alter_table(self.at(was), gone))
        self.call(lambda: self.side.catalog.alter_table(hidden, definition))
        if was is not None:
            self.call(lambda: self.side.catalog.drop_table(away))
            self.shown[was] = None
        self.shown[table] = Shown(definition, dict(partitions), listings)

    def every_partition(self, table: TableName) -> dict[str, Partition]:
        at = self.at(table)
        return dict(self.side.catalog.partitions(at, self.side.catalog.partition_names(at)))

    # Statistics

    def facets(self, table: TableName, versions: Mapping[str, Version]) -> None:
        """Write statistics of the table (`""`) and of partitions as their newest events have them."""
        shown = self.shown.get(table)
        if shown is None:
            return
        if "" in versions:
            image = self.images.table(versions[""])
            counted = with_statistics(shown.table.parameters, image.parameters, versions[""].event_id)
            definition = replace(shown.table, parameters=counted)
            self.call(lambda: self.side.catalog.alter_table(self.at(table), definition))
            shown.table = definition
        parts = {}
        for name, version in versions.items():
            if name and (there := shown.partitions.get(name)) is not None:
                image_parameters = self.images.partition(version).parameters
                counted = with_statistics(there.parameters, image_parameters, version.event_id)
                parts[name] = replace(there, parameters=counted)
        for batch in batches(list(parts.values()), self.limits().alter_partitions):
            self.call(lambda batch=batch: self.side.catalog.alter_partitions(self.at(table), batch))  # type: ignore[misc]
        shown.partitions.update(parts)

    # What all share

    def at(self, table: TableName) -> TableName:
        return self.side.admission.name_at_target(table)

    def seen(self, table: TableName) -> Shown:
        shown = self.shown.get(table)
        if shown is None:
            raise Conflict(f"{self.at(table)} is not there")
        return shown

    def limits(self) -> Limits:
        return self.side.catalog.abilities().limits

    def call(self, effect: Callable[[], T]) -> T:
        self.applied.calls += 1
        return effect()

    def staged(self, wanted: Sequence[Wanted]) -> list[Placed]:
        placed = stage(self.side, wanted)
        for item in placed:
            self.count(item)
        return placed

    def count(self, placed: Placed) -> None:
        self.applied.files += placed.files_copied
        self.applied.bytes += placed.bytes_moved

    def shown_listing(self, table: TableName, partition: str, placed: Placed) -> None:
        self.seen(table).listings[partition] = Listing(placed.location, tuple(sorted(placed.files)))

    def record_head(self, table: TableName, head: Head, change: str, placed: Placed | None) -> None:
        incarnation = head.incarnation or self.seen(table).incarnation()
        self.record(table, "", incarnation, head.since, change, placed)

    def record_part(self, table: TableName, name: str, part: Part, change: str, placed: Placed | None) -> None:
        self.record(table, name, part.incarnation, part.since, change, placed)

    def record(
        self,
        table: TableName,
        partition: str,
        incarnation: str,
        event_id: EventId,
        change: str,
        placed: Placed | None = None,
    ) -> None:
        """A row for the ledger; without `placed` the object's files are the ones it had."""
        row = ObjectRow(table.database, table.table, partition, incarnation, event_id, change)
        if placed is not None:
            row = replace(
                row,
                location=placed.location,
                files=placed.files,
                fingerprint=Listing(placed.location, tuple(sorted(placed.files))).fingerprint(),
            )
        self.applied.objects.append(row)


def followed(partition: Partition, table: Table, cascade: bool) -> Partition:
    """A partition after its table was altered: under its name, and with its columns where they cascade."""
    storage = partition.storage
    if cascade and storage is not None and table.storage is not None:
        storage = replace(storage, columns=table.storage.columns)
    return replace(partition, database=table.database, table=table.name, storage=storage)


def with_statistics(
    there: Mapping[str, str] | None, image: Mapping[str, str] | None, event_id: EventId
) -> dict[str, str]:
    """Parameters with the image's statistics in place of those that are there."""
    found = {key: value for key, value in (there or {}).items() if key not in STATISTICS}
    found |= {key: value for key, value in (image or {}).items() if key in STATISTICS}
    return found | {EVENT: str(max(event_id, event_of(there)))}


def claim_of(incarnation: str, create_time: int | None) -> str:
    """What tells an incarnation from others, the same after a crash: one that was read has another `r<id>` then."""
    return f"c{create_time or 0}" if incarnation.startswith("r") else incarnation


def merged(old: Sequence[File], new: Sequence[File]) -> tuple[File, ...]:
    return tuple(sorted([*old, *new], key=lambda file: file.path))


def hidden_name(at: TableName, token: str) -> TableName:
    """The name under which a table is built, in the hidden database."""
    return TableName(OURS, f"{OURS}_{at.database}_{at.table}_{token}"[:127])


def ensure_hidden_database(side: TargetSide) -> None:
    """Make the database for hidden builds and the lease where it is missing."""
    if side.catalog.database(OURS) is not None:
        return
    location = join(side.policy.warehouse, OURS)
    try:
        side.catalog.create_database(Database(OURS, "calque's own: hidden builds and the lease", location, {}))
    except Conflict:
        return


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
