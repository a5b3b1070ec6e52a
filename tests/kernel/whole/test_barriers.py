"""What comes before what inside a window; where a window ends; two tables that go to one name."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from calque.core.events.rows import rows_of_events
from calque.core.records.lifecycle import State
from calque.engine.apply.functions import same_function
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table, location_of
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span, TableName
from calque.model.plan import AlterPartitions
from calque.model.policy import Policy
from support.memory.journal import MemoryJournal
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.histories import differences
from support.worlds.worlds import World

POLICY = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target")
STORAGE = Storage((Column("x", "int"),), serde=SerDe(parameters={}))


class Case:
    """A source, at first with the empty database d1, and a target that shows it."""

    def __init__(self, policy: Policy = POLICY, habits: ServerHabits = HIVE_4) -> None:
        self.world = World(0, habits, policy)
        self.source = self.world.writer.source
        self.source.create_database(Database("d1", parameters={}))
        self.world.begin = self.world.capture.after = self.world.source.current()
        self.world.gatherer.resume(self.world.begin, self.world.begin)
        self.world.open()
        self.world.settle()

    def create(self, name: str, database: str = "d1", **parameters: str) -> None:
        self.source.create_table(Table(name, database, storage=STORAGE, parameters=parameters))

    def create_view(self, name: str, text: str, database: str = "d1") -> None:
        view = Table(name, database, storage=STORAGE, parameters={}, type="VIRTUAL_VIEW", view_original_text=text)
        self.source.create_table(replace(view, view_expanded_text=text))

    def drop(self, name: str) -> None:
        self.source.drop_table(TableName("d1", name))

    def rename(self, name: str, to: str, database: str = "d1") -> None:
        table = self.world.source.the_table(TableName("d1", name)).table
        self.source.alter_table(TableName("d1", name), replace(table, name=to, database=database))

    def settled(self) -> None:
        self.world.capture_all()
        self.world.settle()

    def window(self) -> list[str]:
        """What one window does to the target, call by call."""
        self.world.capture_all()
        before = self.world.target_store.current()
        self.world.window()
        return [told(event) for event in self.world.target_store.events(before)]


def told(event: Event) -> str:
    return f"{event.event_type} {event.table or event.database}"


# Databases


def test_a_database_without_an_owner_keeps_the_one_that_the_target_gave_it() -> None:
    case = Case()
    store = case.world.target_store
    store.alter_database("d1", replace(store.the_database("d1"), owner="somebody", owner_type=1))
    case.source.alter_database("d1", Database("d1", parameters={"k": "v"}))
    case.settled()
    found = store.the_database("d1")
    assert (found.owner, found.owner_type) == ("somebody", 1)
    assert (found.parameters or {})["k"] == "v"


# Views


def test_a_view_comes_after_the_tables_that_it_shows() -> None:
    case = Case()
    case.create_view("v", "SELECT x FROM d1.t")
    case.create("t")
    assert case.window() == ["CREATE_TABLE t", "CREATE_TABLE v"]


def test_a_view_that_the_source_dropped_goes_before_its_table() -> None:
    case = Case()
    case.create("t")
    case.create_view("v", "SELECT x FROM d1.t")
    case.settled()
    case.drop("v")
    case.drop("t")
    assert case.window() == ["DROP_TABLE v", "DROP_TABLE t"]


def test_a_view_that_comes_back_over_another_table_goes_and_comes_around_both() -> None:
    case = Case()
    case.create("t")
    case.create_view("v", "SELECT x FROM d1.t")
    case.settled()
    case.drop("v")
    case.drop("t")
    case.create("u")
    case.create_view("v", "SELECT x FROM d1.u")
    calls = case.window()
    assert (calls[0], sorted(calls[1:3]), calls[3:]) == (
        "DROP_TABLE v",
        ["CREATE_TABLE u", "DROP_TABLE t"],
        ["CREATE_TABLE v"],
    )
    assert differences(case.world) == []


def test_a_view_waits_for_a_table_that_waits_for_its_files() -> None:
    case = Case()
    case.create("t")
    case.source.insert(TableName("d1", "t"), [case.world.writer.put_file("file:/source/d1.db/t")])
    case.create_view("v", "SELECT t.x FROM t")
    case.world.append_log()
    case.world.writer.put_file("file:/source/d1.db/t")
    case.world.evidence.append([], case.world.source.current())
    case.world.window()
    assert case.world.replica.tables.in_state(State.WAITING) == [TableName("d1", "t"), TableName("d1", "v")]
    assert case.world.target_store.tables("d1") == []
    case.settled()
    assert sorted(case.world.target_store.tables("d1")) == ["t", "v"]


def test_a_view_waits_for_a_table_that_is_read_and_no_other_view_does() -> None:
    case = Case()
    case.create("t")
    case.create("u")
    case.settled()
    case.world.replica.reads.reread(lambda name: name.table == "t", "the test wants it", {State.LIVE})
    case.create_view("v", "SELECT x FROM d1.t")
    case.create_view("w", "SELECT x FROM d1.u")
    assert case.window() == ["CREATE_TABLE w"]
    case.world.read()
    assert case.window() == ["CREATE_TABLE v"]
    assert case.world.replica.tables.in_state(State.WAITING) == []


# Databases


@pytest.mark.parametrize("rename", [{}, {"d2": "e"}])
@pytest.mark.parametrize("consistency", ["table", "database"])
def test_a_database_dropped_and_made_again_in_one_window_ends_right(rename: dict[str, str], consistency: str) -> None:
    case = Case(replace(POLICY, rename=rename, consistency=consistency))
    case.source.create_database(Database("d2", parameters={"k": "1"}))
    for name in ("t", "gone"):
        case.create(name, "d2", of="1")
    case.source.create_function(Function("f", "d2", "org.One", type=1))
    case.settled()
    case.source.drop_database("d2", cascade=True)
    case.source.create_database(Database("d2", parameters={"k": "2"}))
    case.create("t", "d2", of="2")
    case.source.create_function(Function("f", "d2", "org.Two", type=1))
    calls = case.window()
    at = rename.get("d2", "d2")
    assert not any(call.startswith("DROP_DATABASE") for call in calls)
    assert case.world.target_store.tables(at) == ["t"]
    assert differences(case.world) == []


def test_a_database_goes_after_everything_that_was_in_it() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={}))
    case.create("t", "d2")
    case.create_view("v", "SELECT x FROM d2.t", "d2")
    case.source.create_function(Function("f", "d2", "org.One", type=1))
    case.settled()
    case.source.drop_database("d2", cascade=True)
    calls = case.window()
    assert len(calls) == 4
    assert calls[-2:] == ["DROP_FUNCTION d2", "DROP_DATABASE d2"]


def test_a_database_and_its_tables_that_come_and_go_in_one_window_leave_nothing() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={}))
    case.create("t", "d2")
    case.source.drop_database("d2", cascade=True)
    assert case.window() == []


def test_of_two_databases_on_one_name_the_end_of_one_is_not_the_end_of_the_other() -> None:
    case = Case(replace(POLICY, rename={"d2": "d1"}))
    case.source.create_database(Database("d2", parameters={}))
    case.source.alter_database("d1", Database("d1", parameters={"k": "1"}))
    case.settled()
    case.source.drop_database("d2")
    case.settled()
    assert "d1" in case.world.target_store.databases()


def without_object(event: Event) -> Event:
    """The event as 2.3 writes it."""
    if event.event_type != "CREATE_DATABASE":
        return event
    return replace(event, catalog="", message=json.dumps({"db": event.database, "eventType": event.event_type}))


def capture_as_2_3(world: World) -> None:
    events = [without_object(event) for event in world.source.events(world.capture.last())]
    world.capture.append(rows_of_events(events))
    world.gatherer.run_once()


def test_a_database_whose_event_does_not_say_what_it_is_is_made_as_the_source_has_it_now() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={"k": "1"}))
    case.create("t", "d2")
    capture_as_2_3(case.world)
    case.world.window()
    assert [*case.world.replica.tables.rows] == [TableName("d2", "t")]
    assert differences(case.world) == []


def test_one_that_is_gone_since_is_not_made_at_all() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={}))
    capture_as_2_3(case.world)
    case.source.drop_database("d2")
    case.world.window()
    assert case.world.target_store.databases() == ["d1", "default"]
    case.settled()
    assert differences(case.world) == []


def test_events_that_say_nothing_are_told_of_once_a_window(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    before = case.world.capture.last()
    ids = range(before + 1, before + 4)
    events = [Event(event_id, 1, "A_NEW_TYPE", "hive", "", "", "json-0.2", "{}") for event_id in ids]
    case.world.capture.append(rows_of_events(events))
    with caplog.at_level(logging.WARNING, "calque"):
        case.world.window()
    assert caplog.messages == [f"dr: 3 events do not say what they touched, event {before + 1} first"]


# Functions


def test_a_function_comes_after_its_database_and_goes_before_it() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={}))
    case.source.create_function(Function("f", "d2", "org.One", type=1))
    assert case.window() == ["CREATE_DATABASE d2", "CREATE_FUNCTION d2"]
    found = case.world.target_store.function(TableName("d2", "f"))
    assert found is not None
    assert same_function(found, Function("f", "d2", "org.One", type=1))
    case.source.drop_database("d2", cascade=True)
    assert case.window() == ["DROP_FUNCTION d2", "DROP_DATABASE d2"]


# Two tables on one name

BOTH = replace(POLICY, rename={"d1.a": "d1.b"})
A, B, C = TableName("d1", "a"), TableName("d1", "b"), TableName("d1", "c")
REASON = "d1.b is the replica of hq:d1.b already: two tables of the source go to one name; rename one of them"


def shown_as(case: Case, name: TableName) -> str | None:
    """The parameter `of` of what the target shows under the name."""
    stored = name.table in case.world.target_store.tables(name.database)
    return (case.world.target_store.the_table(name).table.parameters or {}).get("of") if stored else None


def release(case: Case) -> None:
    case.world.replica.reads.reread(lambda _: True, "the test wants it", {State.QUARANTINED})
    case.settled()


def test_of_two_tables_that_go_to_one_name_the_later_is_quarantined_until_the_other_is_gone() -> None:
    case = Case(BOTH)
    case.create("b", of="b")
    case.settled()
    case.create("a", of="a")
    case.settled()
    tables = case.world.replica.tables
    assert (tables.in_state(State.QUARANTINED), tables.rows[A].reason) == ([A], REASON)
    assert (tables.rows[B].state, shown_as(case, B)) == (State.LIVE, "b")
    release(case)
    assert (tables.rows[A].reason, shown_as(case, B)) == (REASON, "b")
    case.drop("b")
    case.settled()
    release(case)
    assert (tables.in_state(State.QUARANTINED), shown_as(case, B)) == ([], "a")


def test_a_rename_may_make_them_collide_and_another_ends_it() -> None:
    case = Case(BOTH)
    case.create("b", of="b")
    case.create("c", of="c")
    case.settled()
    case.rename("c", "a")
    case.settled()
    tables = case.world.replica.tables
    assert (tables.in_state(State.QUARANTINED), tables.rows[A].reason) == ([A], REASON)
    assert (shown_as(case, B), shown_as(case, C)) == ("b", None)
    case.rename("a", "c")
    case.settled()
    assert (tables.in_state(State.QUARANTINED), [*tables.rows]) == ([], [B, C])
    assert (shown_as(case, B), shown_as(case, C)) == ("b", "c")


def test_the_drop_of_the_later_one_ends_it_too() -> None:
    case = Case(BOTH)
    case.create("b", of="b")
    case.settled()
    case.create("a", of="a")
    case.settled()
    case.drop("a")
    case.settled()
    assert ([*case.world.replica.tables.rows], shown_as(case, B)) == ([B], "b")


def test_one_that_comes_and_goes_in_one_window_is_not_quarantined() -> None:
    case = Case(BOTH)
    case.create("b", of="b")
    case.settled()
    case.create("a", of="a")
    case.drop("a")
    case.settled()
    assert ([*case.world.replica.tables.rows], shown_as(case, B)) == ([B], "b")


# Where a window ends

TABLE = TableName("d1", "t")


def with_partitions(count: int) -> tuple[Case, list[Partition]]:
    """A table of which one call alters many partitions with an event for each."""
    case = Case(habits=HIVE_3)
    keys = (Column("p", "string"),)
    case.source.create_table(Table("t", "d1", storage=STORAGE, partition_keys=keys, parameters={}))
    storage = replace(STORAGE, location="file:/t")
    rows = [Partition((str(number),), "d1", "t", storage=storage, parameters={}) for number in range(count)]
    case.source.add_partitions(TABLE, [at(row, number) for number, row in enumerate(rows)])
    case.settled()
    case.world.clock.asleep = lambda: None
    return case, [*case.world.source.the_table(TABLE).partitions.values()]


def at(row: Partition, number: int) -> Partition:
    assert row.storage is not None
    return replace(row, storage=replace(row.storage, location=f"{location_of(row)}/{number}"))


def alter(case: Case, rows: Sequence[Partition]) -> None:
    case.source.alter_partitions(TABLE, [replace(row, parameters={"w": "1"}) for row in rows])


def test_a_window_ends_before_a_run_of_which_more_may_come() -> None:
    case, rows = with_partitions(5)
    shown = case.world.source.current()
    case.create("u")
    alter(case, rows)
    case.world.capture_all(4)
    case.world.window()
    assert case.world.replica.cursor == shown + 1
    case.world.capture_all()
    case.world.window()
    assert case.world.replica.cursor == shown + 6
    plans = [plan for window in case.world.windows for plan in window.plans]
    operations = [hop.operation for plan in plans for hop in plan.hops]
    assert [len(found.partitions) for found in operations if isinstance(found, AlterPartitions)] == [5]


def test_what_comes_while_a_window_waits_for_a_run_is_taken_with_it() -> None:
    case, rows = with_partitions(5)
    shown = case.world.source.current()
    alter(case, rows)
    case.world.append_log(3)
    case.world.clock.asleep = case.world.capture_all
    case.world.window()
    assert case.world.replica.cursor == shown + 5


def test_where_no_more_comes_the_window_goes_on_after_a_moment() -> None:
    case, rows = with_partitions(5)
    alter(case, rows[:3])
    case.world.capture_all()
    before = case.world.clock.now
    case.world.window()
    assert case.world.replica.cursor == case.world.source.current()
    assert 50_000_000 < case.world.clock.now - before < 150_000_000


def test_a_run_that_never_ends_is_not_waited_for_without_end() -> None:
    case, rows = with_partitions(2)
    shown = case.world.source.current()

    def go_on() -> None:
        alter(case, [rows[case.world.source.current() % 2]])
        case.world.capture_all()

    alter(case, rows)
    case.world.capture_all()
    case.world.clock.asleep = go_on
    before = case.world.clock.now
    case.world.window()
    assert case.world.replica.cursor > shown
    assert case.world.clock.now - before < 1_000_000_000


def test_one_event_alone_is_not_waited_with() -> None:
    case, rows = with_partitions(2)
    alter(case, rows[:1])
    case.world.capture_all()
    before = case.world.clock.now
    case.world.window()
    assert case.world.replica.cursor == case.world.source.current()
    assert case.world.clock.now - before < 50_000_000


class CountingJournal(MemoryJournal):
    """Says how often it was asked for entries."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def entries(self, span: Span) -> Sequence[Entry]:
        self.asked += 1
        return super().entries(span)


def ends(case: Case, upto: EventId) -> tuple[EventId, int]:
    """Where a window would end, and how often the journal was asked to find out."""
    journal = CountingJournal()
    events = case.world.source.events(0)
    journal.append(rows_of_events(events))
    case.world.replica.source = replace(case.world.source_side, journal=journal)
    return case.world.replica.end_of_run(upto), journal.asked


def test_the_ends_of_a_long_run_are_found_with_a_few_questions() -> None:
    case, rows = with_partitions(1500)
    shown = case.world.source.current()
    alter(case, rows)
    assert ends(case, shown + 1500) == (shown + 1500, 3)
    case.create("u")
    assert ends(case, shown + 1) == (shown + 1500, 2)
