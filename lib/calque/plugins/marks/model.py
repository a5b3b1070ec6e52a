"""The mark: a statement of a producer that the partitions of a table that match some key values are complete ("set
done")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.model.names import EventId, TableName, partition_name


@dataclass(frozen=True, slots=True)
class Trail:
    """The history of one table after a mark: its names, each with the event since which it has it, the first with the
    event from which the table is followed. The history is known up to event `upto`. `ended_by` is the event that ended
    the table, or None: a drop, another table of its name, or an event that can't be read."""

    names: tuple[tuple[EventId, TableName], ...]
    upto: EventId
    ended_by: EventId | None = None

    @property
    def name(self) -> TableName:
        """The newest name of the table."""
        return self.names[-1][1]

    def name_at(self, event_id: EventId) -> TableName | None:
        """Return the table's name at the event; None where it is not known, or where the table has ended."""
        if event_id > self.upto or (self.ended_by is not None and event_id >= self.ended_by):
            return None
        return next((name for since, name in reversed(self.names) if since <= event_id), None)


@dataclass(frozen=True, slots=True)
class Mark:
    """A statement that all partitions of `table` that match `partition` are complete.

    `number` is its place among the marks of its source, from 1, without holes. `event_id` is the newest event of the
    source's log when it was made: the mark takes its place in the history behind that event. `table` is the name that
    the table had then. `incarnation` is `r<event_id>`: the table that stood under that name at that event, as
    `calque.incarnation` names one that was read. `partition` holds some of the table's partition keys, at least one, in
    lexical order, with values as Hive has them in partition names, not escaped. Times are nanoseconds since 1970, in
    whole microseconds. `after_gap` is the number of the log's newest gap then. `followed` is what is known of the table
    after the mark's event; None for nothing.
    """

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
        """The history of the table after the mark, as far as it is known."""
        return self.followed or Trail(((self.event_id, self.table),), self.event_id)

    def covers(self, partition: Mapping[str, str]) -> bool:
        """Tell whether every partition that matches `partition` matches the mark, too: the mark's keys are among it,
        with the same values."""
        return self.partition.items() <= partition.items()


def condition_of(partition: Mapping[str, str]) -> str:
    """Return the keys with their values as a part of a partition's name: in lexical order, escaped as in partition
    names."""
    keys = sorted(partition)
    return partition_name(keys, [partition[key] for key in keys])
