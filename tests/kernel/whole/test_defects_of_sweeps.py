"""One directory's trouble is its own: a sweep names it, and goes on with all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.defects import DEFECT
from calque.core.formats.layout import STAGE
from calque.engine.sweep.troubles import own_trouble
from calque.errors import Refused, WrittenElsewhere
from calque.model.hive import location_of
from calque.model.names import OURS, TableName
from calque.model.records import LeftDirectory, all_of
from kernel.property.test_sweep import Sweeper
from kernel.whole.test_defects import target_catalog, target_storage
from support.faults.defects import Defect
from support.worlds.gapped import POLICY, world_of
from support.worlds.worlds import World

VICTIM, OTHER = "t0", "t1"
ERRORS = pytest.mark.parametrize(
    "error",
    [KeyError("x"), RecursionError("deep"), Refused("Not permitted to list it")],
    ids=lambda error: type(error).__name__,
)


def dropped(*names: str) -> tuple[World, dict[str, str]]:
    """The target's directories of these tables are garbage, of which epochs tell."""
    world = world_of(3, 1, replace(POLICY, grace=0.0))
    places = {}
    for name in names:
        places[name] = location_of(world.target_store.the_table(TableName("d1", name)).table) or ""
        world.writer.source.drop_table(TableName("d1", name))
    world.settle()
    return world, places


def exists(world: World, location: str) -> bool:
    return any(path.startswith(f"{location}/") for path in world.storage.paths())


@ERRORS
@pytest.mark.parametrize("method", ["children", "create", "entries", "set_aside", "remove"])
def test_a_directory_that_can_not_be_removed_leaves_the_others_and_keeps_its_record(
    method: str, error: Exception
) -> None:
    world, places = dropped(VICTIM, OTHER)
    defect = Defect(method, error, on=True, about=lambda one: VICTIM in repr(one) and OTHER not in repr(one))
    target_storage(world, defect)
    sweeper = Sweeper(world)
    first = sweeper.sweep(hours=2)
    assert places[OTHER] in {each.place for each in first.removed}
    assert not exists(world, places[OTHER])
    if defect.met:
        assert {each.place.removesuffix("/p=0") for each in first.troubles} == {places[VICTIM]}
        assert isinstance(error, Refused) or all(DEFECT in each.reason for each in first.troubles)
        recorded = {each.place for each in all_of(world.ledger.records(), LeftDirectory)}
        assert recorded >= {each.place for each in first.troubles}
        assert first.epochs > 0
    defect.on = False
    sweeper.sweep(hours=3)
    sweeper.sweep(hours=4)
    assert not exists(world, places[VICTIM])


@ERRORS
@pytest.mark.parametrize("method", ["entries", "children", "read"])
def test_a_directory_that_can_not_be_looked_at_leaves_the_others(method: str, error: Exception) -> None:
    world = world_of(2, 1, replace(POLICY, grace=0.0))
    for name in (VICTIM, OTHER):
        world.storage.write(f"file:/target/d1.db/{name}/p=0/{STAGE}/1/part", b"left")
        world.storage.write(f"file:/target/d1.db/{name}x/part", b"left")
    defect = Defect(method, error, on=True, about=lambda one: VICTIM in repr(one) and OTHER not in repr(one))
    target_storage(world, defect)
    swept = Sweeper(world).sweep(hours=2)
    assert f"file:/target/d1.db/{OTHER}/p=0/{STAGE}/1" in {each.place for each in swept.removed}
    assert f"file:/target/d1.db/{OTHER}x" in {each.place for each in swept.unknown}
    assert bool(defect.met) is bool(swept.troubles)
    assert all(VICTIM in each.place for each in swept.troubles)


@pytest.mark.parametrize("method", ["table", "drop_table"])
def test_a_hidden_table_with_a_defect_leaves_the_others(method: str) -> None:
    world = world_of(2, 1, replace(POLICY, grace=0.0))
    for name in (VICTIM, OTHER):
        own = world.target_store.the_table(TableName("d1", name)).table
        world.target_store.create_table(replace(own, database=OURS, name=f"{OURS}_d1_{name}_1"))
    defect = Defect(method, KeyError("x"), on=True, about=lambda one: f"{OURS}_d1_{VICTIM}_1" in repr(one))
    target_catalog(world, defect)
    swept = Sweeper(world).sweep(hours=2)
    assert [each.place for each in swept.removed] == [f"{OURS}.{OURS}_d1_{OTHER}_1"]
    assert [each.place for each in swept.troubles] == [f"{OURS}.{OURS}_d1_{VICTIM}_1"]


def test_a_sweep_that_may_write_nowhere_ends_at_once() -> None:
    world, places = dropped(VICTIM, OTHER)
    target_storage(world, Defect("create", WrittenElsewhere("dr was last written from another state folder"), on=True))
    with pytest.raises(WrittenElsewhere):
        Sweeper(world).sweep(hours=2)
    assert all(exists(world, place) for place in places.values())


def test_a_dry_sweep_goes_on_as_well() -> None:
    world, places = dropped(VICTIM, OTHER)
    defect = Defect("entries", KeyError("x"), on=True, about=lambda one: places[VICTIM] in repr(one))
    target_storage(world, defect)
    swept = Sweeper(world).sweep(hours=2, dry=True)
    for found, name in ((swept.removed, OTHER), (swept.troubles, VICTIM)):
        assert {each.place for each in found} == {places[name], f"{places[name]}/p=0"}


def test_what_the_machine_lacks_ends_a_sweep() -> None:
    with pytest.raises(MemoryError), own_trouble([], "file:/a"):
        raise MemoryError
