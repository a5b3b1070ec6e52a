"""The walk through a target's warehouse that finds directories which no ledger and no catalog know, and tells what they
are."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from calque.core.formats.layout import ACID_VERSIONS, COPYING, STAGE, VERSIONS, join
from calque.core.policy.admit import Admission
from calque.core.records.claims import ASIDE, OLD_MARK, is_mark
from calque.engine.files.claims import chain
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.candidates import ASIDE_REASON, DEATH, STAGING, Candidate, KeptPlace, Origin
from calque.engine.sweep.directory_tree import DirectoryEntry, node_of
from calque.engine.sweep.evidence import Evidence
from calque.engine.sweep.target_position import TargetPosition
from calque.engine.sweep.troubles import own_trouble
from calque.model.claims import Claim
from calque.model.names import OURS, TableName
from calque.ports import StorageEntry

DATABASE = ".db"
EVENT = re.compile(r"([0-9]+)")
OF_OTHERS = "an owner of before claims, or a ledger that is not this one's, made it"
NO_OWNER = "nobody has claimed it"
OLD = "a version of calque before claims made it, and no record names it"
UNTOLD = "its ledger does not say what became of it"


@dataclass(slots=True)
class WarehouseWalk:
    """One walk. `living_writer` is the process that may be writing at the target now, empty where there is none. What
    was written after `before_ns` (nanoseconds) is left alone. `recorded` are the keys of directories that records name.
    The walk finds directories that deaths left and leftovers of copying (`candidates`), and those that are
    `unknown`."""

    side: TargetSide
    evidence: Evidence
    position: TargetPosition
    other_admissions: Sequence[Admission]
    living_writer: str
    before_ns: int
    recorded: Collection[str]
    candidates: list[Candidate] = field(default_factory=list)
    unknown: list[Candidate] = field(default_factory=list)
    troubles: list[KeptPlace] = field(default_factory=list)
    """Directories that can't be looked at; nothing in them is a candidate."""

    def look(self) -> None:
        """Walk through the warehouse, and through `external_base` where no other target may own directories there.
        Raises `Refused` where the warehouse itself can't be listed, and `Unavailable`."""
        warehouse = self.side.policy.warehouse
        for database in self.side.storage.entries(warehouse):
            location = join(warehouse, database.name)
            with own_trouble(self.troubles, location):
                if not database.directory:
                    self.unfinished(location, database)
                elif database.name.endswith(DATABASE) and not database.name.startswith(OURS):
                    self.look_into(database.name.removesuffix(DATABASE), location)
        external_base = self.side.policy.external_base
        if external_base and not self.other_admissions:
            # Nothing there tells tables apart, so it is left alone while another target may own some.
            self.inside(external_base, self.side.storage.entries(external_base), False)

    def look_into(self, database: str, location: str) -> None:
        for entry in self.side.storage.entries(location):
            entry_location = join(location, entry.name)
            with own_trouble(self.troubles, entry_location):
                if not entry.directory:
                    self.unfinished(entry_location, entry)
                elif entry.name in (VERSIONS, ACID_VERSIONS):
                    self.versions_of(database, entry_location)
                elif entry.name.startswith(ASIDE):
                    self.aside(entry_location, entry)
                elif not entry.name.startswith(("_", ".")) and self.is_admitted(TableName(database, entry.name)):
                    self.directory(entry_location, entry, False)

    def versions_of(self, database: str, location: str) -> None:
        """Look at the versioned directories of the database's admitted tables, below `location`."""
        for table in self.side.storage.entries(location):
            name, _, _ = table.name.partition(".")
            if table.directory and self.is_admitted(TableName(database, name)):
                table_location = join(location, table.name)
                with own_trouble(self.troubles, table_location):
                    self.versions(table_location)

    def is_admitted(self, target_name: TableName) -> bool:
        """Tell whether this target, and no other one, takes a table under the name `target_name`."""
        source = self.side.admission.source_of(target_name)
        return source is not None and not any(admission.source_of(target_name) for admission in self.other_admissions)

    def versions(self, location: str) -> None:
        """Look at the directories of events below `location`, which is the directory of a table's versions or of one of
        its partitions' there."""
        for entry in self.side.storage.entries(location):
            child = join(location, entry.name)
            with own_trouble(self.troubles, child):
                if not entry.directory:
                    self.unfinished(child, entry)
                elif entry.name.startswith(ASIDE):
                    self.aside(child, entry)
                elif EVENT.match(entry.name):
                    self.directory(child, entry, False, is_version=True)
                else:
                    self.versions(child)

    def directory(self, location: str, entry: StorageEntry, in_leaf: bool, *, is_version: bool = False) -> None:
        """Look at a directory that may belong to an object. `in_leaf`: it lies in a directory of another table that
        reads all that lies below. `is_version`: its name is that of an event, as calque names the directories of
        versions, so that calque made it even if it has no claim."""
        key = self.evidence.spellings.key(location)
        in_leaf = in_leaf or key in self.evidence.references.leaves
        if self.evidence.is_living(key) or self.evidence.is_referenced(key):
            self.inside(location, self.side.storage.entries(location), in_leaf)
            return
        if key in self.recorded:
            return
        names = self.side.storage.children(location)
        if in_leaf and not any(is_mark(name) for name in names):
            return
        node = node_of(self.side.storage, location, entry.modified_ns)
        claims = chain(self.side.storage, location, names)
        taker = next((one for _, one in reversed(claims) if one is None or not one.removal), None)
        if taker is not None:
            self.claimed(node, taker)
        elif claims or any(name.startswith(OLD_MARK) for name in names) or is_version:
            self.report(node, "", UNTOLD if claims else OLD)
        elif list(node.claimed_below()):
            self.inside(location, self.side.storage.entries(location), in_leaf)
        else:
            self.report(node, "", NO_OWNER)

    def claimed(self, node: DirectoryEntry, claim: Claim) -> None:
        """Decide about a directory that is not shown and that no record names. `claim` is the last claim on it that is
        none of a removal."""
        places = self.evidence.ledgers.get(claim.ledger)
        if places is None:
            if claim.deployment == self.side.claims.deployment():
                self.report(node, claim.number, OF_OTHERS)
            return
        if claim.number in places.told:
            self.report(node, claim.number, UNTOLD)
        elif not self.is_wanted(claim) and node.newest_ns() <= self.before_ns:
            self.candidates.append(Candidate(node.location, Origin.DEATH, claim.number, claim.epoch, DEATH))
        below = list(node.claimed_below())
        if below:
            self.inside(node.location, self.side.storage.entries(node.location), False)

    def is_wanted(self, claim: Claim) -> bool:
        """Tell whether the process that made the claim may go on, or another process may take up where it died."""
        if claim.writer == self.living_writer or claim.epoch > self.position.epoch:
            return True
        database, _, table = claim.table.partition(".")
        source = self.side.admission.source_of(TableName(database, table))
        return source is not None and source in self.position.set_aside

    def inside(self, location: str, entries: Sequence[StorageEntry], in_leaf: bool) -> None:
        """Look at what lies in a directory that stays: leftovers of copying, and directories that may belong to no
        object."""
        for entry in entries:
            child = join(location, entry.name)
            with own_trouble(self.troubles, child):
                if not entry.directory:
                    self.unfinished(child, entry)
                elif entry.name == STAGE:
                    self.staged(child)
                elif entry.name in (VERSIONS, ACID_VERSIONS):
                    self.versions(child)
                elif entry.name.startswith(ASIDE):
                    self.aside(child, entry)
                elif not entry.name.startswith((OLD_MARK, "_", ".")):
                    self.directory(child, entry, in_leaf)

    def staged(self, location: str) -> None:
        """Find copies that were made for an append at an event that the target has passed, and that were never
        published."""
        for entry in self.side.storage.entries(location):
            match = EVENT.match(entry.name)
            if entry.directory and match and int(match[1]) <= self.position.event_id:
                node = node_of(self.side.storage, join(location, entry.name), entry.modified_ns)
                if node.newest_ns() <= self.before_ns:
                    self.candidates.append(Candidate(node.location, Origin.STAGING, "", None, STAGING))

    def unfinished(self, location: str, file: StorageEntry) -> None:
        """Make a candidate of the file if it is a copy that no process finishes any more, by its name and age."""
        if file.name.startswith(COPYING) and file.modified_ns <= self.before_ns:
            self.candidates.append(Candidate(location, Origin.STAGING, "", None, STAGING, is_file=True))

    def aside(self, location: str, entry: StorageEntry) -> None:
        """Make a candidate of a directory that a dead sweep had set aside, if it is old enough."""
        if entry.modified_ns <= self.before_ns:
            self.candidates.append(Candidate(location, Origin.STAGING, "", None, ASIDE_REASON))

    def report(self, node: DirectoryEntry, claim: str, reason: str) -> None:
        if node.content()[0]:
            self.unknown.append(Candidate(node.location, Origin.UNKNOWN, claim, None, reason, node=node))
