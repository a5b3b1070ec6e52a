"""What is kept of a source's marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark, Trail
from calque.ports.forwarding import Interceptor, direct


class MarkStore(Protocol):
    """All marks of one source, in order of number. Several processes may add to it. The events of successive marks
    ascend, but where the source's log went back between them."""

    def last(self) -> int:
        """The newest number; 0 before the first. Cheap: called many times a second."""

    def add(self, mark: Mark) -> bool:
        """Make it durable where its number is the next one; False, and nothing is recorded, where another mark has that
        number."""

    def after(self, number: int) -> Sequence[Mark]:
        """Those with greater numbers that are not forgotten, ascending. Some may have expired."""

    def follow(self, trails: Mapping[int, Trail], number: int, upto: EventId) -> None:
        """Record that the tables of all marks up to `number` were followed to event `upto`, `trails` being those of
        the marks whose tables got other names, or ended; numbers that are forgotten may be among them. Marks that were
        followed further already stay so."""

    def forget(self, numbers: Collection[int]) -> int:
        """Remove the marks of these numbers; how many went. `last()` stays."""


class PartitionEvents(Protocol):
    """What a metastore is told of single partitions (PartitionEventType.LOAD_DONE). Every method may raise `Refused`
    where it does not know the table or its keys, or has no such call, and `Unavailable`."""

    def mark_done(self, table: TableName, partition: Mapping[str, str]) -> None:
        """Say that the partition, which all of the table's keys name, is complete. It need not be there. Said again,
        nothing changes for those who ask."""

    def is_done(self, table: TableName, partition: Mapping[str, str]) -> bool:
        """Whether somebody has said it."""


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
