"""Which of calque's directories at a target does nothing refer to?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from calque.core.admit import Admission
from calque.core.layout import COPYING, STAGE, VERSIONS, join
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.directory_tree import OWNER, DirectoryEntry, event_of, node_of
from calque.engine.sweep.references import ReferencedLocations, key_of
from calque.engine.sweep.target_position import TargetPosition
from calque.model.names import OURS, TableName
from calque.ports import StorageEntry

DATABASE = ".db"
VERSION = re.compile(r"([0-9]+)(?:\.[0-9]+){0,3}")
"""An event id; then which attempt, or `.0.` and the number of a scan, and which attempt."""


@dataclass(slots=True)
class UnreferencedDirectories:
    """Walks the target's directories, and finds what nothing refers to: `directories` of ours, and old `staging`."""

    side: TargetSide
    target_position: TargetPosition
    references: ReferencedLocations
    before_ns: int
    other_admissions: Sequence[Admission]
    directories: list[DirectoryEntry] = field(default_factory=list)
    staging: list[DirectoryEntry] = field(default_factory=list)

    def look(self) -> None:
        warehouse = self.side.policy.warehouse
        for database in self.side.storage.entries(warehouse):
            if not database.directory:
                self.unfinished(warehouse, database)
            elif database.name.endswith(DATABASE) and not database.name.startswith(OURS):
                self.look_into(database.name.removesuffix(DATABASE), join(warehouse, database.name))
        external_base = self.side.policy.external_base
        if external_base and not self.other_admissions and not self.target_position.set_aside:
            # Nothing there tells tables apart, so it is left alone while one is read or another target may own some.
            self.natural(node_of(self.side.storage, external_base, 0), self.references.above(key_of(external_base)))

    def look_into(self, database: str, location: str) -> None:
        for entry in self.side.storage.entries(location):
            entry_location = join(location, entry.name)
            if not entry.directory:
                continue
            if entry.name == VERSIONS:
                for table in self.side.storage.entries(entry_location):
                    name, _, incarnation = table.name.partition(".")
                    if table.directory and self.is_settled(TableName(database, name), incarnation):
                        self.versions(
                            node_of(self.side.storage, join(entry_location, table.name), table.modified_ns), incarnation
                        )
            elif not entry.name.startswith(("_", ".")) and self.is_settled(TableName(database, entry.name)):
                self.natural(
                    node_of(self.side.storage, entry_location, entry.modified_ns),
                    self.references.above(key_of(entry_location)),
                )

    def is_settled(self, target_name: TableName, incarnation: str = "") -> bool:
        """Whether what lies under this name is this target's alone, and no table is set aside that may want it."""
        source = self.side.admission.source_of(target_name)
        if (
            source is None
            or source in self.target_position.set_aside
            or any(admission.source_of(target_name) for admission in self.other_admissions)
        ):
            return False
        return not incarnation or incarnation not in self.incarnations_aside()

    def incarnations_aside(self) -> set[str]:
        return {incarnation for _, incarnation in self.places_aside() if incarnation}

    def places_aside(self) -> list[tuple[str, str]]:
        names = [self.side.admission.name_at_target(name) for name in self.target_position.set_aside]
        return [self.references.roots[name] for name in names if name in self.references.roots]

    def versions(self, table: DirectoryEntry, incarnation: str) -> None:
        """The versioned directories of one incarnation of a table."""
        for node in versions_below(table):
            in_leaf = self.references.above(node.key)
            node.event = max(int(node.name.partition(".")[0]), event_of(incarnation))
            if self.references.within(node.key) or in_leaf:
                self.inside(node, in_leaf)
            elif not self.target_position.is_pending(node):
                self.directories.append(node)

    def natural(self, node: DirectoryEntry, in_leaf: bool) -> None:
        """A table's own directory, or a partition's below it."""
        if any(node.key == root or node.key.startswith(f"{root}/") for root, _ in self.places_aside()):
            return
        if not node.is_claimed() or in_leaf or self.references.within(node.key):
            self.inside(node, in_leaf)
        elif not self.target_position.is_pending(node):
            self.directories.append(node)

    def inside(self, node: DirectoryEntry, in_leaf: bool) -> None:
        """A directory that stays: old leftovers of copying, and partitions below that nothing refers to."""
        in_leaf = in_leaf or node.key in self.references.leaves
        for child in node.directories:
            if child.name == STAGE:
                for staged in child.directories:
                    staged.event = event_of(staged.name)
                    if not self.target_position.is_pending(staged) and staged.newest_ns() <= self.before_ns:
                        self.staging.append(staged)
            elif child.name == VERSIONS:
                self.versions(child, "")
            elif not child.name.startswith(OWNER):
                self.natural(child, in_leaf)
        if node.claimed_at() > self.target_position.event_id:
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
