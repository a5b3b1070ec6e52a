"""Events of calque's own objects, leases that are renewed at a source for instance, cost no epochs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.engine.lease.generations import CatalogLeases
from calque.engine.replica.epochs import IDLE_SECONDS
from calque.model.hive import Database
from calque.model.lease import Generation, Writer
from support.memory.metastore import MemoryCatalog
from support.worlds.rings import Link, Metastores


@pytest.fixture
def link() -> Link:
    """From a metastore that somebody else replicates to, and holds a lease on."""
    world = Metastores(0, "a", "b")
    found = world.link("a", "b")
    leases(found).take(lease(0))
    world.settle()
    return found


def leases(link: Link) -> CatalogLeases:
    return CatalogLeases(MemoryCatalog(link.store), "z", "a", "file:/at_a/from_z")


def lease(renewals: int) -> Generation:
    return Generation(1, Writer("w", "host", 1, "state", ""), 30.0, renewals)


def renew(link: Link, times: int) -> None:
    for number in range(times):
        leases(link).renew(lease(number + 1))
        link.turn()


def epochs(link: Link) -> list[tuple[int, int]]:
    return [(epoch.from_event_id, epoch.event_id) for epoch in link.ledger.epochs()]


def test_the_position_passes_leases_that_are_renewed_and_the_ledger_does_not_grow(link: Link) -> None:
    before = epochs(link)
    renew(link, 5)
    assert epochs(link) == before
    assert link.replica.epochs.position() == link.store.current()


def test_the_next_epoch_goes_on_from_the_last_one_and_counts_what_was_passed(link: Link) -> None:
    before = epochs(link)[-1][1]
    renew(link, 5)
    link.store.create_database(Database("d"))
    link.turn()
    assert epochs(link)[-1] == (before, link.store.current())
    assert link.ledger.epochs()[-1].events == 6


def test_now_and_then_an_epoch_says_that_it_is_still_there(link: Link) -> None:
    before = epochs(link)
    renew(link, 2)
    link.stores.clock.now += int(IDLE_SECONDS * 1e9)
    renew(link, 1)
    assert epochs(link) == [*before, (before[-1][1], link.store.current())]
    renew(link, 2)
    assert len(epochs(link)) == len(before) + 1


def test_who_stops_says_where_it_was(link: Link) -> None:
    before = epochs(link)[-1][1]
    renew(link, 3)
    link.replica.rest()
    assert epochs(link)[-1] == (before, link.store.current())
    assert link.ledger.epochs()[-1].events == 3
    link.replica.rest()
    assert epochs(link)[-1] == (before, link.store.current())


def test_whoever_dies_before_that_passes_them_again(link: Link) -> None:
    before = epochs(link)
    renew(link, 3)
    link.replica.forget()
    link.window()
    assert link.replica.epochs.position() == link.store.current()
    assert epochs(link) == before


def test_other_events_make_epochs_at_once_whether_they_concern_the_target_or_not(link: Link) -> None:
    renew(link, 1)
    link.stores.stores["a"].alter_database(
        "default", replace(link.store.the_database("default"), parameters={"k": "v"})
    )
    link.turn()
    assert epochs(link)[-1][1] == link.store.current()
