"""The lease on a target: who may take it, what its holder may rely on, and what others are told."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.core.records.lease import (
    FirstObservation,
    LeaseLost,
    LiveHolder,
    ObservedLease,
    Step,
    TakeGeneration,
    next_step,
    usable,
)
from calque.engine.lease.fence import AT_A_TIME, CommandFence, FencedStorage
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease, LeaseHeldByOther
from calque.errors import Broken, Refused, Unavailable
from calque.model.lease import Generation, Writer
from calque.model.names import OURS, TableName
from calque.model.policy import TargetCapabilities
from support.faults.leases import SECONDS, Elapsed, lease, leases_of, writer
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage

ME, OTHER = writer("me"), writer("other")


def generation(number: int, by: Writer, renewals: int = 0, *, released: bool = False) -> Generation:
    return Generation(number, by, SECONDS, renewals, released)


@pytest.mark.parametrize(
    ("held", "newest", "first", "began", "step"),
    [
        (0, None, None, 5, TakeGeneration(1)),
        (0, generation(3, OTHER, released=True), None, 5, TakeGeneration(4)),
        (0, generation(3, OTHER), None, 5, ObservedLease(generation(3, OTHER), 0)),
        (
            0,
            generation(3, OTHER),
            FirstObservation(generation(3, OTHER), 5),
            34.9,
            ObservedLease(generation(3, OTHER), 29.9),
        ),
        (0, generation(3, OTHER), FirstObservation(generation(3, OTHER), 5), 35, TakeGeneration(4)),
        (
            0,
            generation(3, OTHER, 1),
            FirstObservation(generation(3, OTHER), 5),
            35,
            LiveHolder(generation(3, OTHER, 1)),
        ),
        (0, generation(4, OTHER), FirstObservation(generation(3, OTHER), 5), 35, LiveHolder(generation(4, OTHER))),
        (0, generation(3, OTHER, 1, released=True), FirstObservation(generation(3, OTHER), 5), 6, TakeGeneration(4)),
        (0, generation(3, ME), None, 5, TakeGeneration(4)),
        (2, generation(3, ME), None, 5, TakeGeneration(4)),
        (3, generation(3, ME), FirstObservation(generation(2, OTHER), 5), 6, TakeGeneration(4)),
        (3, generation(4, OTHER), None, 5, LeaseLost(generation(4, OTHER))),
        (3, generation(4, OTHER, released=True), None, 5, LeaseLost(generation(4, OTHER, released=True))),
        (3, None, None, 5, LeaseLost(None)),
    ],
)
def test_what_a_writer_does_that_holds_nothing(
    held: int, newest: Generation | None, first: FirstObservation | None, began: float, step: Step
) -> None:
    assert next_step(ME, held, newest, first, began) == step


@pytest.mark.parametrize(
    ("mine", "theirs", "step"),
    [
        ("boot:1:2", "boot:1:2", TakeGeneration(4)),
        ("boot:1:2", "boot:1:3", ObservedLease(generation(3, writer("other", "boot:1:3")), 0)),
        ("", "", ObservedLease(generation(3, OTHER), 0)),
    ],
)
def test_whoever_holds_the_lock_of_a_dead_process_need_not_wait(mine: str, theirs: str, step: Step) -> None:
    assert next_step(writer("me", mine), 0, generation(3, writer("other", theirs)), None, 5) == step


class World:
    """A target's metastore, and one clock for all."""

    def __init__(self) -> None:
        self.store = MemoryMetastore(HIVE_3, "file:/warehouse")
        self.catalog, self.clock = MemoryCatalog(self.store), Elapsed()

    def lease(self) -> Lease:
        return lease(self.catalog, self.clock)

    def taken(self, by: Writer) -> Lease:
        found = self.lease()
        assert found.attempt(by) is None
        return found


@pytest.fixture
def world() -> World:
    return World()


def permitted(lease: Lease) -> bool:
    try:
        lease.permit()
    except Unavailable:
        return False
    return True


def test_no_call_begins_before_the_lease_is_taken_nor_after_two_thirds_of_it(world: World) -> None:
    lease = world.lease()
    assert not permitted(lease)
    assert lease.attempt(ME) is None
    assert permitted(lease)
    world.clock.now += usable(SECONDS) - 0.1
    assert permitted(lease)
    world.clock.now += 0.1
    assert not permitted(lease)


def test_a_renewal_counts_from_before_it_was_sent(world: World) -> None:
    lease = world.taken(ME)

    def slowly(method: str) -> None:
        if method == "alter_table":
            world.clock.now += 5

    lease.leases = leases_of(MemoryCatalog(world.store, before=slowly))
    world.clock.now += 10
    lease.renew()
    world.clock.now += usable(SECONDS) - 5.1
    assert permitted(lease)
    world.clock.now += 0.2
    assert not permitted(lease)


def test_a_renewal_whose_answer_comes_too_late_does_not_count(world: World) -> None:
    """Others may have looked before it was written."""
    lease = world.taken(ME)

    def late(method: str) -> None:
        if method == "alter_table":
            world.clock.now += 2

    lease.leases = leases_of(MemoryCatalog(world.store, after=late))
    world.clock.now += usable(SECONDS) - 1
    lease.renew()
    assert not permitted(lease)


def test_a_taking_counts_from_before_it_was_sent(world: World) -> None:
    lease = world.lease()

    def slowly(method: str) -> None:
        if method == "create_table":
            world.clock.now += usable(SECONDS)

    lease.leases = leases_of(MemoryCatalog(world.store, after=slowly))
    assert lease.attempt(ME) is None
    assert not permitted(lease)


def test_what_others_wait_for_begins_when_they_have_seen_it_and_ends_before_they_look_again(world: World) -> None:
    world.taken(ME)
    second = world.lease()

    def slowly(method: str) -> None:
        if method == "tables":
            world.clock.now += SECONDS

    second.leases = leases_of(MemoryCatalog(world.store, before=slowly))
    assert second.attempt(OTHER) is not None
    second.leases = leases_of(MemoryCatalog(world.store, after=slowly))
    assert second.attempt(OTHER) is not None
    assert second.attempt(OTHER) is None


def test_a_writer_that_comes_second_is_told_who_lives_there(world: World) -> None:
    first, second = world.taken(ME), world.lease()
    assert second.attempt(OTHER) == ObservedLease(generation(1, ME), 0)
    world.clock.now += 10
    first.renew()
    with pytest.raises(LeaseHeldByOther) as refusal:
        second.attempt(OTHER)
    assert refusal.value.exit_code == 75
    assert "process 7 on host-of-me" in str(refusal.value)
    assert not permitted(second)


def test_a_writer_without_a_sign_of_life_is_replaced_after_the_lease_that_it_has_itself(world: World) -> None:
    lease(world.catalog, world.clock, seconds=100).attempt(ME)
    second = world.lease()
    assert second.attempt(OTHER) is not None
    world.clock.now += 99.9
    assert second.attempt(OTHER) is not None
    world.clock.now += 0.1
    assert second.attempt(OTHER) is None
    assert permitted(second)


def test_a_writer_that_was_replaced_is_told_by_whom_and_stays_out(world: World) -> None:
    first, second = world.taken(ME), world.lease()
    second.attempt(OTHER)
    world.clock.now += SECONDS
    assert second.attempt(OTHER) is None
    assert not permitted(first)
    for _ in range(2):
        with pytest.raises(Broken, match=r"The lease on dr is lost\. It was taken by process 7 on host-of-other"):
            first.renew()
    with pytest.raises(Broken):
        first.permit()
    first.release()
    assert permitted(second)
    second.renew()


def test_a_writer_whose_lease_ran_out_takes_the_next_generation_if_nobody_else_has(world: World) -> None:
    lease = world.taken(ME)
    world.clock.now += 10 * SECONDS
    assert not permitted(lease)
    lease.renew()
    assert permitted(lease)
    assert leases_of(world.catalog).newest() == generation(2, ME)


def test_a_lease_that_is_given_back_is_free_at_once(world: World) -> None:
    first = world.taken(ME)
    first.release()
    assert not permitted(first)
    assert world.lease().attempt(OTHER) is None


def test_a_lease_that_has_run_out_is_not_given_back(world: World) -> None:
    """It may be another's by now."""
    first = world.taken(ME)
    world.clock.now += SECONDS
    first.release()
    assert leases_of(world.catalog).newest() == generation(1, ME)


def test_old_generations_do_not_pile_up(world: World) -> None:
    for number in range(1, 5):
        world.taken(writer(str(number))).release()
    assert len(world.catalog.tables(OURS)) == 1
    newest = leases_of(world.catalog).newest()
    assert newest is not None
    assert (newest.number, newest.released) == (4, True)


def test_a_latecomer_whose_number_was_passed_gets_nothing(world: World) -> None:
    """It decided on generation 2, and made it after 3 had been taken and 2 been dropped."""
    world.taken(ME).release()
    late = world.lease()
    for name in ("b", "c"):
        world.taken(writer(name)).release()
    assert not late.take(2, OTHER)
    assert not permitted(late)
    assert len(world.catalog.tables(OURS)) == 1


def test_a_taking_whose_answer_was_lost_is_done_again_under_the_next_number(world: World) -> None:
    lease = world.lease()

    def lost(method: str) -> None:
        if method == "create_table":
            raise Unavailable("The answer is lost")

    lease.leases = leases_of(MemoryCatalog(world.store, after=lost))
    with pytest.raises(Unavailable):
        lease.attempt(ME)
    assert not permitted(lease)
    lease.leases = leases_of(world.catalog)
    assert lease.attempt(ME) is None
    assert leases_of(world.catalog).newest() == generation(2, ME)


def test_a_writer_that_can_not_drop_old_generations_has_the_lease_all_the_same(world: World) -> None:
    world.taken(ME).release()

    def lost(method: str) -> None:
        if method == "drop_table":
            raise Unavailable("It does not answer")

    lease = world.lease()
    lease.leases = leases_of(MemoryCatalog(world.store, before=lost))
    assert lease.attempt(OTHER) is None
    assert permitted(lease)
    lease.release()
    world.taken(ME)
    assert len(world.catalog.tables(OURS)) == 1


def test_a_lease_whose_record_was_removed_is_lost(world: World) -> None:
    lease = world.taken(ME)
    leases_of(world.catalog).forget(2)
    with pytest.raises(Broken, match="Its record was removed"):
        lease.renew()


@pytest.mark.parametrize(
    ("source", "target", "warehouse"), [("hq2", "dr", "file:/dr"), ("hq", "dr2", "file:/dr"), ("hq", "dr", "file:/dr2")]
)
def test_other_replicas_in_one_metastore_have_leases_of_their_own(
    world: World, source: str, target: str, warehouse: str
) -> None:
    world.taken(ME)
    leases = CatalogLeases(world.catalog, source, target, warehouse)
    assert Lease(leases, target, SECONDS, world.clock).attempt(OTHER) is None


def test_a_warehouse_is_one_however_it_is_spelled(world: World) -> None:
    world.taken(ME)
    assert CatalogLeases(world.catalog, "hq", "dr", "file:///dr/").newest() == generation(1, ME)


def test_a_keeper_tells_that_the_lease_was_lost(world: World) -> None:
    found = lease(world.catalog, world.clock, seconds=0.03)
    found.attempt(ME)
    leases_of(world.catalog).take(generation(2, OTHER))
    world.clock.now += 1
    told: list[Exception] = []
    found.keep(told.append)
    assert found.keeper is not None
    found.keeper.join(30)
    assert [type(error) for error in told] == [Broken]
    found.release()


def test_a_call_waits_a_moment_for_a_renewal_that_is_late(world: World) -> None:
    told: list[Exception] = []
    found = lease(world.catalog, world.clock, seconds=300)
    found.attempt(ME)
    world.clock.now += 300
    found.keep(told.append)
    found.permit()
    assert leases_of(world.catalog).newest() == Generation(2, ME, 300.0)
    assert told == []
    found.release()


def test_a_command_beside_the_writer_needs_its_state_folder(world: World) -> None:
    leases = leases_of(world.catalog)
    ours, theirs = (
        CommandFence(leases, "dr", "state-of-me", SECONDS, world.clock),
        CommandFence(leases, "dr", "x", 1, world.clock),
    )
    ours.permit()
    world.taken(ME)
    ours.permit()
    with pytest.raises(Refused, match=r"another state folder\. It was written by process 7 on host-of-me"):
        theirs.permit()
    leases.take(generation(2, OTHER))
    ours.permit()
    world.clock.now += SECONDS / 3
    with pytest.raises(Refused):
        ours.permit()


def test_while_a_target_does_not_answer_its_log_says_so_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    found = Lease(leases_of(world.catalog), "dr", 0.3)
    assert found.attempt(ME) is None
    tries = 0
    is_away = threading.Event()

    def away(_: str) -> None:
        nonlocal tries
        if is_away.is_set():
            tries += 1
            raise Unavailable("The metastore does not answer", "it is away", "Wait")

    found.leases = leases_of(MemoryCatalog(world.store, before=away))
    is_away.set()
    found.keep(lambda _: None)
    for times in (1, 2):
        before, deadline = tries, time.monotonic() + 30
        while tries < before + 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len([text for text in messages if "is not renewed" in text]) == times
        assert len([text for text in messages if "has run out" in text]) == times
        is_away.clear()
        while not permitted(found) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert permitted(found)
        is_away.set()
    is_away.clear()
    found.release()


class Fence:
    """Permits so many calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def permit(self) -> None:
        if not self.left:
            raise Unavailable("The lease has run out")
        self.left -= 1


def test_files_are_published_and_removed_a_few_at_a_time_as_long_as_that_is_permitted() -> None:
    storage = MemoryStorage()
    names = [f"f{number:03}" for number in range(AT_A_TIME + 1)]
    for name in names:
        storage.write(f"file:/t/_stage/{name}", b"x")
    renames = [(f"file:/t/_stage/{name}", f"file:/t/{name}") for name in names]
    with pytest.raises(Unavailable):
        FencedStorage(storage, Fence(1)).publish(renames)
    assert [name for name in storage.children("file:/t") if name != "_stage"] == names[:-1]
    with pytest.raises(Unavailable):
        FencedStorage(storage, Fence(1)).remove([target for _, target in renames])
    assert len(storage.children("file:/t")) == len(names) - 1
    with pytest.raises(Unavailable):
        FencedStorage(storage, Fence(0)).write("file:/t/g", b"x")
    assert FencedStorage(storage, Fence(0)).read("file:/t/g") is None


def test_a_call_that_is_not_permitted_sends_nothing_to_the_metastore() -> None:
    """It is asked when a connection is there, so that waiting for one takes nothing from the lease."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Client(f"thrift://127.0.0.1:{server.getsockname()[1]}", permit=Fence(0).permit)
        with pytest.raises(Unavailable, match="has run out"):
            HiveCatalog(client, TargetCapabilities()).drop_table(TableName("sales", "orders"))
        client.close()
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(1) == b""
