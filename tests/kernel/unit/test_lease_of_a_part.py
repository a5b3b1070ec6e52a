"""A target's part of a process: it begins with the lease, and ends the process when another has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calque.app import APP
from calque.control.process_locks import Roles
from calque.engine.lease.keeper import Lease, LeaseHeldByOther
from calque.errors import Broken, CalqueError, Unavailable
from calque.model.lease import Generation
from calque.model.state_places import TargetPlaces
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.target import TargetReplication
from support.faults.leases import Elapsed, leases_of, writer
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryMetastore

OTHER = writer("other")
SOON = 60.0


class Known:
    """The target is who it was."""

    def begin(self) -> None:
        pass

    def settle(self, lease: Lease) -> str:
        return f"ledger of {lease.target}"


class Process:
    """One with a part for `dr`, whose target is in memory; nothing answers at the source."""

    def __init__(self, folder: Path, held: Roles | None = None) -> None:
        file = folder / "calque.toml"
        file.write_text(
            '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
            '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
        )
        wiring = APP.wiring(APP.load(str(file)))
        self.catalog = MemoryCatalog(MemoryMetastore(HIVE_3, "file:/warehouse"))
        self.leases, self.clock = leases_of(self.catalog), Elapsed()
        self.run = ReplicatorProcess(wiring, ["dr"], held_roles=held)
        self.part = TargetReplication(self.run, self.run.streams["hq"], "dr")
        self.part.holder.lease = Lease(self.leases, "dr", 30.0, self.clock)
        self.part.holder.identity = Known()
        self.run.parts.append(self.part)

    def error(self) -> CalqueError:
        """What ends the process."""
        with pytest.raises(CalqueError) as raised:
            self.run.wait(None, SOON)
        return raised.value

    def end(self) -> None:
        self.run.stopping.set()
        self.part.supervisor.stop()
        if self.part.supervisor.thread.is_alive():
            self.part.supervisor.thread.join()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path)
    yield found
    found.end()


def soon(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_part_waits_for_a_writer_that_may_be_dead_and_says_so(process: Process) -> None:
    process.leases.take(Generation(1, OTHER, 0.5))
    waiting = threading.Thread(target=process.part.holder.take)
    waiting.start()
    soon(lambda: process.part.supervisor.last_error is not None)
    assert process.part.supervisor.state == "starting"
    assert "is of process 7 on host-of-other" in str(process.part.supervisor.last_error)
    with pytest.raises(Unavailable):
        process.part.holder.lease.permit()
    process.clock.now += 0.5
    waiting.join(SOON)
    process.part.holder.lease.permit()
    assert process.part.supervisor.last_error is None


def test_a_writer_that_lives_ends_the_process_with_75(process: Process) -> None:
    process.leases.take(Generation(1, OTHER, 0.5))
    process.part.supervisor.thread.start()
    soon(lambda: process.part.supervisor.last_error is not None)
    process.leases.renew(Generation(1, OTHER, 0.5, 1))
    error = process.error()
    assert isinstance(error, LeaseHeldByOther)
    assert error.exit_code == 75
    assert process.leases.newest() == Generation(1, OTHER, 0.5, 1)


def test_a_lease_that_is_lost_ends_the_process_with_70(process: Process) -> None:
    process.part.supervisor.thread.start()
    soon(lambda: process.part.holder.lease.keeper is not None)
    process.leases.take(Generation(2, OTHER, 30.0))
    process.clock.now += 30
    process.part.holder.lease.woken.set()
    error = process.error()
    assert isinstance(error, Broken)
    assert error.exit_code == 70
    process.end()
    assert process.leases.newest() == Generation(2, OTHER, 30.0)


def test_a_part_that_ends_gives_its_lease_back(process: Process) -> None:
    process.part.supervisor.thread.start()
    soon(lambda: process.part.holder.lease.keeper is not None)
    process.end()
    newest = process.leases.newest()
    assert newest is not None
    assert newest.released


def test_a_start_that_is_tried_again_is_of_the_same_writer(process: Process) -> None:
    """It made a generation, and was not told."""
    lost = iter([True])

    def once(method: str) -> None:
        if method == "create_table" and next(lost, False):
            raise Unavailable("The answer is lost")

    process.part.holder.lease.leases = leases_of(MemoryCatalog(process.catalog.metastore, after=once))
    with pytest.raises(Unavailable):
        process.part.holder.take()
    taking = threading.Thread(target=process.part.holder.take, daemon=True)
    taking.start()
    taking.join(SOON)
    process.part.holder.lease.permit()


def test_a_process_over_the_same_state_folder_knows_that_the_one_before_is_dead(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Roles(state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        proof = held.proof(TargetPlaces("dr").role)
        assert held.proof("capture") == ""
    with Roles(state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        assert held.proof(TargetPlaces("dr").role) == proof
        process = Process(tmp_path, held)
        process.leases.take(Generation(1, writer("dead", proof), 600.0))
        process.part.holder.take()
        process.part.holder.lease.permit()
        process.part.holder.lease.release()
        process.end()
    with Roles(tmp_path / "other") as held:
        held.take({TargetPlaces("dr").role: 30.0})
        assert held.proof(TargetPlaces("dr").role) != proof
