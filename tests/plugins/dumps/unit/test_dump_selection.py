"""`plugins.dumps.core.selection`: which events an increment has, and which tables it has whole."""

from __future__ import annotations

import pytest

from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.plugins.dumps.core.scope import Scope, scope_of
from calque.plugins.dumps.core.selection import EventSelection, steps_of

ALL, LETTERS = scope_of("sales", None, None), scope_of("sales", ["[a-z]+"], None)
WITH_Q5 = scope_of("sales", ["[a-z]+", "Q5"], None)
K = EventKind
TYPES = {
    K.CREATE_TABLE: "CREATE_TABLE",
    K.DROP_TABLE: "DROP_TABLE",
    K.DROP_DATABASE: "DROP_DATABASE",
    K.RENAME_TABLE: "ALTER_TABLE",
    K.ALTER_PARTITIONS: "ALTER_PARTITION",
}


def entry(event_id: int, kind: EventKind, name: str = "", was: str = "", *partitions: str, **keys: object) -> Entry:
    database, _, table = name.rpartition("/")
    other = TableName("sales", was) if was else None
    shape = TableShape.PARTITIONED if partitions else TableShape.PLAIN
    of = TableName(database or "sales", table)
    return Entry(
        event_id,
        0,
        TYPES.get(kind, kind.value.upper()),
        Keys(kind, of, other, shape, partitions, **keys),  # type: ignore[arg-type]
    )


def selected(
    scope: Scope,
    *entries: Entry,
    replaced: Scope | None = None,
    coming: tuple[str, ...] = (),
    upto: int = 99,
    limit: int | None = None,
) -> tuple[list[tuple[int, str]], dict[str, bool], int]:
    selection = EventSelection(scope, replaced, 0)
    selection.bootstrapped = {TableName("sales", name): False for name in coming}
    selection.extend(entries, upto, limit)
    events = [(each.entry.event_id, each.kind.removeprefix("EVENT_")) for each in selection.selected]
    return events, {name.table: there for name, there in selection.bootstrapped.items()}, selection.last


def test_events_of_the_policy_and_of_the_database_are_selected() -> None:
    entries = [
        entry(1, K.ALTER_DATABASE),
        entry(2, K.CREATE_TABLE, "orders"),
        entry(3, K.CREATE_TABLE, "t5"),
        entry(4, K.CREATE_TABLE, "hr/orders"),
        entry(5, K.CREATE_FUNCTION, "f5"),
        entry(6, K.NOTHING),
        entry(7, K.ALTER_DATABASE, "hr/"),
        entry(8, K.INSERT, "acid", transactional=True),
    ]
    assert selected(LETTERS, *entries) == ([(1, ""), (2, ""), (5, "")], {}, 99)


@pytest.mark.parametrize(
    ("was", "now", "events", "whole"),
    [
        ("a", "b", [(1, "")], {}),
        ("a", "t5", [(1, "RENAME_DROP_TABLE")], {}),
        ("t5", "a", [], {"a": False}),
        ("t5", "t6", [], {}),
    ],
)
def test_a_rename_across_the_edge_of_the_policy(
    was: str, now: str, events: list[tuple[int, str]], whole: dict[str, bool]
) -> None:
    assert selected(LETTERS, entry(1, K.RENAME_TABLE, now, was))[:2] == (events, whole)


@pytest.mark.parametrize(
    ("was", "now", "events", "whole"),
    [
        ("a", "b", [(1, "RENAME_DROP_TABLE")], {"b": False}),
        ("a", "t5", [(1, "RENAME_DROP_TABLE")], {}),
        ("t5", "a", [], {"a": False}),
        ("q5", "a", [], {"a": False}),
    ],
)
def test_a_rename_while_the_policy_changes(
    was: str, now: str, events: list[tuple[int, str]], whole: dict[str, bool]
) -> None:
    found = selected(WITH_Q5, entry(1, K.RENAME_TABLE, now, was), replaced=LETTERS, coming=("q5",))
    assert found[0] == events
    assert {name: there for name, there in found[1].items() if name != "q5"} == whole


def test_events_of_a_table_that_is_dumped_whole_are_left_out() -> None:
    entries = [entry(1, K.INSERT, "q5"), entry(2, K.INSERT, "a")]
    assert selected(WITH_Q5, *entries, replaced=LETTERS, coming=("q5",)) == ([(2, "")], {"q5": False}, 99)
    entries = [entry(1, K.UNKNOWN, "a"), entry(2, K.INSERT, "a")]
    assert selected(ALL, *entries) == ([], {"a": True}, 99)
    assert selected(ALL, *entries, entry(3, K.DROP_TABLE, "a"), entry(4, K.CREATE_TABLE, "a")) == (
        [(3, ""), (4, "")],
        {},
        99,
    )


def test_a_table_that_only_the_new_policy_takes_begins_with_its_creation() -> None:
    entries = [
        entry(1, K.INSERT, "q5"),
        entry(2, K.DROP_TABLE, "q5"),
        entry(3, K.CREATE_TABLE, "q5"),
        entry(4, K.INSERT, "q5"),
        entry(5, K.DROP_TABLE, "q5"),
        entry(6, K.INSERT, "q5"),
    ]
    assert selected(WITH_Q5, *entries, replaced=LETTERS)[0] == [(3, ""), (4, ""), (5, "")]


def bulk(first: int, count: int) -> list[Entry]:
    return [entry(first + each, K.ALTER_PARTITIONS, "a", "", f"p={each}") for each in range(count)]


def test_a_limit_ends_with_a_whole_call() -> None:
    entries = [entry(1, K.CREATE_TABLE, "a"), *bulk(2, 3), entry(5, K.INSERT, "b")]
    assert selected(ALL, *entries, limit=1)[::2] == ([(1, "")], 1)
    assert selected(ALL, *entries, limit=2)[::2] == ([(1, "")], 1)
    assert selected(ALL, *entries, limit=4)[::2] == ([(1, ""), (2, ""), (3, ""), (4, "")], 4)
    assert selected(ALL, *bulk(1, 3), entry(4, K.INSERT, "b"), limit=1)[::2] == ([(1, ""), (2, ""), (3, "")], 3)
    assert selected(ALL, entry(1, K.INSERT, "hr/a"), entry(2, K.INSERT, "b"), limit=1)[::2] == ([(2, "")], 2)


def test_an_end_lies_between_calls() -> None:
    entries = [entry(1, K.CREATE_TABLE, "a"), *bulk(2, 3), entry(5, K.INSERT, "b")]
    assert selected(ALL, *entries, upto=3)[2] == 1
    assert selected(ALL, *entries, upto=4)[2] == 4
    assert selected(ALL, *bulk(1, 3), entry(4, K.INSERT, "b"), upto=2)[2] == 3
    assert selected(ALL, *entries, upto=0) == ([], {}, 0)


def test_a_database_that_is_dropped_with_all_in_it_is_one_call() -> None:
    drops = [entry(1, K.DROP_TABLE, "a"), entry(2, K.DROP_TABLE, "b"), entry(3, K.DROP_DATABASE)]
    assert [len(step) for step in steps_of(drops)] == [3]
    others = [entry(1, K.DROP_TABLE, "a"), entry(2, K.DROP_TABLE, "b"), entry(3, K.CREATE_TABLE, "c")]
    assert [len(step) for step in steps_of(others)] == [1, 1, 1]
    apart = [entry(1, K.DROP_TABLE, "a"), entry(2, K.DROP_TABLE, "hr/b"), entry(3, K.DROP_DATABASE)]
    assert [len(step) for step in steps_of(apart)] == [1, 1, 1]
