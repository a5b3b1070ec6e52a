"""What becomes of the other targets when one of them can't go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.control.status import snapshot
from calque.core.records.reached_state import ReachedState
from calque.errors import Broken, CalqueError, Refused, Unavailable
from calque.model.names import EventId
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.supervisor import Supervisor
from calque.streams.target import ATTEMPTS, TargetReplication
from calque.streams.target_report import TargetReport

REFUSED = Refused("The target is refused", "its warehouse is", "Correct it")
BROKEN = Broken("The ledger was changed", "by another", "Look before you go on")
SOON = 30.0


class Shown(TargetReport):
    """Of a target that shows event 7 as soon as it runs."""

    def reached_state(self, event_id: EventId) -> ReachedState:
        return ReachedState.REACHED if self.supervisor.state == "running" and event_id <= 7 else ReachedState.GOING


class Playing(TargetReplication):
    """Meets these errors one by one, then goes on until it ends."""

    def __init__(self, run: ReplicatorProcess, name: str, *errors: CalqueError) -> None:
        super().__init__(run, run.streams["hq"], name, replace(ATTEMPTS, first=0.01))
        self.errors, self.attempts = list(errors), 0
        self.report = Shown(self.current, self.supervisor)

    def run_attempt(self) -> None:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        self.supervisor.note_progress("running")
        while not self.supervisor.stopped():
            self.supervisor.sleep(0.01)

    def ask(self) -> EventId:
        return 0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[ReplicatorProcess]:
    path = tmp_path / "calque.toml"
    targets = "".join(
        f'[targets.{name}]\nmetastore = "thrift://127.0.0.1:{port}"\nwarehouse = "{name}"\n'
        for name, port in (("one", 2), ("other", 3))
    )
    path.write_text(f'[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n{targets}')
    found = ReplicatorProcess(APP.wiring(APP.load(path)), ("one", "other"), capture=False)
    found.presence.begin(found.targets)
    yield found
    found.stop()


def begin(
    run: ReplicatorProcess, one: tuple[CalqueError, ...], other: tuple[CalqueError, ...] = ()
) -> tuple[Playing, Playing]:
    parts = Playing(run, "one", *one), Playing(run, "other", *other)
    for part in parts:
        run.begin_part(part)
    return parts


def soon(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_broken_target_is_left_alone_and_the_others_go_on(run: ReplicatorProcess) -> None:
    one, other = begin(run, (BROKEN,))
    assert run.wait(None, 0.5) is ReachedState.GOING
    assert (one.supervisor.state, other.supervisor.state) == ("failed", "running")
    assert one.attempts == 1
    assert "The ledger was changed" in str(one.supervisor.problem())
    assert run.snapshot().targets[0].state == "failed"


def test_a_refused_target_is_tried_again_until_it_is_mended(run: ReplicatorProcess) -> None:
    one, other = begin(run, (REFUSED,) * 3)
    soon(lambda: one.supervisor.state == "running")
    assert one.attempts == 4
    assert one.supervisor.problem() is None
    assert run.wait(None, 0.1) is ReachedState.GOING
    assert other.attempts == 1


def test_a_target_that_is_refused_says_why_while_it_is_tried_again(run: ReplicatorProcess) -> None:
    one, _ = begin(run, (REFUSED,) * 100_000)
    soon(lambda: one.attempts > 2)
    soon(lambda: "The target is refused" in str(snapshot(run.wiring)["targets"]["one"]["last_error"]))


def test_what_does_not_answer_at_the_start_holds_up_nobody(run: ReplicatorProcess) -> None:
    one, other = begin(run, (Unavailable("No metastore answers", "refused", "Start it"),) * 3)
    soon(lambda: other.supervisor.state == "running")
    soon(lambda: one.supervisor.state == "running")
    assert other.attempts == 1


def test_the_process_ends_when_no_target_is_left(run: ReplicatorProcess) -> None:
    begin(run, (BROKEN,), (REFUSED,) * 100_000)
    with pytest.raises((Broken, Refused)):
        run.wait(None, SOON)


def test_until_waits_for_those_that_go_on_and_then_tells_who_failed(run: ReplicatorProcess) -> None:
    begin(run, (BROKEN,))
    with pytest.raises(Broken, match="The ledger was changed"):
        run.wait({"hq": 7}, SOON)


def test_a_call_that_is_not_answered_holds_up_no_change_of_targets(run: ReplicatorProcess) -> None:
    answered = threading.Event()

    class Silent(Playing):
        def run_attempt(self) -> None:
            answered.wait(SOON)

    silent = Silent(run, "one")
    run.begin_part(silent)
    began = time.monotonic()
    run.end_parts([silent], 0.1, 0.5)
    assert time.monotonic() - began < 10
    assert run.parts == []
    answered.set()


def test_targets_whose_source_another_process_captures_have_one_query_over_its_journal(
    run: ReplicatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Supervisor] = []
    monkeypatch.setattr(Supervisor, "start", lambda part: begun.append(part))
    run.begin_parts((), ("one", "other"))
    assert [part.name for part in begun] == ["journal hq", "one", "other"]
    run.parts.clear()
