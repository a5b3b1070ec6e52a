"""The port `Leases` over every catalog: generations that one writer only can take."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from calque.core.records.lease import ObservedLease
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease, LeaseHeldByOther
from calque.errors import Broken, Unavailable
from calque.model.lease import Generation, Writer
from calque.model.names import OURS, TableName
from calque.ports import Catalog, Conflict
from support.faults.leases import Elapsed, writer

FIRST = Generation(1, writer("a", "boot:1:2"), 30.0)


@pytest.fixture
def leases(world) -> CatalogLeases:  # type: ignore[no-untyped-def]
    """Of a target that no other test has."""
    return CatalogLeases(world.catalog, "hq", f"dr-{world.root}", world.place("warehouse"))


def names(catalog: Catalog, leases: CatalogLeases) -> list[str]:
    return [name for name in catalog.tables(OURS) if name.startswith(leases._prefix)]


def test_before_the_first_writer_there_is_nothing(leases: CatalogLeases) -> None:
    assert leases.newest() is None


def test_a_generation_is_read_as_it_was_made(leases: CatalogLeases) -> None:
    leases.take(FIRST)
    assert leases.newest() == FIRST


def test_a_generation_is_made_once(leases: CatalogLeases) -> None:
    leases.take(FIRST)
    with pytest.raises(Conflict):
        leases.take(replace(FIRST, writer=writer("b")))
    assert leases.newest() == FIRST


def test_of_many_that_take_one_generation_one_gets_it(leases: CatalogLeases) -> None:
    leases.take(FIRST)

    def take(number: int) -> Writer | None:
        wanted = Generation(2, writer(str(number)), 30.0)
        try:
            leases.take(wanted)
        except Conflict:
            return None
        return wanted.writer

    with ThreadPoolExecutor(8) as pool:
        winners = [found for found in pool.map(take, range(8)) if found is not None]
    newest = leases.newest()
    assert newest is not None
    assert [newest.writer] == winners


def test_a_renewal_replaces_what_was_there(leases: CatalogLeases) -> None:
    leases.take(FIRST)
    leases.renew(replace(FIRST, renewals=1))
    leases.renew(replace(FIRST, renewals=2, released=True))
    assert leases.newest() == replace(FIRST, renewals=2, released=True)


def test_what_is_gone_is_not_renewed(leases: CatalogLeases) -> None:
    leases.take(FIRST)
    leases.take(replace(FIRST, number=2))
    leases.forget(2)
    with pytest.raises(Conflict):
        leases.renew(replace(FIRST, renewals=1))
    assert leases.newest() == replace(FIRST, number=2)


def test_the_newest_is_the_greatest_number(leases: CatalogLeases) -> None:
    for number in (9, 10, 2):
        leases.take(replace(FIRST, number=number))
    newest = leases.newest()
    assert newest is not None
    assert newest.number == 10


def test_it_leaves_no_directory_and_is_never_replicated(world, leases: CatalogLeases) -> None:  # type: ignore[no-untyped-def]
    leases.take(FIRST)
    assert not any("lease" in path.name for path in world.root.rglob("*"))
    for name in names(world.catalog, leases):
        table = world.catalog.table(TableName(OURS, name))
        assert table is not None
        assert not (table.storage and table.storage.location)


def test_two_writers_hand_a_target_over(world, leases: CatalogLeases) -> None:  # type: ignore[no-untyped-def]
    """Refused while the first lives, taken when it does not, and the first is told."""
    clock = Elapsed()
    first, second, third = (Lease(leases, "dr", 30.0, clock) for _ in range(3))
    assert first.attempt(writer("a")) is None
    assert isinstance(second.attempt(writer("b")), ObservedLease)
    first.renew()
    with pytest.raises(LeaseHeldByOther):
        second.attempt(writer("b"))
    assert isinstance(third.attempt(writer("c")), ObservedLease)
    clock.now += 30
    assert third.attempt(writer("c")) is None
    third.permit()
    with pytest.raises(Unavailable):
        first.permit()
    with pytest.raises(Broken, match="taken by process 7 on host-of-c"):
        first.renew()
    third.release()
    assert Lease(leases, "dr", 30.0, clock).attempt(writer("d")) is None
    assert len(names(world.catalog, leases)) == 1
