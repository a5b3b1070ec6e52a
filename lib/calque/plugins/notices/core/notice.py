"""Notices as values: a closed union of types, one for each kind of change, and the `Occasion` that all of them
carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark


class NoticeType(StrEnum):
    """The type of a notice, by the name that configurations and messages use."""

    CREATE_TABLE = "create_table"
    ALTER_TABLE = "alter_table"
    DROP_TABLE = "drop_table"
    ADD_PARTITION = "add_partition"
    ALTER_PARTITION = "alter_partition"
    DROP_PARTITION = "drop_partition"
    INSERT = "insert"
    DONE = "done"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Occasion:
    """The part that every notice has: its id, its table, and when it happened. `id` is the same each time that the
    notice is sent. `key` is the table's message key (`TableKeys`). `event_id` is the event that the notice tells of. At
    the source `position` is that event; at a target it is the event of the epoch that shows the change, which may be
    later. `found` says that an exact read found the object without an event that told of it; `event_id` is then the
    event of the read."""

    id: str
    table: TableName
    key: str
    event_id: EventId
    position: EventId
    published_at: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class TableCreated:
    occasion: Occasion


@dataclass(frozen=True, slots=True)
class TableAltered:
    """A change of a table's definition, or a rename. `was` is the name before a rename; None where the table kept its
    name."""

    occasion: Occasion
    was: TableName | None = None


@dataclass(frozen=True, slots=True)
class TableDropped:
    occasion: Occasion


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """The partitions that a table got. Every type of notice names partitions as Hive does, for example
    `ds=1/region=us`."""

    occasion: Occasion
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAltered:
    occasion: Occasion
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionsDropped:
    occasion: Occasion
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsInserted:
    """The rows of these partitions changed; with no `partitions`, the rows of a table that has none."""

    occasion: Occasion
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetDone:
    occasion: Occasion
    mark: Mark


@dataclass(frozen=True, slots=True)
class HistoryGap:
    """A gap in the history: what the events from `first` to `last` did is not known, and `cause` says why. A subscriber
    has to read again what it needs. The notice goes to every topic, so its occasion has no table."""

    occasion: Occasion
    first: EventId
    last: EventId
    cause: str


Notice = (
    TableCreated
    | TableAltered
    | TableDropped
    | PartitionsAdded
    | PartitionsAltered
    | PartitionsDropped
    | RowsInserted
    | SetDone
    | HistoryGap
)


def type_of(notice: Notice) -> NoticeType:
    match notice:
        case PartitionsAdded():
            return NoticeType.ADD_PARTITION
        case RowsInserted():
            return NoticeType.INSERT
        case PartitionsAltered():
            return NoticeType.ALTER_PARTITION
        case PartitionsDropped():
            return NoticeType.DROP_PARTITION
        case TableCreated():
            return NoticeType.CREATE_TABLE
        case TableAltered():
            return NoticeType.ALTER_TABLE
        case TableDropped():
            return NoticeType.DROP_TABLE
        case SetDone():
            return NoticeType.DONE
        case HistoryGap():
            return NoticeType.GAP
        case other:
            assert_never(other)


TEXTS: Mapping[type, str] = {
    PartitionsAdded: "add_partition",
    PartitionsAltered: "alter_partition",
    PartitionsDropped: "drop_partition",
    RowsInserted: "insert",
    TableCreated: "create_table",
    TableAltered: "alter_table",
    TableDropped: "drop_table",
    SetDone: "done",
    HistoryGap: "gap",
}


def type_text(notice: Notice) -> str:
    """Return the text of the notice's type, as `type_of` does, by one look into a table: fast enough for each notice of
    a backlog."""
    return TEXTS[type(notice)]


PARTITIONS_AT_ONCE = 500
"""The most partitions that one notice names, so that every broker takes it: Kafka refuses messages of more than a
megabyte."""


def shares(partitions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Split the partitions into shares for one notice each, of at most `PARTITIONS_AT_ONCE`. No partitions give one
    empty share."""
    if len(partitions) <= PARTITIONS_AT_ONCE:
        return [partitions]
    return [partitions[begin : begin + PARTITIONS_AT_ONCE] for begin in range(0, len(partitions), PARTITIONS_AT_ONCE)]
