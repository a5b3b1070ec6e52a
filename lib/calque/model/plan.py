"""Operations of a target, hops between states, and the plan of a window.

An operation is one atomic call there (docs/how-hops-work.md); `Publish` is the ordered renames of appended files,
`HiddenBuild`, `PrepareFlipSweep` and `Rebuild` are the compound ones. `to_event` of a hop is the event id of the state
it reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calque.model.names import EventId, TableName


@dataclass(frozen=True, slots=True)
class Version:
    """Which definition of an object: the after-image in event `event_id` (the `index`-th of its partitions)."""

    event_id: EventId
    index: int = 0


BASE = Version(0)
"""The definition that the target showed when the window began."""


@dataclass(frozen=True, slots=True)
class Data:
    """Which content of a directory: what lay at `location` (the source's) after `event_id`; BASE_DATA as it was. With
    `scan` it is what the scan of that number listed; with a negative one those files are gone."""

    event_id: EventId
    location: str
    scan: int = 0
    stays: bool = False
    """Its files stay at the source, and what they are is no part of a state."""


BASE_DATA = Data(0, "")


@dataclass(frozen=True, slots=True)
class Head:
    """A table's definition at a state. `lineage` follows the table through renames inside the window."""

    lineage: int
    version: Version
    incarnation: str = ""
    """Empty: the one that the target shows."""
    data: Data | None = None
    """Of a plain table."""
    since: EventId = 0
    """The newest event that changed the definition or the content."""


@dataclass(frozen=True, slots=True)
class Part:
    """A partition at a state; `lineage` follows it through renames of the partition. In an operation it is the name
    that the partition has before, if it has one."""

    lineage: str
    version: Version
    data: Data
    incarnation: str = ""
    since: EventId = 0
    columns: EventId = 0
    """The event whose CASCADE gave it the columns that its table got then; 0: those of its own definition."""


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
    """New definition, name and, with `switch`, content; `was` is the name before. `cascade` changes the partitions'
    columns too."""

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
    """`switched` names those that get a new directory."""

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
    """Append files to the live directory of a plain table (`partition` empty) or of one partition."""

    table: TableName
    partition: str
    data: Data
    since: EventId


@dataclass(frozen=True, slots=True)
class PrepareFlipSweep:
    """New, changed and doomed partitions switch their rows in one call; listings are early. `header` comes before them,
    where the definition has no true state on the way: of tables whose files stay at the source."""

    table: TableName
    added: tuple[tuple[str, Part], ...]
    changed: tuple[tuple[str, Part], ...]
    doomed: tuple[str, ...]
    header: AlterTable | None = None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The last resort: build the whole table hidden over the same files, rename the old away and the new in.
    `was` is None where nothing stood. `partitions` are the touched ones; None says that one vanished. With `whole`
    they are all there are. With `cascade`, the newest event that did, the other partitions get the table's columns."""

    table: TableName
    was: TableName | None
    head: Head
    partitions: tuple[tuple[str, Part | None], ...]
    whole: bool = False
    cascade: EventId = 0


@dataclass(frozen=True, slots=True)
class CommitTable:
    """Any difference of one table but its name in one commit: of a Delta table, and where the target's catalog can
    (`TargetCapabilities.any_difference`). `was` is None where nothing stood. `partitions` are the touched ones; None
    says that one vanished. `switched` names those that get other files; `""` is a table's own without partitions. With
    `cascade`, the newest event that did, the other partitions get the table's columns."""

    table: TableName
    was: TableName | None
    head: Head
    partitions: tuple[tuple[str, Part | None], ...] = ()
    switched: frozenset[str] = frozenset()
    cascade: EventId = 0


Operation = (
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


@dataclass(frozen=True, slots=True)
class ShownState:
    """Which state of its source a table shows: the one that began at `event_id`, or was read then. The state that it
    showed before ended with `first_event`, the first event that changed the table after it; 0 where that is not
    known."""

    event_id: EventId
    first_event: EventId


@dataclass(frozen=True, slots=True)
class Hop:
    """`first_event` is that of the first state after the one before in which the operation's table is another; 0 where
    nobody knows it, since the table was read."""

    to_event: EventId
    operation: Operation
    objects: int
    bytes: int = 0
    bridge: bool = False
    in_parts: int = 1
    first_event: EventId = 0


@dataclass(frozen=True, slots=True)
class FacetEvent:
    """A change of column statistics or constraints, with the name that its object has after the last hop; `partition`
    is empty for the table. `newest`: no later event that the hops show wrote the object's parameters."""

    event_id: EventId
    table: TableName
    partition: str
    newest: bool


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What one group does in one window. `stops_passed` are event ids of states that no hop visits, `unvisitable`
    those whose files are not exactly known."""

    tables: tuple[TableName, ...]
    events: int
    hops: tuple[Hop, ...] = ()
    stops_passed: tuple[EventId, ...] = ()
    unvisitable: tuple[EventId, ...] = ()
    facets: tuple[tuple[TableName, tuple[tuple[str, Version], ...]], ...] = ()
    """Statistics that are written after the last hop: the table, and its partitions (`""`: the header) with their
    events."""
    facet_events: tuple[FacetEvent, ...] = ()
    """In their order: what is to be written of column statistics and constraints after the last hop."""


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
    """A call for a table, by its name at the target, that is no part of a hop: a start at an event and a change of
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
