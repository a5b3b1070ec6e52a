"""What a target remembers: epochs, the objects that each changed, the states of tables, and records of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from calque.model.ledger import Epoch, ObjectRow, PlaceRow, StateKey, StateRow
from calque.model.names import TableName
from calque.model.records import Record, RecordKey


class Ledger(Protocol):
    """The truth about one target's progress. Only an epoch row makes the object rows of its number count.

    States and records are written by separate commits. Who writes both writes states first; who reads both reads
    records first: a record that says what was done to all tables never comes before their rows."""

    def last_epoch(self) -> Epoch | None: ...

    def epochs(self, after: int = 0) -> Sequence[Epoch]:
        """Those with greater numbers, ascending."""

    def objects(self, epoch: int) -> Sequence[ObjectRow]: ...

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        """Objects and table rows first, the epoch row last. Publishing a number again replaces what did not count."""

    def tables(self) -> Mapping[StateKey, StateRow]:
        """The newest row of each table, database and function."""

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        """Record states between epochs, in one commit."""

    def remove_tables(self, keys: Sequence[StateKey]) -> None: ...

    def records(self) -> Sequence[Record]:
        """The newest record of each key."""

    def put_records(self, records: Sequence[Record]) -> None:
        """Remember what is for calque alone, in one commit."""

    def remove_records(self, keys: Sequence[RecordKey]) -> None: ...

    def latest_objects(self, keys: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], ObjectRow]:
        """The newest counted row of each (database, table, partition) at the source that carries files."""

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        """The rows of tables themselves that count, up to that epoch, in the order of epoch and step: all that
        `core.records.contents` needs to find them as they were at any epoch that is not forgotten."""

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        """The same of these tables and their partitions."""

    def places(self) -> Iterator[PlaceRow]:
        """What all rows that count say of places, in the order of epoch and step; those that `forget` has kept, too."""

    def forget(self, before_epoch: int) -> int:
        """Remove epochs below the number, and the object rows that nothing needs then: those of objects that are gone
        by that epoch, or have newer rows."""
