"""A target whose next event the journal no longer has starts again by itself, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.cli import main
from calque.core.records.gap_states import own_gap
from calque.core.records.lifecycle import State
from calque.engine.exact_reads.gap_recovery import forgotten_span
from calque.engine.replica.dry_run import explain_next_window
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import EventsForgotten, Refused, Unavailable
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Database
from calque.model.ledger import Epoch, NotLiveReason, TableRow, TableState
from calque.model.names import Span, TableName
from calque.model.records import DropReview, GapRecovery, one_of
from calque.model.requests import Action, Request
from support.judges.documents import read_document
from support.worlds.gapped import POLICY, add, at_target, counted, create, drop, held, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World


def fall_behind(world: World, keep: int = 0) -> tuple[int, int]:
    """The journal lets go of what the target has not taken; the first and the last event of that."""
    world.capture_all()
    first = world.replica.cursor + 1
    world.forget(keep)
    return first, world.capture.last() - keep


def quarantined(world: World) -> list[TableName]:
    return world.replica.tables.in_state(State.QUARANTINED)


def test_a_target_that_fell_behind_the_journal_reads_only_what_changed() -> None:
    world = world_of(tables=12)
    add(world, "t3", "new")
    create(world, "late")
    drop(world, "t1")
    lost = fall_behind(world)
    epochs, calls = len(world.ledger.epochs()), counted(world)
    world.settle()
    assert differences(world) == []
    assert world.problems == []
    assert (calls["add_partitions"], calls["drop_table"]) == (1, 1)
    assert calls["copy"] <= 2
    assert calls["table"] < 20
    first = world.ledger.epochs()[epochs]
    assert (first.kind, first.gap) == ("repair", lost)
    assert [epoch.gap for epoch in world.ledger.epochs()].count(lost) == 1
    assert world.gaps.recorded() == []


def test_one_that_has_everything_does_not_start_again() -> None:
    world = world_of()
    world.forget()
    create(world, "late")
    world.settle()
    world.restart()
    world.settle()
    assert {epoch.kind for epoch in world.ledger.epochs()} == {"bootstrap", "window"}


def test_falling_behind_over_an_idle_warehouse_costs_listings() -> None:
    world = world_of()
    before = world.target_store.current()
    world.writer.source.create_database(Database("e1"))
    fall_behind(world)
    calls = counted(world)
    world.settle()
    assert differences(world) == []
    assert world.target_store.current() == before
    assert (calls["copy"], calls["table"]) == (0, 0)
    assert calls["headers"] <= 4


@pytest.mark.parametrize("keep", [0, 1])
def test_a_stopped_target_finds_it_at_its_next_start(keep: int) -> None:
    world = world_of()
    for name in ("one", "two", "three"):
        create(world, name)
    first, last = fall_behind(world, keep)
    world.restart()
    assert world.replica.cursor == world.source.current()
    gap = own_gap(world.ledger.records())
    assert gap is not None
    assert (gap.number, gap.span, gap.cause) == (0, (first, last), GapCause.FORGOTTEN)
    world.restart()
    world.settle()
    assert differences(world) == []
    assert [epoch.gap for epoch in world.ledger.epochs() if epoch.gap] == [(first, last)]


def test_events_that_go_in_the_middle_of_a_window_quarantine_nothing() -> None:
    world = world_of()
    add(world, "t0", "new")
    create(world, "late")
    drop(world, "t1")
    world.append_log()
    slept: list[None] = []

    def asleep() -> None:
        slept.append(world.capture_all())
        world.journal.forget(world.capture.last())

    world.clock.asleep = asleep
    epochs = len(world.ledger.epochs())
    world.window_alone()
    assert slept
    assert quarantined(world) == []
    assert len(world.ledger.epochs()) == epochs
    world.clock.asleep = world.capture_all
    world.settle()
    assert differences(world) == []
    assert world.problems == []
    assert {epoch.kind for epoch in world.ledger.epochs()} == {"bootstrap", "window", "repair"}


def test_events_that_go_while_a_table_is_read_have_it_read_once_more() -> None:
    world = world_of()
    name = TableName("d1", "t0")
    world.replica.reads.reread(lambda one: one == name, "the test wants it", {State.LIVE})

    todo = ["late"]

    def called(method: str) -> None:
        if method == "few_partitions" and todo:
            create(world, todo.pop())
            world.capture_all()
            world.forget()

    world.between = called
    world.read()
    assert not todo
    world.window_alone()
    assert quarantined(world) == []
    world.settle()
    assert differences(world) == []
    assert world.problems == []


def test_reads_that_are_under_way_are_given_up_and_what_was_asked_for_is_not_forgotten() -> None:
    world = world_of()
    name = TableName("d1", "t0")
    world.replica.take_request(Request("", Action.REPAIR, ("d1.t0",)))
    add(world, "t1", "new")
    fall_behind(world)
    world.window_alone()
    world.window_alone()
    assert world.side.read_requests.looks(name)
    world.settle()
    assert not world.side.read_requests.looks(name)
    assert differences(world) == []


def test_a_table_that_waits_for_events_that_are_gone_is_read_alone() -> None:
    world = world_of()
    name = TableName("d1", "plain")
    add(world, "t0", "new")
    world.capture_all()
    world.replica.tables.wait_for_files(name, world.replica.cursor, world.capture.last(), world.clock.elapsed_ns())
    world.window_alone()
    world.forget()
    assert world.replica.tables.rows[name].state == State.WAITING
    create(world, "late")
    world.capture_all()
    world.window_alone()
    assert world.replica.tables.rows[name].state == State.UNKNOWN
    world.settle()
    assert differences(world) == []
    assert "repair" not in {epoch.kind for epoch in world.ledger.epochs()}


def test_a_table_that_waits_for_events_that_are_gone_is_read_alone_after_a_start_too() -> None:
    world = world_of()
    name = TableName("d1", "plain")
    add(world, "t0", "new")
    world.capture_all()
    world.replica.tables.wait_for_files(name, world.replica.cursor, world.capture.last(), world.clock.elapsed_ns())
    world.window_alone()
    world.forget()
    world.restart()
    assert world.replica.tables.rows[name].state == State.UNKNOWN
    assert "no events up to" in world.replica.tables.rows[name].reason
    world.settle()
    assert differences(world) == []
    assert "repair" not in {epoch.kind for epoch in world.ledger.epochs()}


def test_many_drops_wait_for_an_operator() -> None:
    world = world_of(tables=6)
    drop(world, "t0", "t1", "t2")
    fall_behind(world)
    world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    assert at_target(world) == ["plain", "t0", "t1", "t2", "t3", "t4", "t5"]
    create(world, "late")
    fall_behind(world)
    world.settle()
    assert held(world) == ["t0", "t1", "t2"]
    world.replica.reads.release_drops(lambda _: True)
    world.settle()
    world.settle()
    assert at_target(world) == ["late", "plain", "t3", "t4", "t5"]
    assert differences(world) == []


def test_drops_that_the_journal_still_tells_of_never_wait() -> None:
    world = world_of(tables=6)
    create(world, "lost")
    drop(world, "t0", "t1", "t2", "t3")
    fall_behind(world, keep=4)
    world.settle()
    assert not held(world)
    assert at_target(world) == ["lost", "plain", "t4", "t5"]
    assert differences(world) == []


def test_a_gap_in_the_log_at_the_same_time_is_dealt_with_by_the_same_start() -> None:
    world = world_of()
    create(world, "one")
    fall_behind(world)
    create(world, "two")
    world.lose()
    world.settle()
    assert differences(world) == []
    assert len([epoch for epoch in world.ledger.epochs() if epoch.gap]) == 1
    assert own_gap(world.ledger.records()) is None


def test_a_gap_in_the_log_after_it_is_dealt_with_once_more() -> None:
    world = world_of()
    create(world, "one")
    first, _ = fall_behind(world)
    world.restart()
    create(world, "two")
    world.lose()
    world.settle()
    assert differences(world) == []
    (gap,) = world.gaps.recorded()
    assert [epoch.gap for epoch in world.ledger.epochs() if epoch.gap] == [(first, gap.span[1])]


def test_a_target_that_began_at_an_event_starts_again_like_any_other() -> None:
    world = world_of()
    start = world.replica.epochs.position()
    world.side = replace(world.side, policy=replace(POLICY, start=start))
    world.restart_replica(type(world.ledger)(world.recorded))
    world.settle()
    create(world, "late")
    first, last = fall_behind(world)
    world.restart()
    world.settle()
    assert differences(world) == []
    assert [epoch.gap for epoch in world.ledger.epochs() if epoch.gap] == [(first, last)]


def test_a_start_ahead_of_the_target_is_still_refused_where_the_journal_begins_later() -> None:
    world = world_of()
    start = world.replica.epochs.position()
    create(world, "one")
    create(world, "two")
    fall_behind(world)
    world.side = replace(world.side, policy=replace(POLICY, start=start))
    with pytest.raises(Refused, match="The journal begins with event"):
        world.restart_replica(type(world.ledger)(world.recorded))


def test_a_journal_that_begins_after_the_position_passes_nothing_over_in_silence() -> None:
    world = world_of()
    add(world, "t0", "new")
    world.capture_all()
    world.begin = world.capture.last()
    world.restart_replica(world.ledger)
    world.settle()
    assert differences(world) == []


def test_a_source_that_does_not_answer_while_the_target_starts_again_makes_no_epoch_false() -> None:
    world = world_of()
    add(world, "t0", "new")
    fall_behind(world)
    epochs, failing = len(world.ledger.epochs()), ["headers", "tables", "current"]

    def called(method: str) -> None:
        if failing and method == failing[-1]:
            failing.pop()
            raise Unavailable("The source does not answer", "", "")

    known: list[int] = []
    world.published = lambda: known.append(len(world.replica.tables.rows))
    world.between = called
    for _ in range(12):
        world.work()
    assert not failing
    assert world.ledger.epochs()[epochs].kind == "repair"
    assert {*known} == {5}
    world.settle()
    assert differences(world) == []


def test_a_death_right_after_all_were_counted_compares_facets_all_the_same() -> None:
    world = world_of()
    fell: list[str] = []
    create(world, "late")
    fall_behind(world)
    world.settle()
    recovery = one_of(world.ledger.records(), GapRecovery)
    assert recovery is not None
    assert recovery.drops is DropReview.REPAIRED
    world.ledger.put_records([replace(recovery, drops=DropReview.COUNTED)])
    world.between = fell.append
    world.restart()
    world.settle()
    assert "constraints" in fell
    assert one_of(world.ledger.records(), GapRecovery) == recovery


def test_looking_at_what_the_next_window_would_do_starts_nothing_again() -> None:
    world = world_of()
    add(world, "t0", "new")
    fall_behind(world)
    before = dict(world.ledger.tables()), world.ledger.records()
    found = explain_next_window(world.source_side, world.side, world.beginning, None)
    assert {row.why for row in found.reads} == {NotLiveReason.GAP}
    assert len(found.reads) == 5
    assert (dict(world.ledger.tables()), world.ledger.records()) == before


def test_events_that_the_journal_let_go_of_are_not_replayed() -> None:
    world = world_of()
    before = world.replica.cursor
    create(world, "late")
    fall_behind(world)
    world.settle()
    with pytest.raises(Refused, match="can't be replayed"):
        world.replica.requests.replay.tables(before, lambda _: True, "asked for by replay")
    with pytest.raises(Refused, match="can't be replayed"):
        world.replica.take_request(Request("", Action.REPLAY, (), before))


def test_what_is_asked_for_while_a_target_starts_again_waits_for_that() -> None:
    world = world_of()
    add(world, "t0", "new")
    fall_behind(world)
    world.window_alone()
    failing = [True]

    def called(method: str) -> None:
        if failing and method == "databases":
            raise Unavailable("The source does not answer", "", "")

    world.between = called
    world.window_alone()
    repair = Request("", Action.REPAIR, ("d1.t1",))
    assert world.replica.take_request(repair) is None
    failing.clear()
    world.settle()
    assert world.replica.take_request(repair) == [TableName("d1", "t1")]


def test_what_is_to_be_taken_over_waits_until_the_target_has_started_again() -> None:
    world = world_of()
    world.target_store.create_database(Database("d3"))
    world.writer.source.create_database(Database("d3"))
    fall_behind(world)
    adopt = Request("", Action.ADOPT, ("d3.*",))
    assert world.replica.take_request(adopt) is None
    world.settle()
    assert world.replica.take_request(adopt) == []
    world.settle()
    assert differences(world) == []


def test_capture_goes_on_though_the_journal_let_go_of_what_it_had_not_looked_at() -> None:
    world = world_of()
    add(world, "t0", "new")
    world.append_log()
    world.forget()
    gatherer = EvidenceGatherer(world.source_side, world.side.admission.takes)
    gatherer.resume(world.begin, world.capture.last())
    gatherer.run_once()
    assert (gatherer.considered, gatherer.pending) == (world.capture.last(), {})
    with pytest.raises(EventsForgotten):
        world.journal.entries(Span(world.capture.last() - 1, world.capture.last()))


TEXT = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
[targets.far]
metastore = "thrift://127.0.0.1:3"
warehouse = "far"
[state]
path = "{folder}/state"
"""
OWN = Gap(1, 812, 900, GapCause.FORGOTTEN, "2026-01-03T00:00:00+00:00")
LOGS = [Gap(1, 100, 120, GapCause.PURGED, "2026-01-01T00:00:00+00:00")]
AFTER = Gap(2, 950, 960, GapCause.PURGED, "2026-01-04T00:00:00+00:00")


READ = TableRow("d1", "t", TableState.UNKNOWN, 800, "the journal has no events", why=NotLiveReason.GAP)


@pytest.fixture
def status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[tuple[str, int, str]]]:
    """The gaps that the status tells of, when a target has come so far: whose, its last event, its state."""
    (tmp_path / "calque.toml").write_text(TEXT.format(folder=tmp_path))
    wiring = APP.wiring(APP.load(str(tmp_path / "calque.toml")))

    def told(gaps: list[Gap], recovery: GapRecovery, *rows: TableRow) -> list[tuple[str, int, str]]:
        for gap in gaps:
            wiring.only_source().gaps().add(gap)
        for target, records in {"dr": [recovery, forgotten_span(OWN)], "far": [GapRecovery(len(gaps))]}.items():
            ledger = wiring.ledger(target)
            ledger.publish(Epoch(1, 812, 0, "2026-01-01T00:00:00+00:00", "bootstrap"), [], [])
            ledger.put_records(records)
        wiring.ledger("dr").put_tables(rows)
        assert main(["status", "-c", str(tmp_path / "calque.toml")]) == 0
        assert "gap of dr: events 813 to 900 (forgotten)" in capsys.readouterr().out
        assert main(["status", "--json", "-c", str(tmp_path / "calque.toml")]) == 0
        found_gaps = read_document("status", capsys.readouterr().out)["journal"]["gaps"]
        return [(gap.get("target", ""), gap["to"], gap["state"]) for gap in found_gaps]

    return told


@pytest.mark.parametrize(
    ("gaps", "rows", "told"),
    [
        (LOGS, [GapRecovery(1, drops=DropReview.COMPARING), READ], [("", 120, "repaired"), ("dr", 900, "repairing")]),
        (LOGS, [GapRecovery(1, drops=DropReview.COUNTED)], [("", 120, "repaired"), ("dr", 900, "repairing")]),
        (LOGS, [GapRecovery(1, drops=DropReview.HELD)], [("", 120, "repaired"), ("dr", 900, "held")]),
        (LOGS, [GapRecovery(1)], [("", 120, "repaired"), ("dr", 900, "repaired")]),
        ([*LOGS, AFTER], [GapRecovery(1)], [("", 120, "repaired"), ("", 960, "repairing"), ("dr", 900, "repaired")]),
        (
            [*LOGS, AFTER],
            [GapRecovery(2, drops=DropReview.HELD)],
            [("", 120, "repaired"), ("", 960, "held"), ("dr", 900, "repaired")],
        ),
    ],
)
def test_the_status_lists_it_with_its_target_and_its_state(
    status: Callable[..., object], gaps: list[Gap], rows: list[object], told: list[tuple[str, int, str]]
) -> None:
    assert status(gaps, *rows) == told
