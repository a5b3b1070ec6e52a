"""What a gap of the log costs a target: listings where nothing changed, reads of what did, and no drops that nobody
wants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.images.image import SOURCE
from calque.core.records.lifecycle import State
from calque.engine.exact_reads.bulk_compare import BATCH, PAGE
from calque.errors import Unavailable
from calque.model.facets import PrimaryKey
from calque.model.hive import Database, Function, location_of
from calque.model.ledger import NotLiveReason, TableRow, TableState
from calque.model.names import TableName
from calque.model.records import DropReview
from calque.model.requests import Action, Request
from kernel.whole.test_defects import Place, ledger, target_catalog, with_defect
from support.faults.defects import Defect
from support.memory.ledger import MemoryLedger
from support.worlds.gapped import POLICY, add, at_target, counted, create, drop, drops_of, held, world_of
from support.worlds.histories import differences
from support.worlds.worlds import Backup, World


def test_a_gap_over_an_idle_warehouse_costs_listings() -> None:
    world = world_of()
    before, epochs = world.target_store.current(), len(world.ledger.epochs())
    world.writer.source.create_database(Database("e1"))
    calls = counted(world)
    world.lose()
    world.settle()
    assert differences(world) == []
    assert world.target_store.current() == before
    assert calls["copy"] == 0
    assert calls["table"] == 0
    assert calls["headers"] <= 4
    (gap,) = world.gaps.recorded()
    first = world.ledger.epochs()[epochs]
    assert (first.kind, first.gap) == ("repair", gap.span)
    assert [epoch.gap for epoch in world.ledger.epochs()].count(gap.span) == 1


def test_a_table_costs_one_call_at_each_side_and_one_with_more_partitions_than_a_page_two_for_each_page() -> None:
    world = world_of(tables=1, partitions=PAGE)
    calls = counted(world)
    world.writer.source.create_database(Database("e1"))
    world.lose()
    world.settle()
    assert (calls["few_partitions"], calls["partitions"]) == (2, 0)
    add(world, "t0", "more")
    world.settle()
    before = world.target_store.current()
    calls.clear()
    world.writer.source.create_database(Database("e2"))
    world.lose()
    world.settle()
    assert (calls["few_partitions"], calls["partitions"]) == (2, 4)
    assert world.target_store.current() == before
    assert differences(world) == []


def test_a_database_says_that_its_guarantee_does_not_hold_until_all_its_tables_are_back() -> None:
    world = world_of(policy=replace(POLICY, consistency="database"))
    add(world, "t0", "new")
    world.lose()
    world.capture_all()
    world.window_alone()
    assert world.replica.consistency.rebasing() == ("d1",)
    assert (world.target_store.the_database("d1").parameters or {})["calque.state"] == "rebasing"
    world.settle()
    world.settle()
    assert "calque.state" not in (world.target_store.the_database("d1").parameters or {})
    assert differences(world) == []
    assert world.problems == []


def test_after_a_gap_only_what_changed_is_read() -> None:
    world = world_of(tables=12)
    add(world, "t3", "new")
    create(world, "late")
    drop(world, "t1")
    calls = counted(world)
    world.lose()
    world.settle()
    assert differences(world) == []
    assert calls["add_partitions"] == 1
    assert calls["drop_table"] == 1
    assert calls["copy"] <= 2
    assert calls["table"] < 20
    assert not held(world)


def test_statistics_and_constraints_that_changed_in_a_gap_are_found() -> None:
    world = world_of(tables=2)
    world.writer.source.add_constraints([PrimaryKey("d1", "t1", "x", 1, "pk", False, False, True)])
    world.lose()
    world.settle()
    world.settle()
    assert [row.name for row in world.target_store.constraints(TableName("d1", "t1"))] == ["pk"]
    assert world.replica.tables.in_state(State.LIVE) == sorted(world.source_states())


def test_after_a_log_that_went_back_no_mark_is_beyond_it_and_nothing_is_copied_again() -> None:
    world = world_of()
    backup = Backup(world.source)
    add(world, "t0", "x")
    world.writer.source.alter_table(
        TableName("d1", "plain"), replace(world.source.the_table(TableName("d1", "plain")).table, parameters={"k": "v"})
    )
    world.settle()
    position = world.replica.epochs.position()
    calls = counted(world)
    world.go_back(backup)
    world.settle()
    release(world)
    assert differences(world) == []
    assert world.marks_ahead() == []
    assert calls["copy"] == 0
    assert world.source.current() == world.replica.epochs.position() < position
    world.writer.source.drop_table(TableName("d1", "t0"))
    create(world, "t0", ("p",))
    world.settle()
    assert differences(world) == []
    assert world.problems == []


def test_marks_of_what_is_as_it_was_before_a_log_went_back_are_written_anew() -> None:
    world = world_of(tables=1)
    backup = Backup(world.source)
    table = world.source.the_table(TableName("d1", "t0")).table
    for value in ("1", "2"):
        world.writer.source.alter_table(TableName("d1", "t0"), replace(table, parameters={"k": value}))
        world.settle()
    again = world.source.the_table(TableName("d1", "plain")).table
    drop(world, "plain")
    world.writer.source.create_table(again)
    world.settle()
    world.writer.source.alter_table(TableName("d1", "t0"), table)
    world.settle()
    world.go_back(backup)
    world.settle()
    assert differences(world) == []
    assert world.marks_ahead() == []


def test_a_death_after_a_log_went_back_begins_where_the_log_is() -> None:
    world = world_of()
    backup = Backup(world.source)
    create(world, "late")
    world.settle()
    world.go_back(backup)
    world.open()
    world.restart()
    assert world.replica.cursor == world.source.current()
    add(world, "t0", "new")
    world.settle()
    release(world)
    assert differences(world) == []


def test_what_changes_while_it_is_compared_is_read() -> None:
    world = world_of(tables=1)
    create(world, "other")
    world.lose()
    table = world.source.the_table(TableName("d1", "plain")).table
    changes = iter([replace(table, parameters={"k": "v"})])

    def change(method: str) -> None:
        if method == "few_partitions":
            for changed in changes:
                world.writer.source.alter_table(TableName("d1", "plain"), changed)

    world.between = change
    world.settle()
    assert differences(world) == []


def test_many_drops_by_difference_wait_for_an_operator_and_everything_else_goes_on() -> None:
    world = world_of(tables=6)
    drop(world, "t0", "t1", "t2")
    world.lose()
    for _ in range(6):
        world.capture_all()
        world.work()
    assert held(world) == ["t0", "t1", "t2"]
    assert at_target(world) == ["plain", "t0", "t1", "t2", "t3", "t4", "t5"]
    row = world.replica.tables.rows[TableName("d1", "t0")]
    assert "`calque release-drops --target dr`" in row.reason
    assert "12 of " in row.reason
    add(world, "t3", "more")
    world.settle()
    assert drops_of(world) is DropReview.HELD
    world.replica.reads.reread(lambda _: True, "an operator wants it", {State.QUARANTINED})
    world.restart()
    world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    assert world.replica.reads.release_drops(lambda name: name.table == "t1") == [TableName("d1", "t1")]
    world.settle()
    assert held(world) == ["t0", "t2"]
    assert drops_of(world) is DropReview.HELD
    world.replica.reads.release_drops(lambda _: True)
    world.settle()
    world.settle()
    assert at_target(world) == ["plain", "t3", "t4", "t5"]
    assert differences(world) == []
    assert drops_of(world) is DropReview.REPAIRED


def test_what_operators_ask_for_leaves_drops_alone_that_wait_for_an_operator() -> None:
    world = world_of(tables=6)
    drop(world, "t0", "t1", "t2")
    world.lose()
    world.settle()
    for action in (Action.RELEASE, Action.REPAIR, Action.BOOTSTRAP):
        names = world.replica.take_request(Request("", action, ("d1.t0", "d1.t4")))
        assert (names or []) == ([] if action is Action.RELEASE else [TableName("d1", "t4")])
        world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    assert world.replica.take_request(Request("", Action.RELEASE_DROPS, ("d1.t0",))) == [TableName("d1", "t0")]
    world.replica.take_request(Request("", Action.RELEASE_DROPS, ("d1.t1",)))
    world.settle()
    assert held(world) == ["t2"]
    everything = world.replica.take_request(Request("", Action.BOOTSTRAP, ()))
    assert everything is not None
    assert world.replica.take_request(Request("", Action.RELEASE_DROPS, ())) is None
    world.settle()
    assert world.replica.take_request(Request("", Action.RELEASE_DROPS, ())) == [TableName("d1", "t2")]
    world.settle()
    assert differences(world) == []


@pytest.mark.parametrize(
    ("place", "method", "action"),
    [
        (target_catalog, "tables", Action.BOOTSTRAP),
        (ledger, "put_records", Action.BOOTSTRAP),
        (ledger, "put_records", Action.REPAIR),
    ],
)
def test_what_operators_ask_for_is_done_though_a_server_did_not_answer_when_it_was_taken_up(
    place: Place, method: str, action: Action
) -> None:
    world = world_of()
    defect = with_defect(world, place, Defect(method, Unavailable("No answer", "it is away")))
    defect.on = True
    with pytest.raises(Unavailable):
        world.replica.take_request(Request("", action, ()))
    assert world.replica.take_request(Request("", action, ())) is None
    world.window()
    defect.on = False
    world.window()
    names = world.replica.take_request(Request("", action, ()))
    assert names is not None
    assert len(names) == 5
    world.settle()
    assert world.replica.side.read_requests.requests == {}
    assert differences(world) == []


def test_partitions_count_and_few_drops_do_not_wait() -> None:
    world = world_of(tables=4, partitions=30)
    names = [f"p={number}" for number in range(9)]
    world.writer.source.drop_partitions(TableName("d1", "t0"), names)
    world.lose()
    world.settle()
    assert differences(world) == []
    world.writer.source.drop_partitions(TableName("d1", "t1"), [f"p={number}" for number in range(20)])
    world.lose()
    world.settle()
    assert held(world) == ["t1"]


def test_drops_that_events_tell_of_never_wait() -> None:
    world = world_of(tables=6)
    create(world, "lost")
    world.lose()
    drop(world, "t0", "t1", "t2", "t3")
    world.settle()
    assert not held(world)
    assert at_target(world) == ["lost", "plain", "t4", "t5"]
    assert differences(world) == []


def test_a_held_table_that_an_event_drops_is_dropped() -> None:
    world = world_of(tables=2, partitions=20)
    world.writer.source.drop_partitions(TableName("d1", "t0"), [f"p={number}" for number in range(20)])
    world.lose()
    world.settle()
    assert held(world) == ["t0"]
    drop(world, "t0")
    world.settle()
    world.settle()
    assert at_target(world) == ["plain", "t1"]
    assert drops_of(world) is DropReview.REPAIRED


def test_functions_and_databases_follow_a_gap() -> None:
    world = world_of()
    world.writer.source.create_database(Database("d3"))
    world.writer.source.create_function(Function("f", "d1", "org.F", "me", 1, type=1))
    world.settle()
    world.writer.source.drop_function(TableName("d1", "f"))
    world.writer.source.create_function(Function("g", "d1", "org.G", "me", 1, type=1))
    world.writer.source.drop_database("d3")
    world.writer.source.create_database(Database("d4"))
    world.lose()
    world.settle()
    world.settle()
    assert differences(world) == []
    assert world.target_store.functions("d1") == ["g"]
    assert "d3" not in world.target_store.databases()


def test_a_target_that_begins_after_a_gap_has_nothing_to_mend() -> None:
    world = world_of(opened=False)
    create(world, "late")
    world.lose()
    world.open()
    world.settle()
    assert [epoch.gap for epoch in world.ledger.epochs()] == [None] * len(world.ledger.epochs())
    epochs = len(world.ledger.epochs())
    world.restart()
    world.settle()
    assert len(world.ledger.epochs()) == epochs


def test_two_gaps_before_an_epoch_are_told_as_one() -> None:
    world = world_of()
    create(world, "one")
    world.lose()
    world.open()
    create(world, "two")
    world.lose()
    world.restart()
    world.settle()
    first, second = world.gaps.recorded()
    assert [epoch.gap for epoch in world.ledger.epochs() if epoch.gap] == [(first.span[0], second.span[1])]
    assert differences(world) == []


def test_a_first_bootstrap_over_replicas_that_were_left_over_drops_no_more_than_it_may() -> None:
    world = world_of(tables=6)
    drop(world, "t0", "t1", "t2")
    world.lose()
    world.restart_replica(MemoryLedger())
    world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    world.replica.reads.release_drops(lambda _: True)
    world.settle()
    assert at_target(world) == ["plain", "t3", "t4", "t5"]


def test_reading_all_again_drops_no_more_than_it_may() -> None:
    world = world_of(tables=6)
    backup = Backup(world.source)
    drop(world, "t0", "t1", "t2")
    world.source.purge(world.source.current())
    world.source.__dict__["_last_id"] = backup.content["_last_id"]
    world.replica.reads.read_all_again("asked for by bootstrap")
    world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    assert at_target(world) == ["plain", "t0", "t1", "t2", "t3", "t4", "t5"]


@pytest.mark.parametrize("data", ["copy", "none"])
def test_content_that_changed_in_a_gap_is_found_whatever_definitions_say(data: str) -> None:
    world = world_of(policy=replace(POLICY, data=data))
    put(world, "file:/source/d1.db/plain")
    put(world, "file:/source/d1.db/t1/p=1")
    world.lose()
    world.settle()
    assert differences(world) == []


def put(world: World, location: str) -> None:
    path = world.writer.put_file(location)
    table, _, day = location.removeprefix("file:/source/d1.db/").partition("/p=")
    world.writer.source.insert(TableName("d1", table), [path], values=[day] if day else None)


def test_definitions_of_partitions_that_changed_in_a_gap_are_found() -> None:
    world = world_of()
    name = TableName("d1", "t2")
    part = world.source.the_table(name).partitions["1",]
    world.writer.source.alter_partitions(name, [replace(part, parameters={"k": "v"})])
    world.lose()
    world.settle()
    assert differences(world) == []


def test_places_that_changed_in_a_gap_are_found_where_files_stay_at_the_source() -> None:
    world = world_of(policy=replace(POLICY, data="none"))
    plain, parted = TableName("d1", "plain"), TableName("d1", "t0")
    table, part = world.source.the_table(plain).table, world.source.the_table(parted).partitions["1",]
    assert table.storage is not None
    assert part.storage is not None
    elsewhere = replace(table.storage, location="file:/source/elsewhere")
    world.writer.source.alter_table(plain, replace(table, storage=elsewhere))
    world.writer.source.alter_partitions(
        parted, [replace(part, storage=replace(part.storage, location="file:/source/p"))]
    )
    world.lose()
    world.settle()
    assert location_of(world.target_store.the_table(plain).table) == "file:/source/elsewhere"
    assert location_of(world.target_store.the_table(parted).partitions["1",]) == "file:/source/p"


def test_partitions_that_events_drop_after_a_gap_do_not_wait() -> None:
    world = world_of(tables=2, partitions=20)
    create(world, "late")
    world.lose()
    world.writer.source.drop_partitions(TableName("d1", "t0"), [f"p={number}" for number in range(15)])
    world.settle()
    assert not held(world)
    assert differences(world) == []


def test_the_replica_of_another_table_is_not_equal_however_it_looks() -> None:
    world = world_of()
    name = TableName("d1", "plain")
    there = world.target_store.the_table(name).table
    world.target_store.alter_table(name, replace(there, parameters={**(there.parameters or {}), SOURCE: "hq:d1.other"}))
    world.writer.source.create_database(Database("e1"))
    world.lose()
    world.settle()
    assert world.replica.tables.in_state(State.QUARANTINED) == [name]


def test_less_than_ten_objects_go_whatever_their_share_is() -> None:
    world = world_of(tables=2)
    drop(world, "t1")
    world.lose()
    world.settle()
    assert at_target(world) == ["plain", "t0"]


@pytest.mark.parametrize(("tables", "dead", "waits"), [(99, False, True), (120, False, False), (120, True, False)])
def test_the_share_of_drops_is_that_of_all_objects_and_each_counts_once(tables: int, dead: bool, waits: bool) -> None:
    world = world_of(tables=0, opened=False)
    for number in range(tables):
        create(world, f"u{number:03d}")
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    drop(world, *(f"u{number:03d}" for number in range(tables - 11, tables)))
    world.lose()
    if dead:
        world.open()
        rows = [row for row in world.ledger.tables().values() if isinstance(row, TableRow) and row.table < f"u{BATCH}"]
        at = world.source.current()
        world.ledger.put_tables(
            [replace(row, state=TableState.LIVE, shows=at, reason="", why=NotLiveReason.OWN) for row in rows]
        )
        world.restart()
    world.settle()
    assert bool(held(world)) is waits


def test_after_a_log_went_back_the_first_drop_waits_for_an_operator() -> None:
    """It may be another metastore's, or an older state of this one."""
    world = world_of()
    backup = Backup(world.source)
    create(world, "late")
    world.settle()
    world.go_back(backup)
    world.settle()
    assert held(world) == ["late"]
    assert "late" in at_target(world)
    world.restart()
    world.settle()
    assert held(world) == ["late"]
    release(world)
    assert differences(world) == []
    drop(world, "t1")
    world.lose()
    world.settle()
    assert held(world) == []


@pytest.mark.parametrize("tables", [0, 1])
def test_all_of_a_database_waits_for_an_operator_however_few_objects_it_has(tables: int) -> None:
    world = world_of(tables=tables)
    before = at_target(world)
    drop(world, *before)
    world.writer.source.drop_database("d1")
    world.lose()
    world.settle()
    assert held(world) == at_target(world) == before
    release(world)
    assert at_target(world) == []


def release(world: World) -> None:
    """An operator lets go what is held."""
    assert world.replica.take_request(Request("", Action.RELEASE_DROPS, ()))
    world.settle()


def test_what_tables_show_after_a_log_went_back_is_an_event_that_it_has() -> None:
    world = world_of()
    backup = Backup(world.source)
    add(world, "t0", "x")
    world.settle()
    world.go_back(backup)
    world.open()
    rows = [row for row in world.ledger.tables().values() if isinstance(row, TableRow)]
    assert {row.state for row in rows} == {State.UNKNOWN}
    assert max(row.shows or 0 for row in rows) == world.source.current()
