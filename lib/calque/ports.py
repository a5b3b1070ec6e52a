"""What the engine needs of the world, each method with its promise.

Every method may raise `Unavailable` (nothing changed, or it is unknown whether something did: observe again) and
`Refused`. Names are the metastore's own at that side; nothing here knows policies. All calls are safe from several
threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.files import Evidence, File, Listing
from calque.model.gaps import Gap
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Entry, Event
from calque.model.lease import Generation
from calque.model.ledger import Epoch, ObjectRow, TableRow
from calque.model.names import EventId, Span, TableName
from calque.model.policy import Abilities
from calque.model.scan import Memory, Scan


class EventLog(Protocol):
    """The notification log of the source."""

    def current(self) -> EventId:
        """The newest event id; 0 for an empty log."""

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        """At most `limit` events with ids above `after`, ascending, unfiltered: fewer where many would weigh too much,
        but one where there is one, so that only an empty answer is the log's end. Where there are fewer than `limit`,
        all events of the last one's id are among them. Contiguity is the caller's to check."""


class CatalogReader(Protocol):
    """Reads of a metastore. None of them is a snapshot: bracket them with event ids (facts: one in twenty was torn)."""

    def identity(self) -> str:
        """The id that the metastore keeps of itself, the same whatever its address; empty where it has none."""

    def databases(self) -> Sequence[str]: ...

    def tables(self, database: str) -> Sequence[str]:
        """Names of tables and views; empty when the database is missing."""

    def functions(self, database: str) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def table(self, name: TableName) -> Table | None: ...

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """Those of the database's named tables that exist, by name, as `table` gives each; read in batches."""

    def function(self, name: TableName) -> Function | None: ...

    def partition_names(self, name: TableName) -> Sequence[str]:
        """Names of all partitions (Hive's escaped form); empty when the table is missing."""

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        """All partitions of the table, which says its name and keys, by name, in one call. None where there are more
        than `most`, or than the server gives at once; empty when the table is missing. Partitions that do not fit the
        keys are left out: they are another table's of the name."""

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        """The named partitions that exist, by name, read in batches; empty when the table is missing."""

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        """The table's own, among them foreign keys whose child it is; empty when the table is missing."""

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        """Foreign keys whose parent the table is."""

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        """Statistics of those of the table's columns that have some."""

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """The same of the named partitions, by name, read in batches; those that have none are left out."""


class Catalog(CatalogReader, Protocol):
    """A target's metastore. Each method is one call and one transaction there, all or nothing; without
    `Abilities.atomic_lists` a list is written object by object, in its order, and ends where one of them fails.

    No method deletes data, whatever the object's type (`deleteData` is never true), and none lets the server compute
    statistics anew (`DO_NOT_UPDATE_STATS`). A table that exists already, or is missing, is `Conflict` below. A list of
    more objects than `Abilities.limits` says is `Refused` before anything is sent.
    """

    def abilities(self) -> Abilities: ...

    def create_database(self, database: Database) -> None: ...

    def alter_database(self, name: str, database: Database) -> None: ...

    def drop_database(self, name: str) -> None:
        """Never cascades: a database that is not empty raises `Conflict`."""

    def create_table(self, table: Table) -> None: ...

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        """Replace the definition; a new name in `table` renames, also across databases. Where the server has
        compare-and-swap, `expected_event` is what `calque.event` must still be, else `Conflict`."""

    def drop_table(self, name: TableName) -> None: ...

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None: ...

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None: ...

    def commit_table(
        self,
        name: TableName | None,
        table: Table,
        put: Sequence[Partition],
        drop: Sequence[str],
        *,
        cascade: bool = False,
        expected_event: str = "",
    ) -> None:
        """Any difference of one table, of any size, in one step: the table `name` (None: a new one) becomes `table`,
        its name included; `put` are added or replaced, `drop` vanish. With `cascade` the partitions that are not in
        `put` get the table's columns. `expected_event` is as in `alter_table`. `Refused` without
        `Abilities.any_difference`."""

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        """Add constraints of one kind to one table, which they name. `Conflict` or `Refused` where one of the name is
        there, or the key that a foreign key points to is not."""

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        """By its name; one that is missing is `Conflict`."""

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        """Set column statistics of the table (`""` alone) or of partitions, in batches; columns that are not named keep
        theirs. The server adds the columns to the object's parameter `COLUMN_STATS_ACCURATE`."""

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        """Those of one column of the table (`""`) or of a partition. They may be missing, or raise `Conflict`."""

    def create_function(self, function: Function) -> None: ...

    def drop_function(self, name: TableName) -> None: ...


class Conflict(Exception):
    """The catalog is not in the state that the call needs: exists already, is missing, or was changed by another.
    The caller observes again and decides; it is never shown to a user as it is."""


class Leases(Protocol):
    """The generations of the lease on one target, kept where all that could write there see them. Whoever reads sees
    what was written before."""

    def newest(self) -> Generation | None:
        """That of the greatest number; None before the first."""

    def take(self, generation: Generation) -> None:
        """Make it. `Conflict` where one of its number is there: of several that try, one succeeds."""

    def renew(self, generation: Generation) -> None:
        """Write it in place of what it was. `Conflict` where it is not there any more."""

    def forget(self, below: int) -> None:
        """Remove all of smaller numbers. Only where one is there that is not smaller."""


class Journal(Protocol):
    """The durable copy of the log: rows in order of event id, without holes between `oldest` and `last`."""

    def last(self) -> EventId | None:
        """The newest event id, or None before the first append. Cheap: called many times a second."""

    def oldest(self) -> EventId | None: ...

    def append(self, rows: pa.Table) -> None:
        """Append rows (`core.rows.SCHEMA`) whose first id is `last() + 1` (any id for the first append), durably and
        at once. A writer that lost against another one raises `Broken`."""

    def entries(self, span: Span) -> Sequence[Entry]:
        """The rows of the span without their messages, ascending. `Refused` when the span is not all there, `Forgotten`
        when its first rows were removed."""

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        """Whole rows, by id, ascending; with `most` only the first ones, so many that their messages weigh about `most`
        bytes, but one. `Refused` and `Forgotten` as for `entries`, whether or not all are given."""

    def forget(self, upto: EventId) -> int:
        """Remove rows at or below `upto`; how many went, 0 where the store keeps rows by a retention of its own.
        `last()` stays, also when no row is left."""

    def restart(self, at: EventId) -> None:
        """Remove all rows and begin anew after event `at`, above or below `last()`: after a gap in the log, or a log
        that went back."""


class Gaps(Protocol):
    """Where the journal does not continue the log, in the order in which that was found."""

    def found(self) -> Sequence[Gap]:
        """All of them, ascending by number. Cheap: called for every window."""

    def add(self, gap: Gap) -> None:
        """Make the next gap durable. `Broken` unless its number is the next one; one that is there already, equal in
        all but `found_at`, is fine."""

    def settled(self) -> int:
        """The number of the newest gap behind which the journal and the evidence have begun anew; 0 before the
        first."""

    def settle(self, number: int) -> None:
        """Record that of a gap which is there. Never goes back."""


class EvidenceStore(Protocol):
    """Listings that belong to states (design §6)."""

    def considered(self) -> EventId:
        """All events up to this id were looked at: what has no evidence by now gets none before a later listing."""

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None: ...

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        """By (event id, location)."""

    def forget(self, upto: EventId) -> int:
        """As `Journal.forget`; `considered()` stays."""

    def restart(self, at: EventId) -> None:
        """Remove all listings; `considered()` is `at` then, above or below what it was. With `Journal.restart`."""


class Pins(Protocol):
    """Files of the source as they were at an event, kept until every target has them."""

    def keep(self, event_id: EventId, listing: Listing) -> bool:
        """Keep exactly the listed files; False, and nothing kept, where one is not there any more or is another."""

    def at(self, event_id: EventId, location: str) -> str:
        """The directory that keeps what was listed in `location` for the event; empty where none does."""

    def events(self) -> Sequence[EventId]:
        """Those of which something is kept, ascending."""

    def held(self, event_id: EventId) -> tuple[int, int]:
        """Bytes kept of an event, and since when (nanoseconds; 0: not known)."""

    def release(self, events: Sequence[EventId]) -> None:
        """Keep nothing of these any more."""


class Scans(Protocol):
    """What scans found: changes without an event, numbered from 1 in their order; and what they compare with."""

    def last(self) -> int:
        """The newest number; 0 before the first. Cheap: called many times a second."""

    def append(self, scans: Sequence[Scan]) -> int:
        """Number them one by one and make them durable, all at once. The newest number then."""

    def entries(self, after: int) -> Sequence[Entry]:
        """Those with greater numbers, ascending, as entries of `Kind.SCAN`."""

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        """By (number, location); those that were forgotten are left out."""

    def forget(self, upto: int) -> int:
        """Remove what has numbers up to that; how many went. `last()` stays."""

    def remembered(self) -> Memory:
        """What was last remembered; an empty memory when that is lost."""

    def remember(self, memory: Memory) -> None:
        """In place of what was remembered before, whole or not at all."""


class Ledger(Protocol):
    """The truth about one target's progress. Only an epoch row makes the object rows of its number count."""

    def last_epoch(self) -> Epoch | None: ...

    def epochs(self) -> Sequence[Epoch]:
        """Ascending."""

    def objects(self, epoch: int) -> Sequence[ObjectRow]: ...

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[TableRow]) -> None:
        """Objects and table rows first, the epoch row last. Publishing a number again replaces what did not count."""

    def tables(self) -> Mapping[tuple[str, str, str], TableRow]:
        """The newest row of each (kind, database, table)."""

    def put_tables(self, rows: Sequence[TableRow]) -> None:
        """Record states between epochs; a row with state `dropped` semantics is removed by `remove_tables`."""

    def remove_tables(self, keys: Sequence[tuple[str, str, str]]) -> None: ...

    def latest_objects(self, keys: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], ObjectRow]:
        """The newest counted row of each (database, table, partition) at the source that carries files."""

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        """The rows of tables themselves that count, up to that epoch, in the order of epoch and step: all that
        `core.contents` needs to find them as they were at any epoch that is not forgotten."""

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        """The same of these tables and their partitions."""

    def forget(self, before_epoch: int) -> int:
        """Remove epochs below the number, and the object rows that nothing needs then: those of objects that are gone
        by that epoch, or have newer rows."""


@dataclass(frozen=True, slots=True)
class CopyTask:
    """One file to copy from `source` (a full path) to `target`; `size` and `modified_ns` are what evidence says.
    `ours`: nobody else writes at the target, so that a file of equal size and time there is a copy that was verified,
    and neither is read again."""

    source: str
    target: str
    size: int
    modified_ns: int
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Copied:
    """`checksum` is xxh3-128 of what was read and, verified, of what lies at the target; empty where a store copied
    inside itself and proved it by checksums of its own, and where a copy that was verified before was there. `problem`
    says why not."""

    task: CopyTask
    checksum: str = ""
    problem: str = ""
    bytes_moved: int = 0
    """0 when a verified copy was there already."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file or directory that lies directly below another. `modified_ns` of a directory is when something was last
    made, renamed or removed in it; 0 where the storage has no time for it."""

    name: str
    size: int
    modified_ns: int
    directory: bool = False


class Storage(Protocol):
    """Directories of data at both sides, addressed by URI or plain path."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """The data files below each location, by location; hidden names are left out (`model.files`). Of one that has
        a Delta log with a commit, the newest commit alone. `Refused` names the first location that is a file or may
        not be read."""

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        """Size and time of each file, by full path, which is also the file's `path`; what is not there, or is a
        directory, is left out."""

    def copy(self, tasks: Sequence[CopyTask], progress: Callable[[Copied], None] | None = None) -> Sequence[Copied]:
        """Copy and verify each, its time too where the storage can. A file that is not as the task says, or vanishes,
        becomes a `problem`, never an exception; so does one whose target is another file. An existing target of equal
        size and checksum is kept, one of ours (`CopyTask.ours`) by its time. Parents are made. What is `Unavailable`
        for a moment is tried again; when it ends the copy, what was copied stays. Results are in the order of the
        tasks; `progress` is called in the caller's thread."""

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        """Rename staged files into place, in order; one that was renamed before is passed over. `Refused` when another
        file lies at a target; `Unavailable` when neither is there: stage it again."""

    def make_directories(self, locations: Sequence[str]) -> None: ...

    def exists(self, location: str) -> bool: ...

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """xxh3-128 (hexadecimal) of each file's whole content, by full path; those that are not there are left out."""

    def date(self, times: Mapping[str, int]) -> None:
        """Give files, by full path, the times that `list` tells from now on, as a copy gets its source's. What is not
        there, or belongs to another user, is passed over; where the storage takes no times nothing happens."""

    def read(self, path: str) -> bytes | None:
        """A small file's whole content; None when there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, whole or not at all, in place of one that is there; its parents are made."""

    def remove(self, locations: Sequence[str]) -> None:
        """Remove directories or files with all below; missing ones are fine."""

    def children(self, location: str) -> Sequence[str]:
        """Names directly below a directory, hidden ones too; empty when it is missing."""

    def entries(self, location: str) -> Sequence[Found]:
        """The same with sizes and times, by name; what vanishes meanwhile is left out."""

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        """When something was last made, renamed or removed directly in each, in nanoseconds; 0 where the storage has
        no time for it. Those that are not there are left out, and so is what is no directory."""


class Clock(Protocol):
    def now_ns(self) -> int:
        """Nanoseconds since the epoch, as the machine has it: it may be set, and jump."""

    def elapsed_ns(self) -> int:
        """Nanoseconds since some moment, of a clock that nobody sets: to wait by."""

    def sleep(self, seconds: float) -> None: ...


__all__ = [
    "Catalog",
    "CatalogReader",
    "Clock",
    "Conflict",
    "Copied",
    "CopyTask",
    "EventLog",
    "EvidenceStore",
    "File",
    "Found",
    "Journal",
    "Leases",
    "Ledger",
    "Pins",
    "Scans",
    "Storage",
]
