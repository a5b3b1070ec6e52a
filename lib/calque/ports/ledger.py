"""The ledger of a target: epochs, the objects that each epoch changed, the states of tables, and records of calque's
own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from calque.model.ledger import Epoch, ObjectRow, PlaceRow, StateKey, StateRow
from calque.model.names import TableName
from calque.model.records import Record, RecordKey


class Ledger(Protocol):
    """The truth about one target's progress. Only an epoch row makes the object rows of its number count.

    States and records are written by separate commits. A caller that writes both writes states first; a caller that
    reads both reads records first. Otherwise a record that says what was done to all tables could be seen before their
    rows.
    """

    def last_epoch(self) -> Epoch | None: ...

    def epochs(self, after: int = 0) -> Sequence[Epoch]:
        """Return the epochs with numbers above `after`, ascending."""

    def objects(self, epoch: int) -> Sequence[ObjectRow]: ...

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        """Write the object rows and table rows first, and the epoch row last. An epoch whose number was tried before
        replaces the object rows of that number, which did not count."""

    def tables(self) -> Mapping[StateKey, StateRow]:
        """Return the newest row of each table, database and function."""

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        """Record states between epochs, in one commit."""

    def remove_tables(self, keys: Sequence[StateKey]) -> None: ...

    def records(self) -> Sequence[Record]:
        """Return the newest record of each key."""

    def put_records(self, records: Sequence[Record]) -> None:
        """Write records for calque alone, in one commit."""

    def remove_records(self, keys: Sequence[RecordKey]) -> None: ...

    def latest_objects(self, keys: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], ObjectRow]:
        """Return the newest row of each (database, table, partition) at the source that counts and carries files. Keys
        without one are left out."""

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        """Return the rows of tables themselves, without those of partitions, that count, up to epoch `upto`, in the
        order of epoch and step. They are all that `core.records.contents` needs to find tables as they were at any
        epoch that is not forgotten."""

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        """Return the rows of these tables and their partitions that count, up to epoch `upto`, in the order of epoch
        and step."""

    def places(self) -> Iterator[PlaceRow]:
        """Give the places that all rows which count name, in the order of epoch and step; rows of forgotten epochs that
        `forget` has kept are among them."""

    def forget(self, before_epoch: int) -> int:
        """Remove the epochs with numbers below `before_epoch`, and the object rows that are not needed any more: those
        of objects that are gone by that epoch, or have newer rows. Returns the number of epochs that were removed."""
