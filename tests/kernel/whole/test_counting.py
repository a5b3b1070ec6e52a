"""What a target's epochs tell of the work and of the exceptions: each once, and with its cause."""

from __future__ import annotations

from dataclasses import replace

from calque.core.events.rows import rows_of_events
from calque.core.records.lifecycle import State
from calque.model.journal import Event
from calque.model.ledger import Reread, RereadCause, count_rereads
from calque.model.names import TableName
from calque.model.requests import Action, Request
from support.worlds.gapped import POLICY, add, create, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World

T0 = TableName("d1", "t0")


def rereads_of(world: World) -> list[Reread]:
    return [reread for epoch in world.ledger.epochs() for reread in epoch.rereads]


def test_a_bootstrap_counts_what_all_its_windows_did() -> None:
    world = world_of(tables=3, opened=False)
    before = world.target_store.current()
    world.open()
    world.capture_all()
    while world.replica.epoch is None:
        world.read(1)
        world.window_alone()
    (epoch,) = world.ledger.epochs()
    landed = [window for window in world.windows if window.landed]
    assert len(landed) > 1
    assert (epoch.kind, epoch.tables) == ("bootstrap", 4)
    assert epoch.hops == sum(len(plan.hops) for window in landed for plan in window.plans) == 4
    assert epoch.files == sum(window.applied.files for window in landed) == 10
    assert epoch.calls == sum(window.applied.calls for window in landed) > 4
    assert world.target_store.current() > before
    assert epoch.rereads == ()


def test_what_the_next_epoch_tells_is_not_what_the_last_one_told() -> None:
    world = world_of()
    add(world, "t0", "new")
    world.settle()
    last = world.ledger.epochs()[-1]
    assert (last.tables, last.hops, last.calls, last.files, last.rereads) == (1, 1, 1, 1, ())


def test_a_table_whose_files_stay_unknown_is_told_of_with_the_event_that_left_them() -> None:
    world = world_of()
    add(world, "t0", "new")
    event_id = world.source.current()
    world.append_log()
    world.evidence.append([], event_id)
    world.writer.put_file("file:/source/d1.db/t0/p=new")
    world.work()
    row = world.replica.tables.rows[T0]
    assert (row.state, row.since_event) == (State.WAITING, event_id)
    assert row.reason == f"the files of event {event_id} are not known yet"
    world.clock.now += 31_000_000_000
    world.settle()
    assert rereads_of(world) == [
        Reread("d1.t0", event_id, RereadCause.HOLE, f"the files of event {event_id} stayed unknown")
    ]
    assert differences(world) == []


def test_what_an_operator_has_read_again_is_told_of_once_for_each_table() -> None:
    world = world_of(tables=2)
    before = world.replica.cursor
    world.replica.take_request(Request("", Action.REPAIR, ("d1.t*",)))
    world.settle()
    world.settle()
    cause = RereadCause.OPERATOR
    assert [(one.table, one.event_id, one.cause) for one in rereads_of(world)] == [
        ("d1.t0", before, cause),
        ("d1.t1", before, cause),
    ]
    assert count_rereads(world.ledger.epochs()) == {"hole": 0, "gap": 0, "operator": 2}


def test_after_a_gap_the_tables_that_were_read_are_told_of_and_not_those_that_were_compared() -> None:
    world = world_of(tables=6)
    add(world, "t3", "new")
    create(world, "late")
    world.lose()
    world.settle()
    assert [(one.table, one.cause) for one in rereads_of(world)] == [("d1.t3", RereadCause.GAP)]
    assert "gap 1: the log has lost events" in rereads_of(world)[0].reason
    assert differences(world) == []


def test_a_death_after_the_epoch_that_told_of_a_reread_makes_no_second_one() -> None:
    world = world_of(tables=2)
    world.replica.take_request(Request("", Action.REPAIR, ("d1.t0",)))
    world.window_alone()
    world.restart()
    world.settle()
    assert [one.table for one in rereads_of(world)] == ["d1.t0"]
    assert differences(world) == []


def test_a_table_with_an_event_that_can_not_be_folded_says_why_and_that_it_is_told_of_as_a_hole() -> None:
    world = world_of(tables=1)
    event_id = world.source.current() + 1
    world.capture.append(rows_of_events([Event(event_id, 1, "A_NEW_TYPE", "hive", "d1", "t0", "json-0.2", "{}")]))
    world.evidence.append([], event_id)
    world.window_alone()
    (told,) = rereads_of(world)
    assert (told.table, told.event_id, told.cause) == ("d1.t0", event_id, RereadCause.HOLE)
    assert told.reason == (
        f"event {event_id} (A_NEW_TYPE) can't be folded, as calque does not know events of this type; "
        "nothing is to be done"
    )


def test_a_change_of_a_user_that_endangers_the_files_of_the_source_is_taken_back_and_told_of_once() -> None:
    world = world_of(policy=replace(POLICY, data="none"))
    at_target = world.side.admission.name_at_target(T0)
    table = world.target_store.the_table(at_target).table
    purged = {**(table.parameters or {}), "external.table.purge": "true"}
    world.target_store.alter_table(at_target, replace(table, parameters=purged))
    for value in ("new", "newer"):
        add(world, "t0", value)
        world.settle()
    assert [epoch.disarmed for epoch in world.ledger.epochs()][-2:] == [("d1.t0",), ()]
    assert differences(world) == []
