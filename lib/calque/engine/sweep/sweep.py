"""Remove what nothing needs any more at one target, and from its ledger.

Only directories that calque made are looked at: natural ones say so by a hidden child, versioned ones by their place.
One goes when four things hold:

1. Nothing at the target refers to it, nor to anything below it.
2. Nothing that is still to be done may want it: it belongs to no event beyond the position and to no table that is set
   aside. So neither a copy that takes hours nor the repetition after a crash is hit.
3. No reader may be left in it: it was seen unreferenced `grace` ago by an earlier sweep, or the ledger proves that
   nothing lost its files since. While the target changes it proves nothing, and the first sweep only takes notes.
4. Nothing in it was written within `grace`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from calque.core.admit import Admission
from calque.core.image import INCARNATION, SOURCE, is_ours
from calque.core.layout import COPYING, STAGE, VERSIONS, join, place
from calque.engine.sides.sides import TargetSide
from calque.errors import Unavailable
from calque.model.hive import Table, is_partitioned, is_view, location_of
from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import OURS, EventId, TableName, table_name
from calque.ports import Catalog, Conflict, Journal, Ledger, Storage, StorageEntry

OWNER = f"{OURS}_owner."
DATABASE = ".db"
VERSION = re.compile(r"([0-9]+)(?:\.[0-9]+){0,3}")
"""An event id; then which attempt, or `.0.` and the number of a scan, and which attempt."""
KEEPING = frozenset({"create_table", "add_partition", "append", "adopt"})
"""Changes after which no directory is left that was shown before."""
SETTLED = frozenset({TableState.LIVE, TableState.QUARANTINED})
TRIES = 10


@dataclass(frozen=True, slots=True)
class RemovedItem:
    """`what` is "directory" (replaced, dropped, or never used), "staging" (copies that were never published), or
    "hidden table" (by its name: one that a death left half-built, or renamed away)."""

    location: str
    what: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep of one target did. `noted` are the directories that nothing refers to and that stay for now, each
    with the time by which that was so (nanoseconds): the next sweep wants it back."""

    removed: tuple[RemovedItem, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)
    epochs: int = 0


def sweep_target(
    side: TargetSide,
    journal: Journal,
    now_ns: int,
    noted: Mapping[str, int],
    others: Sequence[Admission] = (),
    held_ns: int | None = None,
) -> SweepResult:
    """Sweep one target. `noted` is what its last sweep returned; `others` are the admissions of other targets whose
    warehouse overlaps this one's: what they may have made is left to them. What was shown at `held_ns` or later is held
    by readers, and stays. A target without epochs, or whose data stay
    at the source, keeps all. Raises `Unavailable` and `Refused`; what was removed by then is gone."""
    standing = standing_of(side.ledger, journal)
    if standing is None or side.policy.data == "none":
        return SweepResult(noted=noted)
    before_ns = now_ns - int(side.policy.grace * 1e9)
    before_ns = before_ns if held_ns is None else min(before_ns, held_ns)
    hidden = hidden_tables(side) if standing.idle else []
    unneeded = UnreferencedDirectories(side, standing, references_of(side), before_ns, others)
    unneeded.look()
    if not unneeded.directories and not unneeded.staging and not hidden:
        return SweepResult(epochs=forget_epochs(side.ledger, before_ns))
    # The first look was no snapshot: a rename under it hides a table. A second one has to miss the same.
    references = references_of(side)
    again = standing_of(side.ledger, journal)
    doubtful = again is None or not again.aside <= standing.aside
    since = ended_ns(side.ledger, before_ns) if standing.idle and again == standing else now_ns
    kept: dict[str, int] = {}
    removed = [remove_staging(side.storage, node) for node in unneeded.staging]
    for name in hidden:
        first = noted.get(str(name), since)
        if again == standing and first <= before_ns:
            removed.append(drop_hidden(side.catalog, name))
        else:
            kept[str(name)] = first
    for node in unneeded.directories:
        if references.within(node.key):
            continue
        first = noted.get(node.key, since)
        if not doubtful and first <= before_ns and node.newest_ns() <= before_ns:
            removed.append(remove_directory(side.storage, node))
        else:
            kept[node.key] = first
    return SweepResult(tuple(removed), kept, forget_epochs(side.ledger, before_ns))


# What is still to be done


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """Where a target is. `aside` are the tables (at the source) that are not live: reads of them may want any directory
    of theirs. `idle`: everything that was captured is shown, and nothing is being read."""

    epoch: int
    position: EventId
    aside: frozenset[TableName]
    idle: bool

    def is_pending(self, node: DirectoryEntry) -> bool:
        """Whether an event that the target does not show yet may have made the directory."""
        return node.newest_event() > self.position


def standing_of(ledger: Ledger, journal: Journal) -> TargetPosition | None:
    """None before the first epoch."""
    epoch = ledger.last_epoch()
    if epoch is None:
        return None
    rows = [row for row in ledger.tables().values() if isinstance(row, TableRow)]
    aside = frozenset(row.name for row in rows if row.state is not TableState.LIVE)
    settled = all(row.state in SETTLED for row in rows)
    return TargetPosition(epoch.epoch, epoch.event_id, aside, settled and (journal.last() or 0) <= epoch.event_id)


def ended_ns(ledger: Ledger, after_ns: int) -> int:
    """When the newest epoch was published that may have taken a directory from readers; `after_ns` when none since."""
    for epoch in reversed(ledger.epochs()):
        if published_ns(epoch) <= after_ns:
            break
        if any(row.change not in KEEPING for row in ledger.objects(epoch.epoch)):
            return published_ns(epoch)
    return after_ns


def published_ns(epoch: Epoch) -> int:
    return int(datetime.fromisoformat(epoch.published_at).timestamp() * 1000) * 1_000_000


def hidden_tables(side: TargetSide) -> list[TableName]:
    """Tables in the hidden database that this target built: when nothing is to be done nobody builds them."""
    names = (table_name(OURS, table) for table in side.catalog.tables(OURS))
    tables = ((name, side.catalog.table(name)) for name in names)
    return [name for name, table in tables if table is not None and is_built_for(side, name, table)]


def is_built_for(side: TargetSide, name: TableName, table: Table) -> bool:
    """Whether the target takes the table that the hidden one says it is of, under the name that it was built for."""
    if not is_ours(table.parameters, side.policy.source):
        return False
    said = (table.parameters or {})[SOURCE].partition(":")[2]
    at = side.admission.name_at_target(table_name(*said.partition(".")[::2]))
    return name.table.startswith(f"{OURS}_{at.database}_{at.table}_")


def drop_hidden(catalog: Catalog, name: TableName) -> RemovedItem:
    with suppress(Conflict):
        catalog.drop_table(name)
    return RemovedItem(str(name), "hidden table", 0, 0)


# What is referred to


@dataclass(slots=True)
class ReferencedLocations:
    """Locations of tables and partitions. In a leaf (a plain table or a partition) everything belongs to it; below the
    root of a partitioned table other directories may lie. `roots` are the places of single tables."""

    leaves: set[str] = field(default_factory=set)
    roots: dict[TableName, tuple[str, str]] = field(default_factory=dict)
    """Location and incarnation of each table of ours, by its name at the target."""
    sorted: list[str] = field(default_factory=list)

    def within(self, key: str) -> bool:
        """Whether anything refers to the directory or to something below it."""
        return any(
            at < len(self.sorted) and (self.sorted[at] == key or self.sorted[at].startswith(f"{key}/"))
            for at in (bisect_left(self.sorted, key), bisect_left(self.sorted, f"{key}/"))
        )

    def above(self, key: str) -> bool:
        """Whether the directory lies in a leaf."""
        parts = key.split("/")
        return any("/".join(parts[:end]) in self.leaves for end in range(1, len(parts)))


def references_of(side: TargetSide) -> ReferencedLocations:
    """Every table at the target, whosever it is, and every partition of ours and of hidden builds.

    Each database by itself, as it was between two equal lists of its tables: what goes from one database to another
    meanwhile may be missed, once. Raises `Unavailable` when the tables of one come and go too fast for several looks.
    """
    found, everything = ReferencedLocations(), set[str]()
    for database in sorted(side.catalog.databases()):
        places: Places = {}
        for _ in range(TRIES):
            names = sorted(side.catalog.tables(database))
            tables = side.catalog.headers(database, names)
            part = ReferencedLocations()
            for name, table in tables.items():
                add_references(side, table_name(database, name), table, part, everything, places)
            if len(tables) == len(names) and sorted(side.catalog.tables(database)) == names:
                found.leaves |= part.leaves
                found.roots |= part.roots
                break
        else:
            raise Unavailable(
                f"The tables of {database} at {side.policy.target} can't be listed",
                "they are made, renamed and dropped faster than they can be read",
                "Sweep again when less is going on",
            )
    found.sorted = sorted(everything)
    return found


Places = dict[tuple[TableName, str, str], set[str]]
"""Of the partitions of a table, by its name, location and incarnation. Read once: later ones belong to later events."""


def add_references(
    side: TargetSide, name: TableName, table: Table, found: ReferencedLocations, everything: set[str], places: Places
) -> None:
    location = location_of(table)
    if is_view(table) or not location:
        return
    root, incarnation = key_of(location), (table.parameters or {}).get(INCARNATION, "")
    everything.add(root)
    if not is_partitioned(table):
        found.leaves.add(root)
    ours = is_ours(table.parameters, side.policy.source)
    if ours:
        found.roots[name] = root, incarnation
    if is_partitioned(table) and (ours or name.database == OURS):
        key = name, root, incarnation
        if key not in places:
            partitions = side.catalog.partitions(name, side.catalog.partition_names(name))
            places[key] = {key_of(at) for partition in partitions.values() if (at := location_of(partition))}
        found.leaves |= places[key]
        everything |= places[key]


# What lies there


@dataclass(slots=True)
class DirectoryEntry:
    """A directory and what is in it. `event` is the one that made it where its name says so, else 0."""

    location: str
    changed_ns: int
    files: list[StorageEntry] = field(default_factory=list)
    directories: list[DirectoryEntry] = field(default_factory=list)
    event: EventId = 0

    @property
    def key(self) -> str:
        return key_of(self.location)

    @property
    def name(self) -> str:
        return self.location.rsplit("/", 1)[1]

    def is_claimed(self) -> bool:
        """Whether it carries the mark of an owner: calque made it."""
        return any(child.name.startswith(OWNER) for child in self.directories)

    def claimed_at(self) -> EventId:
        """The event id in the owner's mark; 0 where it has none."""
        marks = [child.name for child in self.directories if child.name.startswith(OWNER)]
        return max((event_of(mark.removeprefix(OWNER)) for mark in marks), default=0)

    def newest_event(self) -> EventId:
        """The newest event that made the directory or one below it."""
        return max([self.event, self.claimed_at(), *(child.newest_event() for child in self.directories)])

    def newest_ns(self) -> int:
        times = [file.modified_ns for file in self.files] + [child.newest_ns() for child in self.directories]
        return max([self.changed_ns, *times])

    def content(self) -> tuple[int, int]:
        """How many files with how many bytes."""
        below = [child.content() for child in self.directories]
        files = len(self.files) + sum(count for count, _ in below)
        return files, sum(file.size for file in self.files) + sum(size for _, size in below)


def node_of(storage: Storage, location: str, changed_ns: int) -> DirectoryEntry:
    node = DirectoryEntry(location, changed_ns)
    for entry in storage.entries(location):
        if entry.directory:
            node.directories.append(node_of(storage, join(location, entry.name), entry.modified_ns))
        else:
            node.files.append(entry)
    return node


@dataclass(slots=True)
class UnreferencedDirectories:
    """Walks the target's directories, and finds what nothing refers to: `directories` of ours, and old `staging`."""

    side: TargetSide
    standing: TargetPosition
    references: ReferencedLocations
    before_ns: int
    others: Sequence[Admission]
    directories: list[DirectoryEntry] = field(default_factory=list)
    staging: list[DirectoryEntry] = field(default_factory=list)

    def look(self) -> None:
        warehouse = self.side.policy.warehouse
        for database in self.side.storage.entries(warehouse):
            if not database.directory:
                self.unfinished(warehouse, database)
            elif database.name.endswith(DATABASE) and not database.name.startswith(OURS):
                self.look_into(database.name.removesuffix(DATABASE), join(warehouse, database.name))
        base = self.side.policy.external_base
        if base and not self.others and not self.standing.aside:
            # Nothing there tells tables apart, so it is left alone while one is read or another target may own some.
            self.natural(node_of(self.side.storage, base, 0), self.references.above(key_of(base)))

    def look_into(self, database: str, location: str) -> None:
        for entry in self.side.storage.entries(location):
            below = join(location, entry.name)
            if not entry.directory:
                continue
            if entry.name == VERSIONS:
                for table in self.side.storage.entries(below):
                    name, _, incarnation = table.name.partition(".")
                    if table.directory and self.is_settled(TableName(database, name), incarnation):
                        self.versions(
                            node_of(self.side.storage, join(below, table.name), table.modified_ns), incarnation
                        )
            elif not entry.name.startswith(("_", ".")) and self.is_settled(TableName(database, entry.name)):
                self.natural(node_of(self.side.storage, below, entry.modified_ns), self.references.above(key_of(below)))

    def is_settled(self, at: TableName, incarnation: str = "") -> bool:
        """Whether what lies under this name is this target's alone, and no table is set aside that may want it."""
        source = self.side.admission.source_of(at)
        if source is None or source in self.standing.aside or any(other.source_of(at) for other in self.others):
            return False
        return not incarnation or incarnation not in self.incarnations_aside()

    def incarnations_aside(self) -> set[str]:
        return {incarnation for _, incarnation in self.places_aside() if incarnation}

    def places_aside(self) -> list[tuple[str, str]]:
        names = [self.side.admission.name_at_target(name) for name in self.standing.aside]
        return [self.references.roots[name] for name in names if name in self.references.roots]

    def versions(self, table: DirectoryEntry, incarnation: str) -> None:
        """The versioned directories of one incarnation of a table."""
        for node in versions_below(table):
            in_leaf = self.references.above(node.key)
            node.event = max(int(node.name.partition(".")[0]), event_of(incarnation))
            if self.references.within(node.key) or in_leaf:
                self.inside(node, in_leaf)
            elif not self.standing.is_pending(node):
                self.directories.append(node)

    def natural(self, node: DirectoryEntry, in_leaf: bool) -> None:
        """A table's own directory, or a partition's below it."""
        if any(node.key == root or node.key.startswith(f"{root}/") for root, _ in self.places_aside()):
            return
        if not node.is_claimed() or in_leaf or self.references.within(node.key):
            self.inside(node, in_leaf)
        elif not self.standing.is_pending(node):
            self.directories.append(node)

    def inside(self, node: DirectoryEntry, in_leaf: bool) -> None:
        """A directory that stays: old leftovers of copying, and partitions below that nothing refers to."""
        in_leaf = in_leaf or node.key in self.references.leaves
        for child in node.directories:
            if child.name == STAGE:
                for staged in child.directories:
                    staged.event = event_of(staged.name)
                    if not self.standing.is_pending(staged) and staged.newest_ns() <= self.before_ns:
                        self.staging.append(staged)
            elif not child.name.startswith(OWNER):
                self.natural(child, in_leaf)
        if node.claimed_at() > self.standing.position:
            return
        for file in node.files:
            self.unfinished(node.location, file)

    def unfinished(self, location: str, file: StorageEntry) -> None:
        """A file in this directory, which may be one that nobody writes any more."""
        if file.name.startswith(COPYING) and file.modified_ns <= self.before_ns:
            self.staging.append(DirectoryEntry(join(location, file.name), file.modified_ns, [file]))


def versions_below(table: DirectoryEntry) -> Iterator[DirectoryEntry]:
    """`<partition or "data">/<event id>` below a table's directory of versions."""
    for child in table.directories:
        for node in child.directories:
            if VERSION.fullmatch(node.name):
                yield node
        yield from versions_below(
            DirectoryEntry(
                child.location, 0, directories=[node for node in child.directories if not VERSION.fullmatch(node.name)]
            )
        )


def event_of(text: str) -> EventId:
    """The event id in an incarnation (`812`, `r812`), a claim (`moved812` too) or the name of a staging directory
    (`812.7`); 0 without one."""
    digits = text.removeprefix("r").removeprefix("moved").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def key_of(location: str) -> str:
    """One spelling for one place."""
    return str(place(location))


# Removing


def remove_directory(storage: Storage, node: DirectoryEntry) -> RemovedItem:
    """The mark of its owner goes last, so that a sweep that dies is finished by the next one."""
    names = [*(file.name for file in node.files), *(child.name for child in node.directories)]
    storage.remove([join(node.location, name) for name in names if not name.startswith(OWNER)])
    storage.remove([node.location])
    return RemovedItem(node.location, "directory", *node.content())


def remove_staging(storage: Storage, node: DirectoryEntry) -> RemovedItem:
    storage.remove([node.location])
    return RemovedItem(node.location, "staging", *node.content())


# Records


def forget_epochs(ledger: Ledger, before_ns: int) -> int:
    """Forget epochs that were superseded before then. How many went."""
    old = [epoch.epoch for epoch in ledger.epochs() if published_ns(epoch) <= before_ns]
    return ledger.forget(old[-1]) if old else 0
