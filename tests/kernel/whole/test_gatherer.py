"""`engine.capture.capture.EvidenceGatherer`: what becomes evidence when not everything can be listed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.engine.source.exact_read import read_exact
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.ports.forwarding import ForwardingEvidenceStore
from support.faults.defects import Defect
from support.worlds.worlds import World

GOOD, BAD = TableName("d1", "good"), TableName("d1", "bad")


def with_tables(*, pins: bool = False) -> World:
    """A world with two live tables."""
    world = World(1, pins=pins)
    world.open()
    world.source.create_database(Database("d1"))
    for name in (GOOD, BAD):
        world.source.create_table(
            Table(name.table, name.database, storage=Storage((Column("x", "int"),)), type="MANAGED_TABLE")
        )
    world.settle()
    return world


def place_of(world: World, name: TableName) -> str:
    return location_of(world.source.the_table(name).table) or ""


def test_a_file_in_place_of_a_directory_costs_no_other_table_its_evidence() -> None:
    world = with_tables()
    world.storage.remove([place_of(world, BAD)])
    world.storage.write(place_of(world, BAD), b"no directory")
    world.source.insert(BAD, [place_of(world, BAD)])
    world.storage.write(f"{place_of(world, GOOD)}/f", b"1")
    world.source.insert(GOOD, [f"{place_of(world, GOOD)}/f"])
    world.capture_all()
    world.work()
    assert world.target_states()[GOOD] == world.source_states()[GOOD]
    assert world.replica.tables.in_state(State.WAITING) == [BAD]


def test_what_was_proven_is_recorded_as_soon_as_the_store_answers_again() -> None:
    world = with_tables()
    store, defect = world.source_side.evidence, Defect("append", Unavailable("The store does not answer"), on=True)
    world.gatherer.source = replace(world.source_side, evidence=ForwardingEvidenceStore(store, defect))
    world.storage.write(f"{place_of(world, GOOD)}/f", b"1")
    world.source.insert(GOOD, [f"{place_of(world, GOOD)}/f"])
    for _ in range(2):
        with pytest.raises(Unavailable):
            world.capture_all()
    defect.on = False
    world.storage.write(f"{place_of(world, GOOD)}/g", b"2")
    world.capture_all()
    assert [listing.files[0].path for listing in store.evidence([world.source.current()]).values()] == ["f"]


def test_what_can_not_be_listed_is_quarantined_with_the_reason_in_the_end() -> None:
    world = with_tables()
    world.storage.remove([place_of(world, BAD)])
    world.storage.write(place_of(world, BAD), b"no directory")
    world.source.insert(BAD, [place_of(world, BAD)])
    world.capture_all()
    world.work()
    world.clock.now += 40_000_000_000
    world.work()
    world.work()
    row = world.replica.tables.rows[BAD]
    assert (row.state, place_of(world, BAD) in row.reason) == (TableState.QUARANTINED, True)


def test_a_partition_that_a_rename_moved_before_it_was_committed_is_not_taken_for_empty() -> None:
    world, days, fresh = with_tables(), TableName("d1", "days"), TableName("d1", "fresh")
    table = replace(world.source.the_table(GOOD).table, name="days", partition_keys=(Column("day", "string"),))
    world.source.create_table(replace(table, storage=Storage((Column("x", "int"),))))
    world.settle()
    place = place_of(world, days)
    world.storage.write(f"{place}/day=1/f", b"1")
    world.source.add_partitions(days, [Partition(("1",), *days, storage=Storage((Column("x", "int"),)))])
    world.storage.move(place, place.replace("days", "fresh"))
    world.capture_all()
    world.work()
    world.source.alter_table(days, replace(world.source.the_table(days).table, name="fresh"))
    world.settle()
    assert world.target_states()[fresh] == world.source_states()[fresh]
    assert world.storage.contents(f"{place_of(world, fresh)}/day=1") == [("f", b"1")]


def test_an_exact_read_waits_for_the_rename_that_moved_the_directory() -> None:
    world = with_tables()
    was, now = place_of(world, GOOD), place_of(world, GOOD).replace("good", "fresh")
    world.storage.write(f"{was}/f", b"1")
    world.storage.move(was, now)
    renamed = replace(world.source.the_table(GOOD).table, name="fresh")
    rounds = iter(range(9))

    def commit(method: str) -> None:
        if method == "current" and next(rounds, 0) == 3:
            world.source.alter_table(GOOD, renamed)

    world.between = commit
    assert read_exact(world.source_side, GOOD).table is None


def test_a_directory_that_stays_away_is_empty() -> None:
    world = with_tables()
    world.storage.remove([place_of(world, GOOD)])
    world.source.insert(GOOD, [f"{place_of(world, GOOD)}/f"])
    world.settle()
    assert world.target_states()[GOOD] == world.source_states()[GOOD]
    assert read_exact(world.source_side, GOOD).listings[""].missing


def test_a_directory_whose_files_an_overwrite_removed_is_not_taken_for_empty_before_its_event() -> None:
    world = with_tables()
    place = place_of(world, GOOD)
    world.storage.write(f"{place}/f", b"1")
    world.source.insert(GOOD, [f"{place}/f"])
    world.settle()
    before = world.target_states()[GOOD]
    world.source.alter_table(GOOD, replace(world.source.the_table(GOOD).table, parameters={"v": "2"}))
    world.storage.remove([f"{place}/f"])
    world.capture_all()
    world.work()
    assert world.target_states()[GOOD] == before
    world.storage.write(f"{place}/g", b"2")
    world.source.insert(GOOD, [f"{place}/g"], replace=True)
    world.settle()
    assert world.target_states()[GOOD] == world.source_states()[GOOD]


def test_an_exact_read_waits_for_the_overwrite_that_removed_the_files() -> None:
    world = with_tables()
    place = place_of(world, GOOD)
    world.storage.write(f"{place}/f", b"1")
    world.source.insert(GOOD, [f"{place}/f"])
    world.storage.remove([f"{place}/f"])
    rounds = iter(range(9))

    def finish(method: str) -> None:
        if method == "current" and next(rounds, 0) == 3:
            world.storage.write(f"{place}/g", b"2")
            world.source.insert(GOOD, [f"{place}/g"], replace=True)

    world.between = finish
    assert [file.path for file in read_exact(world.source_side, GOOD).listings[""].files] == ["g"]


def test_a_directory_that_stays_empty_is_empty() -> None:
    world = with_tables()
    place = place_of(world, GOOD)
    world.storage.write(f"{place}/f", b"1")
    world.source.insert(GOOD, [f"{place}/f"])
    world.settle()
    world.storage.remove([f"{place}/f"])
    world.source.alter_table(GOOD, replace(world.source.the_table(GOOD).table, parameters={"v": "2"}))
    world.settle()
    assert world.target_states()[GOOD] == world.source_states()[GOOD]
    assert read_exact(world.source_side, GOOD).listings[""].files == ()


def test_how_long_a_directory_was_missing_is_counted_anew_for_another_event() -> None:
    world = with_tables()
    place = place_of(world, GOOD)
    world.storage.remove([place])
    world.source.insert(GOOD, [f"{place}/f"])
    world.settle()
    world.storage.write(f"{place}/g", b"1")
    world.storage.move(place, f"{place}_on_its_way")
    world.source.insert(GOOD, [f"{place}/g"])
    before = world.evidence.evidence([world.source.current()])
    world.capture_all()
    world.capture_all()
    assert (dict(before), dict(world.evidence.evidence([world.source.current()]))) == ({}, {})


def test_files_are_pinned_before_their_listing_proves_anything() -> None:
    world = with_tables(pins=True)
    pins, place = world.source_side.pins, place_of(world, GOOD)
    assert pins is not None
    world.storage.write(f"{place}/f", b"1")
    world.storage.write(f"{place}/young", b"2")
    world.storage.date({f"{place}/young": world.clock.now + 3_600_000_000_000})
    world.source.insert(GOOD, [f"{place}/f"])
    event_id = world.source.current()
    world.capture_all()
    assert world.evidence.evidence([event_id]) == {}
    world.storage.remove([place])
    world.capture_all()
    assert world.storage.contents(pins.at(event_id, place)) == [("f", b"1"), ("young", b"2")]


def test_files_that_stay_as_they_are_are_pinned_once() -> None:
    world = with_tables(pins=True)
    place = place_of(world, GOOD)
    world.storage.write(f"{place}/young", b"2")
    world.storage.date({f"{place}/young": world.clock.now + 3_600_000_000_000})
    copied: list[str] = []
    world.storage.before = lambda call, about: copied.append(about) if call == "copy" else None
    world.source.insert(GOOD, [f"{place}/young"])
    for _ in range(3):
        world.capture_all()
    world.storage.write(f"{place}/other", b"3")
    world.capture_all()
    assert copied == [f"{place}/young", f"{place}/other", f"{place}/young"]
