"""The ports of marks: the store of a source's marks, and the calls that tell a metastore of single partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark, Trail
from calque.ports.forwarding import Interceptor, direct


class MarkStore(Protocol):
    """The store of all marks of one source, in order of number. Several processes may add to it. The events of
    successive marks ascend, except where the source's log went back between them."""

    def last(self) -> int:
        """Return the newest number that a mark ever had; 0 before the first. Cheap, because it is called many times a
        second."""

    def add(self, mark: Mark) -> bool:
        """Make the mark durable where its number is the next one, and return True. Where another mark has that number,
        record nothing and return False."""

    def after(self, number: int) -> Sequence[Mark]:
        """Return the marks with greater numbers that are not forgotten, ascending. Some may have expired."""

    def follow(self, trails: Mapping[int, Trail], number: int, upto: EventId) -> None:
        """Record that the tables of all marks up to `number` were followed to event `upto`. `trails` are those of the
        marks whose tables got other names, or ended; numbers of forgotten marks may be among them. What is known of a
        mark that was followed further stays."""

    def forget(self, numbers: Collection[int]) -> int:
        """Remove the marks with these numbers and return how many went. `last()` stays."""


class PartitionEvents(Protocol):
    """The calls that tell one metastore of single partitions (PartitionEventType.LOAD_DONE). Every method may raise
    `Refused`, where the metastore does not know the table or its keys or has no such call, and `Unavailable`."""

    def mark_done(self, table: TableName, partition: Mapping[str, str]) -> None:
        """Tell the metastore that the partition, named by all of the table's keys, is complete. The partition need not
        exist. A second call changes nothing for clients that ask."""

    def is_done(self, table: TableName, partition: Mapping[str, str]) -> bool:
        """Tell whether the metastore was told that the partition is complete, by any client."""


class ForwardingMarkStore:
    def __init__(self, marks: MarkStore, intercept: Interceptor = direct) -> None:
        self._marks, self._intercept = marks, intercept

    def last(self) -> int:
        return self._intercept("last", self._marks.last)

    def add(self, mark: Mark) -> bool:
        return self._intercept("add", self._marks.add, mark)

    def after(self, number: int) -> Sequence[Mark]:
        return self._intercept("after", self._marks.after, number)

    def follow(self, trails: Mapping[int, Trail], number: int, upto: EventId) -> None:
        self._intercept("follow", self._marks.follow, trails, number, upto)

    def forget(self, numbers: Collection[int]) -> int:
        return self._intercept("forget", self._marks.forget, numbers)


class ForwardingPartitionEvents:
    def __init__(self, events: PartitionEvents, intercept: Interceptor = direct) -> None:
        self._events, self._intercept = events, intercept

    def mark_done(self, table: TableName, partition: Mapping[str, str]) -> None:
        self._intercept("mark_done", self._events.mark_done, table, partition)

    def is_done(self, table: TableName, partition: Mapping[str, str]) -> bool:
        return self._intercept("is_done", self._events.is_done, table, partition)
