"""A row of the journal: one event of the source's log, with the columns that say what it touches.

Key columns are extracted once, at capture (`core.events.keys`); afterwards nobody parses a message to find out what an
event touches. `message` is fetched only for states that a hop visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId, TableName

LOOKED = "LOOKED"
"""The type of an event that says of a catalog without a log: the name was looked at for the first time. What else a
look finds has Hive's types, with `LOOKED_` before them where several events are one step
(`plugins.remotes.core.compare_looks`)."""


class EventKind(StrEnum):
    """What an event does, whatever the metastore's version calls it."""

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
    """Column statistics and constraints: compared at epochs, no stop."""
    NOTHING = "nothing"
    """Known, and without effect on what calque replicates (transactions, other catalogs, schema registry)."""
    UNKNOWN = "unknown"
    """A type or message that can't be folded: the object it names must be read."""
    SCAN = "scan"
    """An entry of our own: files changed without an event."""


class TableShape(StrEnum):
    """What the touched table is, as far as the message says."""

    PLAIN = "plain"
    PARTITIONED = "partitioned"
    VIEW = "view"
    NOT_SAID = ""


@dataclass(frozen=True, slots=True)
class Keys:
    """What one event touches.

    `table` is the name after the event, `other` the name before a rename. `partitions` are partition names after the
    event; `others` the names before a partition rename (same length) or empty. `locations` are the directories whose
    content the event may have changed, one for each partition, or one for a plain table; empty where none.
    `columns_changed` marks a change of a partitioned table's columns: partitions may have changed with it (CASCADE).
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
    """Why the message can't be folded; only with `EventKind.UNKNOWN`."""
    numbers: tuple[int, ...] = ()
    """The places of `partitions` in the message, where it has more; empty where they are all of its."""


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
    """Of an entry of our own (`EventKind.SCAN`): the number of the scan that listed each of `keys.locations`,
    negative where these files are gone. Its `event_id` is that of the event after which the files were so."""

    @property
    def order(self) -> tuple[EventId, int]:
        """An entry of our own comes after the event of its id."""
        return self.event_id, max(map(abs, self.scans), default=0)
