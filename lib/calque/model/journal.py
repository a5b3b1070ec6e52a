"""A row of the journal: one event of the source's log, with key columns that say which objects it touches.

Key columns are extracted once, at capture (`core.events.keys`), so that no later reader parses messages to find out
what an event touches. `message` is fetched only for states that a hop visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId, TableName

LOOKED = "LOOKED"
"""The type of an event that calque makes for a catalog without a log: the name was looked at for the first time. The
other events that a look makes have Hive's types, with `LOOKED_` before them where several events are one step
(`plugins.remotes.core.compare_polls`)."""


class EventKind(StrEnum):
    """The kind of an event by what it does. Versions of the metastore that name one kind differently map to the same
    value."""

    CREATE_DATABASE = "create_database"
    ALTER_DATABASE = "alter_database"
    DROP_DATABASE = "drop_database"
    CREATE_TABLE = "create_table"
    ALTER_TABLE = "alter_table"
    RENAME_TABLE = "rename_table"
    DROP_TABLE = "drop_table"
    ADD_PARTITIONS = "add_partitions"
    ALTER_PARTITIONS = "alter_partitions"
    RENAME_PARTITION = "rename_partition"
    DROP_PARTITIONS = "drop_partitions"
    INSERT = "insert"
    CREATE_FUNCTION = "create_function"
    DROP_FUNCTION = "drop_function"
    FACET = "facet"
    """A change of column statistics or constraints: compared at epochs, no stop."""
    NOTHING = "nothing"
    """Known, and without effect on what calque replicates (transactions, other catalogs, schema registry)."""
    UNKNOWN = "unknown"
    """A type or message that can't be folded: the object that it names must be read."""
    SCAN = "scan"
    """An entry of calque's own: files changed without an event."""
    COMMIT = "commit"
    """An entry of calque's own beside the event of a commit: what the transaction wrote to one ACID table is seen."""


class TableShape(StrEnum):
    """The shape of the touched table, as far as the message says it."""

    PLAIN = "plain"
    PARTITIONED = "partitioned"
    VIEW = "view"
    NOT_SAID = ""


@dataclass(frozen=True, slots=True)
class Keys:
    """The objects that one event touches.

    `table` is the name after the event, `other` the name before a rename. `partitions` are partition names after the
    event; `others` the names before a partition rename (same length) or empty. `locations` are the directories whose
    content the event may have changed, one for each partition, or one for a plain table; empty where none. `replaces`
    marks an INSERT OVERWRITE or a truncation. `columns_changed` marks a change of a partitioned table's columns:
    partitions may have changed with it (CASCADE).
    """

    kind: EventKind
    table: TableName | None = None
    other: TableName | None = None
    shape: TableShape = TableShape.NOT_SAID
    partitions: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    replaces: bool = False
    columns_changed: bool = False
    facets_only: bool = False
    """An alteration that changed basic statistics (docs/glossary.md, facet) and nothing else of the definition."""
    transactional: bool = False
    defect: str = ""
    """The reason why the message can't be folded; only with `EventKind.UNKNOWN`."""
    numbers: tuple[int, ...] = ()
    """The places of `partitions` among the partitions in the message; empty where `partitions` are all of these."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the log as the metastore gives it. Times are seconds since the epoch; absent names are empty."""

    event_id: EventId
    event_time: int
    event_type: str
    catalog: str
    database: str
    table: str
    message_format: str
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A journal row without its message: identity and keys."""

    event_id: EventId
    event_time: int
    event_type: str
    keys: Keys
    scans: tuple[int, ...] = ()
    """The numbers of the scans that listed each of `keys.locations`, in an entry of calque's own (`EventKind.SCAN`); a
    number is negative where these files are gone. The entry's `event_id` is that of the event after which the files
    were so."""

    @property
    def order(self) -> tuple[EventId, int]:
        """The key by which entries sort: an entry of calque's own comes after the event of its id."""
        return self.event_id, max(map(abs, self.scans), default=0)
