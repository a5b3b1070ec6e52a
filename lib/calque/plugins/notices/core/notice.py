"""What a notice says: a closed union of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark


class NoticeType(StrEnum):
    """As configurations and texts call it."""

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
    """What all notices say. `id` is the same whenever the notice is sent. `key` is the table's (`TableKeys`). At the
    source `position` is the event itself; at a target it is the event of the epoch that shows it, which may be a later
    one. `found`: an exact read found it, and no event told of it; `event_id` is the read's then."""

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
    """`was` is the name before a rename; None where the table kept its name."""

    occasion: Occasion
    was: TableName | None = None


@dataclass(frozen=True, slots=True)
class TableDropped:
    occasion: Occasion


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Partitions by Hive's names of them, here and below."""

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
    """Into these partitions, or into a table without any."""

    occasion: Occasion
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetDone:
    occasion: Occasion
    mark: Mark


@dataclass(frozen=True, slots=True)
class HistoryGap:
    """Of the events from `first` to `last` nobody knows what they did: whoever follows the notices reads again what he
    needs. It is sent to each topic; the occasion has no table."""

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
    """What `type_of` says, as a text: for every notice of a backlog."""
    return TEXTS[type(notice)]


PARTITIONS_AT_ONCE = 500
"""Of which one notice tells, so that every broker takes it: Kafka refuses messages of more than a megabyte."""


def shares(partitions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The partitions in shares of one notice each; one empty share where there are none."""
    if len(partitions) <= PARTITIONS_AT_ONCE:
        return [partitions]
    return [partitions[begin : begin + PARTITIONS_AT_ONCE] for begin in range(0, len(partitions), PARTITIONS_AT_ONCE)]
