"""What the status says of gaps, from the ledgers of all targets; and who waits for a gap to be dealt with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.control import ControlGaps
from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.cli import main
from calque.control.requests import leave_request, open_requests
from calque.core.records.gap_states import GapState, TargetGaps, dealt_with, states_of
from calque.core.records.reached_state import ReachedState
from calque.engine.sweep.retention import Limits, release, shown_by_all
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.ledger import Epoch, NotLiveReason, TableRow, TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.records import DropReview, GapRecovery
from calque.model.requests import Action
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.target import TargetReplication
from calque.wiring.wiring import Wiring
from support.judges.documents import read_document
from support.memory.ledger import MemoryLedger
from support.worlds.worlds import Died, Noting, World

GAPS = [
    Gap(1, 812, 900, GapCause.PURGED, "2026-01-01T00:00:00+00:00"),
    Gap(2, 950, 700, GapCause.WENT_BACK, "2026-01-02T00:00:00+00:00"),
]
READ = TableRow("d1", "t", TableState.UNKNOWN, 800, "gap 2: the log went back", why=NotLiveReason.GAP)
LIVE = TableRow("d1", "t", TableState.LIVE, 900)
TEXT = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
[state]
path = "{folder}/state"
"""


def of(row: TableRow, number: int, drops: DropReview = DropReview.REPAIRED) -> TargetGaps:
    """What a ledger with this row says that has dealt with the gap of that number."""
    return TargetGaps.of([GapRecovery(number, drops=drops)], [row])


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    (tmp_path / "calque.toml").write_text(TEXT.format(folder=tmp_path))
    return APP.wiring(APP.load(str(tmp_path / "calque.toml")))


@pytest.mark.parametrize(
    ("targets", "first", "second"),
    [
        ([TargetGaps.of([], [LIVE])], GapState.REPAIRING, GapState.REPAIRING),
        ([of(LIVE, 1)], GapState.REPAIRED, GapState.REPAIRING),
        ([of(LIVE, 2)], GapState.REPAIRED, GapState.REPAIRED),
        ([of(READ, 2)], GapState.REPAIRED, GapState.REPAIRING),
        ([of(LIVE, 2, DropReview.COUNTED)], GapState.REPAIRED, GapState.REPAIRING),
        ([of(replace(READ, why=NotLiveReason.ALL), 2)], GapState.REPAIRED, GapState.REPAIRED),
        ([of(LIVE, 2, DropReview.HELD)], GapState.REPAIRED, GapState.HELD),
        ([of(LIVE, 2, DropReview.HELD), of(LIVE, 2)], GapState.REPAIRED, GapState.HELD),
        ([of(LIVE, 2, DropReview.HELD), of(LIVE, 1)], GapState.REPAIRED, GapState.REPAIRING),
        ([], GapState.REPAIRED, GapState.REPAIRED),
    ],
)
def test_a_gap_is_repaired_when_no_target_has_to_do_with_it_any_more(
    targets: Sequence[TargetGaps], first: GapState, second: GapState
) -> None:
    assert states_of(GAPS, targets) == {1: first, 2: second}


def test_the_status_lists_gaps_with_their_states(
    wiring: Wiring, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gaps = wiring.only_source().gaps()
    for gap in GAPS:
        gaps.add(gap)
    wiring.only_source().side().journal.restart(700)
    wiring.ledger("dr").put_tables([LIVE])
    wiring.ledger("dr").put_records([GapRecovery(1)])
    assert main(["status", "--json", "-c", str(tmp_path / "calque.toml")]) == 0
    status = read_document("status", capsys.readouterr().out)
    assert [(gap["from"], gap["to"], gap["state"]) for gap in status["journal"]["gaps"]] == [
        (813, 900, "repaired"),
        (701, 950, "repairing"),
    ]
    assert status["targets"]["dr"]["tables"]["live"] == 1
    assert main(["status", "-c", str(tmp_path / "calque.toml")]) == 0
    assert "events 701 to 950 (went back)" in capsys.readouterr().out


def test_a_target_behind_a_gap_with_nothing_in_the_journal_yet_has_a_status(wiring: Wiring, tmp_path: Path) -> None:
    wiring.only_source().gaps().add(GAPS[0])
    wiring.only_source().side().journal.restart(900)
    wiring.ledger("dr").publish(Epoch(1, 812, 0, "2026-01-01T00:00:00+00:00", "bootstrap"), [], [LIVE])
    assert main(["status", "-c", str(tmp_path / "calque.toml")]) == 0


def test_nobody_is_told_that_a_target_shows_an_event_of_another_history(wiring: Wiring, tmp_path: Path) -> None:
    ledger, arguments = wiring.ledger("dr"), ["wait", "--target", "dr", "--event-id", "720", "--timeout", "0"]
    ledger.publish(Epoch(1, 950, 0, "2026-01-01T00:00:00+00:00", "bootstrap"), [], [LIVE])
    ledger.put_records([GapRecovery(1)])
    for gap in GAPS:
        wiring.only_source().gaps().add(gap)
    assert main([*arguments, "-c", str(tmp_path / "calque.toml")]) == 75
    ledger.put_records([GapRecovery(2)])
    assert main([*arguments, "-c", str(tmp_path / "calque.toml")]) == 0


def test_nothing_is_forgotten_because_a_target_showed_it_in_another_history() -> None:
    epoch = Epoch(1, 950, 0, "2026-01-01T00:00:00+00:00", "bootstrap")
    ledger = MemoryLedger()
    ledger.publish(epoch, [], [LIVE])
    ledger.put_records([GapRecovery(1)])
    assert shown_by_all(ledger, 2) == 0
    ledger.put_records([GapRecovery(2)])
    assert shown_by_all(ledger, 2) == 950
    world = World(1, pins=True)
    pins = world.source_side.pins
    assert pins is not None
    world.storage.write("file:/t/f", b"1")
    assert pins.keep(0, "file:/t", world.storage.list(["file:/t"])["file:/t"])
    world.ledger.publish(replace(epoch, event_id=9), [], [])
    limits = Limits(10**9, 10**9)
    pins.keep(5, "file:/t", world.storage.list(["file:/t"])["file:/t"])
    assert 5 not in release(pins, [world.ledger], limits, 0, gap=1)
    assert 5 in release(pins, [world.ledger], limits, 0)


class Parts:
    """A target's part of a process, over the world in memory."""

    def __init__(self, wiring: Wiring, world: World | None = None) -> None:
        self.wiring = wiring
        self.run = ReplicatorProcess(wiring, ["dr"])
        self.part = TargetReplication(self.run, self.run.streams["hq"], "dr")
        if world is None:
            world = World(1)
            world.open()
            world.settle()
        self.part.current.replica = world.replica


def test_a_part_is_behind_from_the_gap_on_and_reaches_nothing_until_the_target_has_dealt_with_it(
    wiring: Wiring,
) -> None:
    parts = Parts(wiring)
    part = parts.part
    assert part.report.reached_state(0) is ReachedState.GOING
    parts.part.stream.continuity_checked.set()
    assert part.report.reached_state(0) is ReachedState.REACHED
    wiring.only_source().gaps().add(GAPS[0])
    assert part.current.is_behind()
    assert part.report.reached_state(0) is ReachedState.GOING
    part.current.gap = 1
    assert part.report.reached_state(0) is ReachedState.GOING
    wiring.ledger("dr").put_records([GapRecovery(1)])
    assert part.report.reached_state(0) is ReachedState.REACHED
    assert part.current.replica is not None
    part.current.replica.tables.need_read(TableName("d1", "t"), "asked for", 9)
    assert part.report.reached_state(0) is ReachedState.GOING


def test_a_paused_table_that_is_to_be_read_is_not_waited_for(wiring: Wiring) -> None:
    world = World(1)
    world.open()
    world.settle()
    world.writer.run("create_table")
    world.settle()
    parts, name = Parts(wiring, world), TableName("d1", "t")
    parts.part.stream.continuity_checked.set()
    position, tables = world.source.current(), world.replica.tables
    tables.wait_for_files(name, position - 1, position, 0)
    tables.need_read(name, "asked for by repair", position)
    assert parts.part.report.reached_state(position) is ReachedState.GOING
    tables.pauses.park(name)
    assert parts.part.report.reached_state(position) is ReachedState.WITHOUT


def test_with_each_gap_offsets_begin_anew(wiring: Wiring) -> None:
    names = [wiring.folder.checkpoint("capture", gap) for gap in (0, 1, 2)]
    assert len({*names}) == 3
    assert names[0] == wiring.folder.checkpoint("capture")
    assert isinstance(wiring.ledger("dr"), DeltaLedger)
    assert isinstance(wiring.only_source().gaps(), ControlGaps)
    assert dealt_with([]) == 0


def test_a_replay_that_is_refused_when_it_is_taken_up_is_told_until_something_else_is_asked_for(wiring: Wiring) -> None:
    part = Parts(wiring).part
    replica = part.current.replica
    assert replica is not None
    leave_request(wiring, "dr", Action.REPLAY, (), 999)
    part.windows.apply_window(replica, replica.cursor)
    assert "Events after 999 can't be replayed" in str(part.supervisor.problem())
    part.windows.apply_window(replica, replica.cursor)
    assert part.supervisor.problem()
    assert not open_requests(wiring, "dr")
    leave_request(wiring, "dr", Action.REPAIR, ("d9.*",))
    part.windows.apply_window(replica, replica.cursor)
    assert part.supervisor.problem() is None


def test_a_window_after_a_death_is_not_shorter_than_the_one_that_died(wiring: Wiring, tmp_path: Path) -> None:
    world = World(1, policy=Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", consistency="database"))
    made, one, other = (TableName("d1", name) for name in ("made", "one", "other"))
    world.source.create_database(Database("d1"))
    for name in (one, other):
        world.source.create_table(table_of(name))
    for name in (made, one, other):
        world.storage.write(f"file:/source/{name}/one", b"1")
    world.clock.now += 60 * 10**9
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    store = Noting(world.source, world.note)
    changed = [replace(table_of(name), parameters={"EXTERNAL": "TRUE", "k": "v"}) for name in (one, other)]
    store.create_table(table_of(made))
    world.capture_all()
    for table in changed:
        store.alter_table(TableName("d1", table.name), table)
        world.capture_all()
    store.drop_table(made, delete_data=False)
    world.capture_all()
    shown = {False}

    def dies() -> bool:
        shown.add("made" in world.target_store.tables("d1"))
        return True in shown and "made" not in world.target_store.tables("d1")

    world.fate, world.mortal = dies, True
    with pytest.raises(Died):
        Parts(wiring, world).part.windows.apply_until(world.replica, world.source.current())
    world.mortal = False
    world.restart_replica(world.ledger)
    (tmp_path / "calque.toml").write_text(TEXT.format(folder=tmp_path) + "[window]\nmax_events = 2\n")
    part = Parts(APP.wiring(APP.load(str(tmp_path / "calque.toml"))), world).part
    part.windows.apply_until(world.replica, world.source.current())
    assert world.problems == []
    assert world.replica.epochs.position() == world.source.current()
    assert part.windows.window_size.due() == 2


def table_of(name: TableName) -> Table:
    storage = Storage((Column("x", "int"),), f"file:/source/{name}", serde=SerDe(parameters={}))
    return Table(name.table, name.database, storage=storage, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE")
