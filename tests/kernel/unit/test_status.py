"""The status tells the truth in every state: of processes that run, that are gone, and that say nothing."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.commands.status import show
from calque.control.actions import pause
from calque.control.free_space import free_at
from calque.control.pause_rules import PauseAction, change, chosen_by, deciding_rule, paused_at, rule_times
from calque.control.process_locks import Roles
from calque.control.processes import ProcessPresence
from calque.control.status import snapshot
from calque.control.status_records import is_running, tell
from calque.control.verify_record import note_verification
from calque.core.records.reached_state import PAUSED
from calque.engine.verify.report import Verification
from calque.model.gaps import Gap, GapCause
from calque.model.ledger import (
    Bridge,
    DatabaseRow,
    Epoch,
    FunctionRow,
    Parts,
    Reread,
    RereadCause,
    StateRow,
    TableRow,
    TableState,
    count_bridges,
    count_parts,
    count_rereads,
)
from calque.model.names import TableName
from calque.model.records import GapRecovery
from calque.model.state_places import SourcePlaces, TargetPlaces
from calque.serve.lag_clock import HeadTimes
from calque.serve.table_lag import TableLag, lagging_of
from calque.wiring.wiring import Wiring

HERE = socket.gethostname()


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    """A deployment whose metastores nobody can reach."""
    path = tmp_path / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    return APP.wiring(APP.load(path))


def target_of(wiring: Wiring) -> Mapping[str, Any]:
    found: Mapping[str, Any] = snapshot(wiring, APP.status())["targets"]["dr"]
    return found


def seen(wiring: Wiring) -> tuple[str, str | None]:
    found = target_of(wiring)
    return found["state"], found["last_error"]


def told_before(wiring: Wiring, **changes: object) -> None:
    """The record that another process left, or keeps."""
    record = {"pid": 0, "host": HERE, "at": time.time(), "state": "running", "last_error": None}
    wiring.control.put(TargetPlaces("dr").status_record, record | changes)  # type: ignore[arg-type]


def test_before_the_first_run_all_is_stopped_and_nothing_is_known(wiring: Wiring) -> None:
    document = snapshot(wiring, APP.status())
    assert document["source"] == {"name": "hq", "head": None, "reachable": False, "dml_events": None}
    told = ("failing", "newest_at", "pinned_bytes", "pins", "kept_seconds")
    assert document["capture"] == {"state": "stopped", "last_error": None, **dict.fromkeys(told)}
    assert document["journal"] == {"last": None, "oldest": None, "gaps": [], "last_error": None}
    target = document["targets"]["dr"]
    assert (target["state"], target["position"], target["lag_events"]) == ("stopped", None, 0)
    assert document["processes"] == []


def test_an_error_stands_below_the_table_and_a_column_without_anything_is_left_out(
    wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    document = snapshot(wiring, APP.status())
    show(document)
    before = capsys.readouterr().out
    document["targets"]["dr"]["last_error"] = problem = "its metastore does not make a database. Look into its log."
    document["targets"]["dr"]["tables"] = dict.fromkeys(document["targets"]["dr"]["tables"], 0) | {"waiting": 2}
    show(document)
    after = capsys.readouterr().out
    assert f"dr: {problem}" in after.splitlines()
    headings = [next(line for line in said.splitlines() if line.startswith("target")) for said in (before, after)]
    assert ["waiting" in heading for heading in headings] == [False, True]
    assert not [heading for heading in headings if "quarantined" in heading or "error" in heading]


def test_a_process_that_has_told_nothing_yet_is_starting(wiring: Wiring) -> None:
    told_before(wiring)
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        assert seen(wiring) == ("starting", None)
        assert is_running(wiring, "dr")


@pytest.mark.parametrize("state", ["starting", "bootstrapping", "running", "failed"])
def test_what_a_living_process_tells_is_so(wiring: Wiring, state: str) -> None:
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        tell(wiring.control, TargetPlaces("dr").status_record, state, "its metastore does not answer")
        assert seen(wiring) == (state, "its metastore does not answer")
        tell(wiring.control, TargetPlaces("dr").status_record, state, None)
        assert seen(wiring) == (state, None)


@pytest.mark.parametrize(("state", "shown"), [("starting", "paused"), ("running", "paused"), ("failed", "failed")])
def test_a_target_that_is_held_back_is_paused_as_long_as_it_lives(wiring: Wiring, state: str, shown: str) -> None:
    wiring.control.put(TargetPlaces("dr").pause_record, {"at": 0.0})
    assert seen(wiring) == ("stopped", None)
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        tell(wiring.control, TargetPlaces("dr").status_record, state, None)
        assert seen(wiring) == (shown, None)


def test_the_newest_comparison_is_told(wiring: Wiring) -> None:
    assert target_of(wiring)["verified"] is None
    note_verification(wiring.control, Verification("dr", 12), is_whole=False)
    told = dict(target_of(wiring)["verified"])
    assert datetime.fromisoformat(told.pop("at")).tzinfo is not None
    assert told == {"event_id": 12, "differences": 0, "set_aside": 0, "whole": False}


def test_free_space_is_known_of_folders_on_this_host_alone(tmp_path: Path) -> None:
    later = tmp_path / "warehouse" / "of tomorrow"
    assert (free_at(str(later)) or 0) > 0
    assert free_at(later.as_uri()) is not None
    assert [free_at(place) for place in ("s3://bucket/dr", "hdfs://nn:8020/dr", "file://nas/dr")] == [None] * 3


def test_a_process_that_was_killed_has_stopped_whatever_it_told_last(wiring: Wiring) -> None:
    told_before(wiring, pid=os.getpid())
    assert seen(wiring) == ("stopped", None)
    assert not is_running(wiring, "dr")


def test_a_target_that_failed_says_why_until_it_runs_again(wiring: Wiring) -> None:
    told_before(wiring, state="failed", last_error="The ledger was changed. By another. Look.")
    assert seen(wiring) == ("failed", "The ledger was changed. By another. Look.")
    assert not is_running(wiring, "dr")
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        assert seen(wiring) == ("starting", None)


def test_a_process_that_lives_and_tells_nothing_is_told_of(wiring: Wiring) -> None:
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        told_before(wiring, pid=os.getpid(), at=time.time() - 60)
        state, error = seen(wiring)
        assert (state, f"Process {os.getpid()} has told nothing for 60 s" in str(error)) == ("running", True)


def test_a_process_on_another_host_lives_as_long_as_it_tells_of_itself(wiring: Wiring) -> None:
    told_before(wiring, host="elsewhere")
    assert seen(wiring) == ("running", None)
    told_before(wiring, host="elsewhere", at=time.time() - 60)
    assert seen(wiring) == ("stopped", None)


def test_several_processes_over_one_state_folder_are_told_apart(
    wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (ProcessPresence(wiring.control, wiring.state) for _ in range(2))
    one.serves = "http://127.0.0.1:9400"
    one.begin(("dr",))
    other.begin(())
    try:
        with Roles(wiring.state) as held:
            held.take({SourcePlaces().role: 30.0})
            tell(
                wiring.control,
                SourcePlaces().status_record,
                "running",
                "The journal can't be written. No space. Make room.",
                pins="hardlink",
            )
            document = snapshot(wiring, APP.status())
    finally:
        one.end()
        other.end()
    assert document["capture"] == {
        "state": "running",
        "last_error": "The journal can't be written. No space. Make room.",
        **dict.fromkeys(("failing", "newest_at", "pinned_bytes", "kept_seconds")),
        "pins": "hardlink",
    }
    assert document["targets"]["dr"]["state"] == "stopped"
    show(document)
    said = capsys.readouterr().out
    assert "capture is running: The journal can't be written. No space. Make room." in said
    assert "http://127.0.0.1:9400: dr" in said
    found = sorted((process["targets"], process["serves"]) for process in document["processes"])
    assert found == [([], None), (["dr"], "http://127.0.0.1:9400")]


def test_a_lag_beyond_half_of_the_time_for_which_hive_keeps_files_is_warned_of(
    wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    document = snapshot(wiring, APP.status())
    for lag, kept, warned in ((51.0, 100.0, True), (50.0, 100.0, False), (51.0, None, False), (None, 100.0, False)):
        document["targets"]["dr"]["lag_seconds"], document["capture"]["kept_seconds"] = lag, kept
        show(document)
        said = capsys.readouterr().out
        assert ("dr: warning: the lag is more than half of the 100 s" in said.replace("\n", " ")) == warned


def test_tables_that_lag_are_told_of_while_the_process_runs(wiring: Wiring, capsys: pytest.CaptureFixture[str]) -> None:
    lags = lagging_of([TableLag("sales.x", 7, 5, 90.04)])
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        tell(wiring.control, TargetPlaces("dr").status_record, "running", None, lagging=lags, window="dr-3-8")
        document = snapshot(wiring, APP.status())
    target = document["targets"]["dr"]
    assert target["lagging"] == [{"table": "sales.x", "shows": 7, "lag_events": 5, "lag_seconds": 90.0}]
    assert target["window"] == "dr-3-8"
    show(document)
    assert "dr: sales.x shows event 7, and lags by 5 events, 90.0 s" in capsys.readouterr().out
    stopped = target_of(wiring)
    assert (stopped["lagging"], stopped["window"]) == ([], None)


def test_held_back_tables_wait_with_the_event_that_they_show(wiring: Wiring) -> None:
    reason = f"{PAUSED} by an operator"
    rows = [
        TableRow("sales", "x", TableState.WAITING, 7, reason),
        TableRow("sales", "y", TableState.UNKNOWN, None, reason),
        TableRow("sales", "z", TableState.LIVE, 7),
    ]
    wiring.ledger("dr").publish(Epoch(1, 9, 0, "2026-11-22T00:00:00.000", "bootstrap"), [], rows)
    found = target_of(wiring)
    assert found["tables"] == {
        "unknown": 0,
        "reading": 0,
        "staging": 0,
        "live": 1,
        "waiting": 2,
        "quarantined": 0,
    }
    assert found["set_aside"] == [
        {"table": "sales.x", "state": "waiting", "shows": 7, "reason": reason},
        {"table": "sales.y", "state": "waiting", "shows": None, "reason": reason},
    ]


def test_looking_at_a_role_does_not_keep_anybody_from_taking_it(wiring: Wiring) -> None:
    looking = threading.Event()

    def look() -> None:
        while not looking.is_set():
            is_running(wiring, "dr")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(50):
            with Roles(wiring.state) as held:
                held.take({TargetPlaces("dr").role: 30.0})
    finally:
        looking.set()
        thread.join()


def test_rules_of_held_back_tables_are_kept(wiring: Wiring) -> None:
    assert change(wiring, "dr", PauseAction.PAUSE, ["sales.*"]) == ((PauseAction.PAUSE, "sales.*"),)
    assert change(wiring, "dr", PauseAction.RESUME, ["*.*"]) == ()


def test_a_pause_tells_since_when_and_one_that_is_said_again_is_no_younger(wiring: Wiring) -> None:
    began = time.time()
    change(wiring, "dr", PauseAction.PAUSE, ["sales.*"])
    first = rule_times(wiring.control, "dr")
    assert began <= first["sales.*"] <= time.time()
    change(wiring, "dr", PauseAction.PAUSE, ["sales.*", "hr.*"])
    assert rule_times(wiring.control, "dr")["sales.*"] == first["sales.*"]
    change(wiring, "dr", PauseAction.RESUME, ["sales.*"])
    change(wiring, "dr", PauseAction.PAUSE, ["sales.*"])
    again = rule_times(wiring.control, "dr")
    assert again["sales.*"] > again["hr.*"]


def test_pauses_of_a_version_that_wrote_no_times_hold_and_have_none(wiring: Wiring) -> None:
    rules = [["pause", "hr.*"], ["resume", "hr.staff"]]
    wiring.control.put(TargetPlaces("dr").pause_rules_record, {"rules": rules})
    assert rule_times(wiring.control, "dr") == {}
    assert change(wiring, "dr", PauseAction.PAUSE, ["tmp.*"])[-1] == (PauseAction.PAUSE, "tmp.*")
    assert list(rule_times(wiring.control, "dr")) == ["tmp.*"]


def test_the_rule_that_decides_on_a_table_is_the_last_one_that_matches() -> None:
    rules = ((PauseAction.PAUSE, "sales.*"), (PauseAction.RESUME, "sales.x"))
    names = [TableName("sales", "x"), TableName("sales", "y"), TableName("hr", "y")]
    assert [deciding_rule(rules)(name) for name in names] == [rules[1], rules[0], None]
    assert [chosen_by(rules)(name) for name in names] == [False, True, False]


def test_a_paused_target_tells_since_when(wiring: Wiring) -> None:
    assert paused_at(wiring.control, "dr") is None
    began = time.time()
    pause(wiring, "dr", ())
    assert began <= (paused_at(wiring.control, "dr") or 0) <= time.time()


def spoilt(folder: Path) -> None:
    """A table of the state whose log can't be read."""
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020}.json").write_text("{")


def test_a_ledger_that_can_not_be_read_is_told_of_and_nothing_is_made_up(
    wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    spoilt(wiring.state / "ledgers" / "dr" / "epochs")
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        tell(wiring.control, TargetPlaces("dr").status_record, "running", None)
        document = snapshot(wiring, APP.status())
    found = document["targets"]["dr"]
    assert (found["state"], found["position"], found["lag_events"], found["tables"]["live"]) == (
        "running",
        None,
        None,
        None,
    )
    assert f"{wiring.state}/ledgers/dr/epochs is damaged" in found["last_error"]
    assert document["journal"]["last_error"] is None
    show(document)
    assert "running" in capsys.readouterr().out


def test_a_journal_that_can_not_be_read_is_told_of_beside_what_is_known(wiring: Wiring) -> None:
    spoilt(wiring.state / "journal")
    with Roles(wiring.state) as held:
        held.take({SourcePlaces().role: 30.0})
        tell(
            wiring.control,
            SourcePlaces().status_record,
            "running",
            "The journal can't be written. It is a file. Put it back.",
        )
        document = snapshot(wiring, APP.status())
    assert document["journal"]["last"] is None
    assert f"{wiring.state}/journal is damaged" in document["journal"]["last_error"]
    assert document["capture"]["last_error"] == "The journal can't be written. It is a file. Put it back."


def row_states(wiring: Wiring, *rows: StateRow) -> Mapping[str, Any]:
    """The target's, with a position of 9, when its ledger says that."""
    wiring.ledger("dr").publish(Epoch(1, 9, 0, "2026-11-22T00:00:00.000", "bootstrap"), [], list(rows))
    return target_of(wiring)


def test_quarantined_tables_databases_and_functions_say_why_and_since_when(wiring: Wiring) -> None:
    found = row_states(
        wiring,
        TableRow("sales", "x", TableState.QUARANTINED, 7, "it is broken", 8),
        DatabaseRow("sales", TableState.QUARANTINED, "it is refused", 5),
        FunctionRow("sales", "f", TableState.QUARANTINED, None, "it is not ours", 6),
        TableRow("sales", "y", TableState.LIVE, 9),
    )
    assert (found["tables"]["quarantined"], found["tables"]["live"], found["set_aside"]) == (1, 1, [])
    assert sorted(found["quarantined"], key=lambda row: row["since_event"]) == [
        {"table": "sales", "since_event": 5, "reason": "it is refused"},
        {"table": "sales.f", "since_event": 6, "reason": "it is not ours"},
        {"table": "sales.x", "since_event": 8, "reason": "it is broken"},
    ]


def test_waiting_tables_and_those_to_be_read_say_what_they_show(wiring: Wiring) -> None:
    rows = TableRow("sales", "x", TableState.WAITING, 7, "its files"), TableRow("sales", "y", TableState.UNKNOWN)
    found = row_states(wiring, *rows)
    assert (found["position"], found["tables"]["waiting"], found["tables"]["unknown"]) == (9, 1, 1)
    assert found["set_aside"] == [
        {"table": "sales.x", "state": "waiting", "shows": 7, "reason": "its files"},
        {"table": "sales.y", "state": "unknown", "shows": None, "reason": ""},
    ]


def test_a_table_that_the_process_reads_or_copies_is_told_of_as_that(wiring: Wiring) -> None:
    wiring.ledger("dr").put_tables([TableRow("sales", name, TableState.UNKNOWN) for name in ("x", "y", "z")])
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        states = {"sales.x": "reading", "sales.y": "staging"}
        tell(wiring.control, TargetPlaces("dr").status_record, "bootstrapping", None, states=states)  # type: ignore[arg-type]
        found = target_of(wiring)
    assert (found["state"], found["position"]) == ("bootstrapping", None)
    assert {row["table"]: row["state"] for row in found["set_aside"]} == {**states, "sales.z": "unknown"}


@pytest.mark.parametrize(("settled", "state"), [(0, "repairing"), (1, "repaired")])
def test_a_gap_is_told_of_with_what_became_of_it(wiring: Wiring, settled: int, state: str) -> None:
    wiring.only_source().gaps().add(Gap(1, 3, 7, GapCause.PURGED, "2026-11-22T00:00:00+00:00"))
    wiring.only_source().gaps().settle(1)
    wiring.ledger("dr").put_tables([TableRow("sales", "x", TableState.LIVE, 3)])
    wiring.ledger("dr").put_records([GapRecovery(settled)])
    [gap] = snapshot(wiring, APP.status())["journal"]["gaps"]
    assert (gap["from"], gap["to"], gap["state"]) == (4, 7, state)


@pytest.mark.parametrize("ahead", [-86_400, 86_400])
def test_no_lag_is_negative_when_the_clock_was_set(ahead: int) -> None:
    heads = HeadTimes()
    heads.note_head(7, time.time() + ahead)
    assert heads.lag_seconds(5, time.time()) >= 0.0


def test_the_position_that_a_process_told_stays_when_it_is_gone_until_the_ledger_knows_better(wiring: Wiring) -> None:
    ledger = wiring.ledger("dr")
    ledger.publish(Epoch(0, 100, 0, "", "bootstrap"), (), ())
    told_before(wiring, position=120, epoch=0)
    assert (seen(wiring), target_of(wiring)["position"]) == (("stopped", None), 120)
    ledger.publish(Epoch(1, 110, 100, "", "window"), (), ())
    assert target_of(wiring)["position"] == 110


def test_a_bridge_that_several_epochs_tell_of_is_one() -> None:
    again, other = Bridge("d.t", 5, 9), Bridge("d.u", 5, 9)
    epochs = [
        Epoch(number, 10 * number, 0, "", "window", bridges=bridges)
        for number, bridges in enumerate(
            [(again, other), (again,), (), (Bridge("d.t", 5, 12),), (Bridge("d.t", 12, 14),), (Bridge("d.t", 20, 20),)]
        )
    ]
    assert count_bridges(epochs) == 4
    assert count_bridges(epochs[:4]) == 2


def test_operations_in_parts_are_counted_as_bridges_are_also_where_an_older_calque_told_only_their_tables() -> None:
    epochs = [
        Epoch(1, 9, 5, "", "window", in_parts=("d.t",)),
        Epoch(2, 12, 9, "", "window", in_parts=("d.t",), parts=(Parts("d.t", 9, 12),)),
        Epoch(3, 12, 12, "", "window", in_parts=("d.t",), parts=(Parts("d.t", 9, 12),)),
    ]
    assert count_parts(epochs) == 2


def test_rereads_are_counted_by_cause() -> None:
    hole, operator = (Reread("d.t", 9, cause, "") for cause in (RereadCause.HOLE, RereadCause.OPERATOR))
    epochs = [Epoch(1, 9, 5, "", "window", rereads=(hole, operator)), Epoch(2, 12, 9, "", "window", rereads=(hole,))]
    assert count_rereads(epochs) == {"hole": 2, "gap": 0, "operator": 1}
