"""The roles of a state folder: one process has each, and is replaced when it is dead, or seems so for its lease."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from calque.control.process_locks import Roles, holder, tell_of_holders
from calque.engine.lease.fence import FencedHit
from calque.errors import Broken, Unavailable

ROLE = "target dr"
LEASE = 1.5
HOLD = f"""
import sys, time
from pathlib import Path
from calque.control.process_locks import Roles
with Roles(Path(sys.argv[1])) as roles:
    roles.take({{{ROLE!r}: {LEASE}}})
    print("taken", flush=True)
    while roles.lost is None:
        time.sleep(0.01)
    print(roles.lost, flush=True)
"""


class Other:
    """A process that has the role until it is replaced in it."""

    def __init__(self, state: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, str(state)], stdout=subprocess.PIPE, text=True)
        assert self.read() == "taken"

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        if number is signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    process = Other(tmp_path)
    yield process
    process.close()


def test_a_process_that_lives_keeps_its_role_and_is_named(other: Other, tmp_path: Path) -> None:
    with Roles(tmp_path) as roles, pytest.raises(Unavailable) as refused:
        roles.take({ROLE: LEASE, "capture": LEASE})
    assert str(refused.value).startswith(
        f"Another process runs {ROLE} on {tmp_path}. It is process {other.process.pid}."
    )
    assert (holder(tmp_path, ROLE), holder(tmp_path, "capture")) == (other.process.pid, None)
    assert sorted(path.name for path in (tmp_path / "locks").glob(".*")) == []


def test_a_start_says_at_once_which_process_has_the_roles_and_how_long_it_waits(
    other: Other, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tell_of_holders(tmp_path, {ROLE: 30.0, "capture": 600.0})
    [told] = caplog.messages
    assert told.startswith(
        f"Process {other.process.pid} runs {ROLE} here. This one waits for a sign of life from it, for 30 s"
    )
    other.close()
    tell_of_holders(tmp_path, {ROLE: 30.0})
    tell_of_holders(tmp_path / "nothing", {ROLE: 30.0})
    assert caplog.messages == [told]


def test_a_suspended_process_is_replaced_after_its_lease_and_begins_no_effect_when_it_wakes_up(
    other: Other, tmp_path: Path
) -> None:
    other.send(signal.SIGSTOP)
    began = time.monotonic()
    with Roles(tmp_path) as roles:
        assert roles.take({ROLE: LEASE})
        assert time.monotonic() - began >= LEASE
        assert (holder(tmp_path, ROLE), roles.takeovers(ROLE)) == (os.getpid(), 1)
        other.send(signal.SIGCONT)
        me = f"process {os.getpid()} on {socket.gethostname()}"
        assert other.read() == (
            f"The lease on {ROLE} in {tmp_path} is lost. It was taken by {me}. "
            "See to it that one process writes there, and start that one."
        )
        roles.permit()
        with Roles(tmp_path) as third, pytest.raises(Unavailable, match=f"It is process {os.getpid()}"):
            third.take({ROLE: LEASE})


def test_the_next_process_after_a_takeover_waits_for_nobody_though_the_first_is_still_suspended(
    other: Other, tmp_path: Path
) -> None:
    other.send(signal.SIGSTOP)
    with Roles(tmp_path) as roles:
        assert roles.take({ROLE: LEASE})
    with Roles(tmp_path) as roles:
        began = time.monotonic()
        assert roles.take({ROLE: 600.0})
        assert time.monotonic() - began < LEASE
        assert roles.takeovers(ROLE) == 1


def test_a_process_that_was_killed_is_replaced_at_once(other: Other, tmp_path: Path) -> None:
    other.close()
    with Roles(tmp_path) as roles:
        began = time.monotonic()
        assert roles.take({ROLE: 600.0})
        assert time.monotonic() - began < LEASE
        assert roles.takeovers(ROLE) == 0


@pytest.mark.usefixtures("other")
def test_nobody_is_waited_for_in_a_copy_of_a_state_folder(tmp_path: Path) -> None:
    copytree(tmp_path, tmp_path / "copy")
    with Roles(tmp_path / "copy") as roles:
        began = time.monotonic()
        assert roles.take({ROLE: 600.0})
        assert time.monotonic() - began < LEASE


@pytest.mark.usefixtures("other")
def test_a_process_that_lives_keeps_its_role_though_somebody_removed_its_lock(tmp_path: Path) -> None:
    (tmp_path / "locks" / "target.dr.lock").unlink()
    with Roles(tmp_path) as roles, pytest.raises(Unavailable, match="Another process runs"):
        roles.take({ROLE: LEASE})


def test_a_lock_without_a_lease_is_of_a_process_that_lives(other: Other, tmp_path: Path) -> None:
    """An older calque has none."""
    other.send(signal.SIGSTOP)
    for path in (tmp_path / "locks").glob("*.lease"):
        path.unlink()
    with Roles(tmp_path) as roles, pytest.raises(Unavailable, match="Another process runs"):
        roles.take({ROLE: LEASE})


def test_who_waits_for_a_suspended_process_can_be_stopped_and_has_nothing_then(other: Other, tmp_path: Path) -> None:
    other.send(signal.SIGSTOP)
    stopping = threading.Event()
    stopping.set()
    with Roles(tmp_path) as roles:
        assert not roles.take({"capture": LEASE, ROLE: 600.0}, stopping)
        assert roles.held_roles == {}
    assert (holder(tmp_path, "capture"), holder(tmp_path, ROLE)) == (None, other.process.pid)


def test_effects_of_a_process_that_lost_a_role_do_not_begin_and_its_own_record_goes(tmp_path: Path) -> None:
    hits: list[str] = []
    with Roles(tmp_path) as roles:
        roles.take({ROLE: LEASE})
        hit = FencedHit(roles, hits.append)
        hit("journal.append.before")
        roles.held_roles[ROLE].lease.lost = Broken("The lease is lost")
        with pytest.raises(Broken):
            hit("journal.append.before")
        hit("record.processes.remove.before")
        hit("journal.append.after")
    assert hits == ["journal.append.before", "record.processes.remove.before", "journal.append.after"]
