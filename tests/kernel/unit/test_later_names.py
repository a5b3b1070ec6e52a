"""What a table and its partitions are called after later events."""

from __future__ import annotations

from calque.core.events.later_names import LaterNames
from calque.model.journal import Entry, EventKind, Keys
from calque.model.names import TableName

A, B = TableName("d", "a"), TableName("d", "b")


def entry(
    kind: EventKind, table: TableName = A, *partitions: str, other: TableName | None = None, was: str = ""
) -> Entry:
    return Entry(1, 0, kind.name, Keys(kind, table, other, partitions=partitions, others=(was,) if was else ()))


def drop(*partitions: str) -> Entry:
    return entry(EventKind.DROP_PARTITIONS, A, *partitions)


def rename(was: str, name: str, table: TableName = A) -> Entry:
    return entry(EventKind.RENAME_PARTITION, table, name, was=was)


def test_a_table_is_followed_from_name_to_name_until_it_is_dropped() -> None:
    there = [entry(EventKind.RENAME_TABLE, B, other=A), entry(EventKind.CREATE_TABLE, A), rename("p=1", "p=2", B)]
    assert LaterNames(A).after(there) == LaterNames(B, {"p=1": "p=2"})
    assert LaterNames(A).after([*there, entry(EventKind.DROP_TABLE, B), entry(EventKind.CREATE_TABLE, B)]).table is None


def test_what_is_made_anew_under_a_name_is_not_what_had_it() -> None:
    names = LaterNames(A).after([drop("p=1"), entry(EventKind.ADD_PARTITIONS, A, "p=1"), rename("p=1", "p=3")])
    assert names.partition("p=1") is None
    assert LaterNames(A).after([rename("p=1", "p=2"), rename("p=2", "p=3")]).partition("p=1") == "p=3"
    swapped = LaterNames(A).after([rename("p=1", "t"), rename("p=2", "p=1"), rename("t", "p=2")])
    assert (swapped.partition("p=1"), swapped.partition("p=2")) == ("p=2", "p=1")
    assert LaterNames(A).after([rename("p=1", "p=2"), drop("p=2")]).partition("p=1") is None


def test_events_of_other_tables_and_alterations_change_no_name() -> None:
    others = [entry(EventKind.DROP_TABLE, B), entry(EventKind.ALTER_PARTITIONS, A, "p=1"), entry(EventKind.INSERT)]
    assert LaterNames(A).after(others) == LaterNames(A)
