"""A mark: somebody has said that the partitions of a table that match some key values are complete ("set done")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.model.names import EventId, TableName, partition_name


@dataclass(frozen=True, slots=True)
class Trail:
    """What became of one table: its names, each with the event since which it has it, the first with the one where it
    is followed from. It is known up to event `upto`. `ended_by` is the event that ended it: a drop, another table of
    its name, or one that can't be read; None for none."""

    names: tuple[tuple[EventId, TableName], ...]
    upto: EventId
    ended_by: EventId | None = None

    @property
    def name(self) -> TableName:
        """The newest one."""
        return self.names[-1][1]

    def name_at(self, event_id: EventId) -> TableName | None:
        """None where it is not known, or the table has ended."""
        if event_id > self.upto or (self.ended_by is not None and event_id >= self.ended_by):
            return None
        return next((name for since, name in reversed(self.names) if since <= event_id), None)


@dataclass(frozen=True, slots=True)
class Mark:
    """`number` is its place among the marks of its source, from 1, without holes. `event_id` is the newest event of the
    source's log when it was made: the mark takes its place in the history behind that event. `table` is the name that
    the table had then; `incarnation` is `r<event_id>`: the table that stood under that name at that event, as
    `calque.incarnation` names one that was read. `partition` holds some of the table's partition keys, at least one, in
    lexical order, with values as Hive has them in partition names, not escaped. Times are nanoseconds since the epoch,
    in whole microseconds. `after_gap` is the number of the log's newest gap then. `followed` is what is known of the
    table beyond its event; None for nothing."""

    number: int
    table: TableName
    incarnation: str
    partition: Mapping[str, str]
    event_id: EventId
    marked_at_ns: int
    expires_at_ns: int
    after_gap: int = 0
    followed: Trail | None = None

    @property
    def condition(self) -> str:
        """The partition keys as a part of a partition's name: `ds=2024-01-01/region=us`."""
        return condition_of(self.partition)

    @property
    def trail(self) -> Trail:
        """What is known of the table."""
        return self.followed or Trail(((self.event_id, self.table),), self.event_id)

    def covers(self, partition: Mapping[str, str]) -> bool:
        """Whether every partition that matches these keys matches the mark's."""
        return self.partition.items() <= partition.items()


def condition_of(partition: Mapping[str, str]) -> str:
    """Keys in lexical order, escaped as in partition names."""
    keys = sorted(partition)
    return partition_name(keys, [partition[key] for key in keys])
