"""How the parts of a process end: in order, cut short, left behind, or failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from calque.app import APP
from calque.commands import wait
from calque.commands.options import CommandSettings
from calque.control.pause_rules import PauseAction, change
from calque.control.requests import leave_request
from calque.control.status import snapshot
from calque.core.records.reached_state import ReachedState
from calque.engine.capture.continuity import Continuity
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR
from calque.errors import Broken, Unavailable
from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import EventId
from calque.model.requests import Action
from calque.model.state_places import TargetPlaces
from calque.serve.liveness_probe import LivenessProbe
from calque.streams.capture import SourceCapture
from calque.streams.replicator_process import ReplicatorProcess, end, running
from calque.streams.supervisor import ONLY_UNANSWERED, StatusRecord, SupervisedWork, Supervisor, nothing
from calque.streams.target import TargetReplication


class Calling:
    """One whose only call is answered when `answered` is set, or, where it `gives_up`, when it is cut short."""

    def __init__(self, run: ReplicatorProcess, name: str, answered: threading.Event, *, gives_up: bool = False) -> None:
        self.stream, self.name, self.answered = run.streams["hq"], name, answered
        self.calls = 0
        work = SupervisedWork(
            run_attempt=self.run_attempt,
            close=nothing,
            failed=run.fail,
            cancel_calls=answered.set if gives_up else nothing,
            ask=lambda: 0,
            status=StatusRecord(self.write_status, self.remove_status),
        )
        self.supervisor = Supervisor(run, name, work, ONLY_UNANSWERED, {})

    def run_attempt(self) -> None:
        self.answered.wait(60)

    def write_status(self) -> None:
        self.calls += 1

    def remove_status(self) -> None:
        self.calls = 0


class Failing(TargetReplication):
    """One that meets an invariant that fell."""

    def run_attempt(self) -> None:
        raise Broken("The ledger was changed", "by another", "Look before you go on")

    def ask(self) -> EventId:
        return 0


class Defective(Failing):
    """One that meets what nobody expects."""

    def run_attempt(self) -> None:
        raise KeyError("d1.t")


class Ending(Failing):
    """One that has nothing to do."""

    def run_attempt(self) -> None:
        return


@dataclass
class Waiting:
    """In place of capture's query."""

    part: SourceCapture
    name: str = "capture"

    def follow(self, *_: object) -> None:
        while not self.part.halted():
            time.sleep(0.01)

    def stop(self) -> None:
        pass


class Scanning(SourceCapture):
    """Capture of a log without events, beside which a scan meets what nobody expects."""

    def run_attempt(self) -> None:
        self.query = Waiting(self)  # type: ignore[assignment]
        self.capture(Continuity(self.wiring.only_source().side(), 0))

    def ask(self) -> EventId:
        return 0

    def scan(self, *_: object) -> None:
        def fall(_: threading.Event) -> None:
            raise KeyError("d1.t")

        self.start_background("scan", fall)


@pytest.fixture
def run(tmp_path: Path) -> ReplicatorProcess:
    path = tmp_path / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\nallow_weak_log = true\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    found = ReplicatorProcess(APP.wiring(APP.load(path)), ("dr",))
    found.presence.begin(found.targets)
    return found


class Unanswered(Calling):
    """One whose service does not answer before `answered` is set."""

    def run_attempt(self) -> None:
        if not self.answered.is_set():
            raise Unavailable("The service does not answer", "It is away", "Wait")
        self.supervisor.note_progress("running")
        self.supervisor.ending.wait(60)


def test_a_part_that_fails_again_says_since_when_how_often_and_when_it_is_tried_next(run: ReplicatorProcess) -> None:
    part, began = Unanswered(run, "away", threading.Event()), time.time()
    supervisor = part.supervisor
    assert (supervisor.failing(), supervisor.shown_state()) == (None, "starting")
    run.begin_part(part)
    within(lambda: (one := supervisor.failing()) is not None and one.attempts > 1 and one.next is not None)
    failing = supervisor.failing()
    assert failing is not None
    assert began <= failing.since <= time.time()
    assert supervisor.shown_state() == "failing"
    part.answered.set()
    within(lambda: supervisor.failing() is None)
    assert supervisor.shown_state() == "running"
    run.stop()


def test_a_service_that_does_not_answer_an_idle_part_is_told_since_when() -> None:
    def ask() -> EventId:
        raise Unavailable("The service does not answer", "It is away", "Wait")

    probe = LivenessProbe(ask, "away", period=0.01)
    probe.begin()
    within(lambda: probe.failed_calls > 1)
    probe.stop()
    assert probe.failing_since is not None


def within(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_is_answered_is_waited_for(run: ReplicatorProcess) -> None:
    answered = threading.Event()
    part = Calling(run, "slow", answered)
    run.begin_part(part)
    threading.Timer(0.3, answered.set).start()
    assert run.stop(30, 30)
    assert part.calls == 0


def test_what_goes_on_for_long_is_cut_short(run: ReplicatorProcess) -> None:
    run.begin_part(Calling(run, "long", threading.Event(), gives_up=True))
    began = time.monotonic()
    assert run.stop(0.2, 30)
    assert time.monotonic() - began < 10


def test_what_is_not_answered_is_left_behind(run: ReplicatorProcess) -> None:
    answered = threading.Event()
    run.begin_part(Calling(run, "silent", answered))
    run.begin_part(Calling(run, "long", threading.Event(), gives_up=True))
    assert not run.stop(0.1, 0.5)
    assert [thread.name for thread in running(run.parts)] == ["silent", "report-silent"]
    answered.set()
    assert run.stop(30, 30)


def test_what_parts_share_ends_with_the_process_and_not_with_one_of_them(run: ReplicatorProcess) -> None:
    """Parts that a reload leaves alone have the wiring of before."""
    before = run.wiring
    run.begin_part(Calling(run, "slow", threading.Event()))
    run.begin_part(Calling(run, "other", threading.Event()))
    run.wiring = APP.wiring(before.config)
    assert not end(run.parts[:1], 0.0, 0.3)
    assert not before.runtime.ending.is_set()
    assert not run.stop(0.0, 0.3)
    assert before.runtime.ending.is_set()
    for part in run.parts:
        assert isinstance(part, Calling)
        part.answered.set()
    assert run.stop(30, 30)


@pytest.mark.parametrize(("part", "told"), [(Failing, ("failed", True)), (Ending, ("stopped", False))])
def test_a_part_that_failed_says_so_when_its_process_is_gone(
    run: ReplicatorProcess, part: type[Failing], told: tuple[str, bool]
) -> None:
    begun = part(run, run.streams["hq"], "dr")
    run.begin_part(begun)
    for thread in begun.supervisor.threads():
        thread.join(30)
    run.stop()
    found = snapshot(run.wiring)["targets"]["dr"]
    assert (found["state"], "The ledger was changed" in str(found["last_error"])) == told
    assert isinstance(begun.supervisor.failure, Broken) is told[1]


def test_what_nobody_expects_of_a_target_is_a_defect_that_is_logged_once(
    run: ReplicatorProcess, caplog: pytest.LogCaptureFixture
) -> None:
    part = Defective(run, run.streams["hq"], "dr")
    run.begin_part(part)
    part.supervisor.thread.join(30)
    assert isinstance(part.supervisor.failure, Broken)
    assert part.supervisor.state == "failed"
    assert not run.stopping.is_set()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["dr ended"]


def test_what_nobody_expects_of_a_scan_ends_the_process(
    run: ReplicatorProcess, caplog: pytest.LogCaptureFixture
) -> None:
    run.wiring.control.put("journal", {"source": "hq", "after": 0})
    part = Scanning(run, run.streams["hq"])
    run.begin_part(part)
    part.supervisor.thread.join(30)
    assert isinstance(run.failure, Broken)
    assert run.stopping.is_set()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["capture ended"]


def test_a_signal_that_comes_while_the_configuration_is_read_ends_it_in_order(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    os.mkfifo(file)
    process = subprocess.Popen([sys.executable, "-m", "calque.cli", "run", "-c", str(file)], cwd=tmp_path)
    with file.open("w", encoding="utf-8") as written:
        process.send_signal(signal.SIGTERM)
        written.write('[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n')
        written.write('[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n')
        written.write('[serve]\naddress = ""\n')
    assert process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_in_the_midst_of_a_wait_for_its_event_holds_up_nobody(number: signal.Signals) -> None:
    context = {signal.SIGTERM: "ended_by_signals()", signal.SIGHUP: "reloading_on_hangup(event)"}[number]
    code = f"""
import os, threading
from calque.streams.job import reloading_on_hangup
from calque.streams.signals import ended_by_signals

event = threading.Event()
with {context} as stopping:
    awaited = stopping or event
    with awaited._cond:
        os.kill(os.getpid(), {int(number)})
    assert awaited.wait(30)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 0


def test_a_second_signal_says_so_in_the_exit_code_also_after_what_it_would_stop() -> None:
    code = """
import os, signal
from calque.streams.signals import ended_by_signals

with ended_by_signals() as stopping:
    os.kill(os.getpid(), signal.SIGTERM)
    assert stopping.wait(30)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM


def test_where_each_thread_is_can_be_asked_of_a_process_that_goes_on() -> None:
    code = """
import os, signal
from calque.streams.signals import ended_by_signals

with ended_by_signals():
    os.kill(os.getpid(), signal.SIGUSR1)
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "most recent call first" in done.stderr


def test_a_target_that_is_paused_is_not_waited_for(run: ReplicatorProcess) -> None:
    part = Ending(run, run.streams["hq"], "dr")
    assert part.report.reached_state(5) is ReachedState.GOING
    run.wiring.control.put(TargetPlaces("dr").pause_record, {})
    assert part.report.reached_state(5) is ReachedState.WITHOUT
    with pytest.raises(Unavailable, match="An operator has paused it"):
        wait.run(CommandSettings(app=APP), run.wiring.config, "dr", 5, None)


@pytest.mark.parametrize("state", [TableState.WAITING, TableState.QUARANTINED])
def test_who_waits_sees_what_operators_let_go_on_before_a_run_takes_that_up(
    run: ReplicatorProcess, state: TableState
) -> None:
    wiring = run.wiring
    reason = PAUSED_BY_OPERATOR if state == TableState.WAITING else "it failed"
    wiring.ledger("dr").publish(Epoch(1, 5, 0, "", "window"), [], [TableRow("d", "t", state, 1, reason, 1)])
    change(wiring, "dr", PauseAction.PAUSE, ["d.*"])
    with pytest.raises(Unavailable, match=r"without d\.t"):
        wait.run(CommandSettings(app=APP), wiring.config, "dr", 5, 0.0)
    change(wiring, "dr", PauseAction.RESUME, ["d.t"])
    if state == TableState.QUARANTINED:
        leave_request(wiring, "dr", Action.RELEASE, [])
    with pytest.raises(Unavailable, match="after 0 s"):
        wait.run(CommandSettings(app=APP), wiring.config, "dr", 5, 0.0)
