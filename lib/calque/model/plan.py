"""Operations of a target, hops between states, and the plan of a window.

An operation is one atomic call there (docs/how-hops-work.md). `Publish` is the ordered renames of appended files;
`HiddenBuild`, `PrepareFlipSweep` and `Rebuild` are the compound ones. `to_event` of a hop is the event id of the state
that it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calque.model.names import EventId, TableName


@dataclass(frozen=True, slots=True)
class Version:
    """A reference to a definition of an object: the after-image in event `event_id`, of its partitions the
    `index`-th."""

    event_id: EventId
    index: int = 0


BASE = Version(0)
"""The definition that the target showed when the window began."""


@dataclass(frozen=True, slots=True)
class Data:
    """A reference to a content of a directory: the files that lay at `location` (the source's) after `event_id`;
    `BASE_DATA` stands for the content that the target showed when the window began. With `scan` it is what the scan of
    that number listed; with a negative one those files are gone."""

    event_id: EventId
    location: str
    scan: int = 0
    stays: bool = False
    """The files stay at the source, and are then no part of a state."""


BASE_DATA = Data(0, "")


@dataclass(frozen=True, slots=True)
class Head:
    """A table's definition at a state. `lineage` follows the table through renames inside the window."""

    lineage: int
    version: Version
    incarnation: str = ""
    """The table's incarnation; empty for the one that the target shows."""
    data: Data | None = None
    """The content of a plain table; None for others."""
    since: EventId = 0
    """The newest event that changed the definition or the content."""


@dataclass(frozen=True, slots=True)
class Part:
    """A partition at a state. `lineage` follows it through renames of the partition; in an operation `lineage` is the
    name that the partition has before the operation, if it has one."""

    lineage: str
    version: Version
    data: Data
    incarnation: str = ""
    since: EventId = 0
    columns: EventId = 0
    """The event whose CASCADE gave the partition the columns that its table got at that event; 0 where it has those of
    its own definition."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: TableName
    head: Head


@dataclass(frozen=True, slots=True)
class HiddenBuild:
    table: TableName
    head: Head
    partitions: tuple[tuple[str, Part], ...]


@dataclass(frozen=True, slots=True)
class AlterTable:
    """A table's new definition and name and, with `switch`, content; `was` is the name before. With `cascade` the
    partitions' columns change too."""

    table: TableName
    was: TableName
    head: Head
    switch: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    table: TableName


@dataclass(frozen=True, slots=True)
class AddPartitions:
    table: TableName
    partitions: tuple[tuple[str, Part], ...]


@dataclass(frozen=True, slots=True)
class AlterPartitions:
    """A change of partitions to new definitions. `switched` names those that get a new directory."""

    table: TableName
    partitions: tuple[tuple[str, Part], ...]
    switched: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RenamePartition:
    table: TableName
    was: str
    name: str
    part: Part


@dataclass(frozen=True, slots=True)
class DropPartitions:
    table: TableName
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """A publication of appended files: they are renamed into the live directory of a plain table (`partition` empty) or
    of one partition."""

    table: TableName
    partition: str
    data: Data
    since: EventId


@dataclass(frozen=True, slots=True)
class PrepareFlipSweep:
    """A change of many partitions whose rows switch in one call: `added` and `changed` ones get other files, `doomed`
    ones go. Partitions are listed early, that is before they have their rows. `header` is a new definition of the table
    that comes before them, where the definition has no true state on the way: for tables whose files stay at the
    source."""

    table: TableName
    added: tuple[tuple[str, Part], ...]
    changed: tuple[tuple[str, Part], ...]
    doomed: tuple[str, ...]
    header: AlterTable | None = None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The last resort: build the whole table hidden over the same files, rename the old one away and the new one in.
    `was` is None where nothing stood. `partitions` are the touched ones; None says that one vanished. With `whole` they
    are all that the table has. With `cascade`, the newest event that cascaded, the other partitions get the table's
    columns."""

    table: TableName
    was: TableName | None
    head: Head
    partitions: tuple[tuple[str, Part | None], ...]
    whole: bool = False
    cascade: EventId = 0


@dataclass(frozen=True, slots=True)
class CommitTable:
    """A commit of any difference of one table but its name: of a Delta table, and where the target's catalog can do it
    for others (`TargetCapabilities.any_difference`).

    `was` is None where nothing stood. `partitions` are the touched ones; None says that one vanished. `switched` names
    those that get other files; `""` is a table's own without partitions. With `cascade`, the newest event that
    cascaded, the other partitions get the table's columns.
    """

    table: TableName
    was: TableName | None
    head: Head
    partitions: tuple[tuple[str, Part | None], ...] = ()
    switched: frozenset[str] = frozenset()
    cascade: EventId = 0


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one ACID table that a transaction at the target changes. `head` has the table's content where it is
    one without partitions, `partitions` are those that change."""

    table: TableName
    head: Head | None
    partitions: tuple[tuple[str, Part], ...] = ()


@dataclass(frozen=True, slots=True)
class CommitRows:
    """A commit of a transaction at the target that changes rows of ACID tables, at least one, and nothing else. Readers
    see all of them change at once."""

    tables: tuple[TableRows, ...]

    @property
    def table(self) -> TableName:
        return self.tables[0].table


OfOneTable = (
    CreateTable
    | HiddenBuild
    | AlterTable
    | DropTable
    | AddPartitions
    | AlterPartitions
    | RenamePartition
    | DropPartitions
    | Publish
    | PrepareFlipSweep
    | Rebuild
    | CommitTable
)
Operation = OfOneTable | CommitRows


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state of the source that a table at the target shows: the state that began at `event_id`, or that was read at
    it. The state that the table showed before ended with `first_event`, the first event that changed the table after
    it; 0 where that is not known.

    Example: events 80, 85 and 90 change `t`, and a hop leads from the state of 80 to that of 90: `event_id` is 90,
    `first_event` 85.
    """

    event_id: EventId
    first_event: EventId


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a table or group to the state of event `to_event`, by one operation. `first_event` is the first event
    after the state before that changed the operation's table; 0 where it is not known, because the table was read."""

    to_event: EventId
    operation: Operation
    objects: int
    bytes: int = 0
    bridge: bool = False
    in_parts: int = 1
    first_event: EventId = 0


@dataclass(frozen=True, slots=True)
class FacetEvent:
    """A change of column statistics or constraints. `table` is the name that its object has after the last hop;
    `partition` is empty for the table. `newest` says that no later event that the hops show wrote the object's
    parameters."""

    event_id: EventId
    table: TableName
    partition: str
    newest: bool


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The plan of one group in one window. `stops_passed` are event ids of states that no hop visits, `unvisitable`
    those of states whose files are not exactly known."""

    tables: tuple[TableName, ...]
    events: int
    hops: tuple[Hop, ...] = ()
    stops_passed: tuple[EventId, ...] = ()
    unvisitable: tuple[EventId, ...] = ()
    facets: tuple[tuple[TableName, tuple[tuple[str, Version], ...]], ...] = ()
    """Basic statistics that are written after the last hop: each table with its partitions (`""`: the table itself) and
    the versions that have the statistics."""
    facet_events: tuple[FacetEvent, ...] = ()
    """The changes of column statistics and constraints to write after the last hop, in the order of their events."""


@dataclass(frozen=True, slots=True)
class DatabaseCall:
    """A call for a database, by its name at the target."""

    operation: Literal["create_database", "alter_database", "drop_database"]
    database: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call for a function, by its name at the target."""

    operation: Literal["create_function", "drop_function"]
    function: TableName


@dataclass(frozen=True, slots=True)
class TableCall:
    """A call for a table, by its name at the target, that is no part of a hop. A start at an event and a change of
    policy make such calls."""

    operation: Literal[
        "create_table",
        "alter_table",
        "drop_table",
        "add_partitions",
        "alter_partitions",
        "rename_partition",
        "drop_partitions",
        "commit_table",
        "add_constraints",
        "drop_constraint",
        "put_statistics",
        "drop_statistics",
    ]
    table: TableName


CatalogCall = DatabaseCall | FunctionCall | TableCall
"""One call of the target's catalog outside the hops."""
