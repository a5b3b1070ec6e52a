"""An exception that nobody expects is a defect of calque: it comes out of a window, and is no table's fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.errors import Broken
from calque.model.hive import Database
from calque.model.ledger import TableState
from calque.ports.forwarding import ForwardingCatalog, ForwardingCatalogReader, ForwardingLedger, ForwardingStorage
from support.faults.defects import Defect
from support.worlds.gapped import world_of
from support.worlds.worlds import World
from whole.test_staging import LARGE, SIZE, SMALL, SlowWorld

Place = Callable[[World, Defect], None]


def source_catalog(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, catalog=ForwardingCatalogReader(world.source_side.catalog, defect))


def source_storage(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, storage=ForwardingStorage(world.source_side.storage, defect))


def target_catalog(world: World, defect: Defect) -> None:
    world.side = replace(world.side, catalog=ForwardingCatalog(world.side.catalog, defect))


def target_storage(world: World, defect: Defect) -> None:
    world.side = replace(world.side, storage=ForwardingStorage(world.side.storage, defect))


def ledger(world: World, defect: Defect) -> None:
    world.side = replace(world.side, ledger=ForwardingLedger(world.ledger, defect))


def with_defect(world: World, place: Place, method: str, error: Exception) -> Defect:
    """Another process, which meets the error once the defect is on."""
    defect = Defect(method, error)
    place(world, defect)
    world.background.waiting.clear()
    world.replica = world.new_replica()
    world.open()
    return defect


def go_on(world: World) -> None:
    for _ in range(20):
        world.background.run()
        world.window()


def assert_ends(world: World, error: Exception) -> None:
    """The error ends the target, and no table is set aside."""
    with pytest.raises(type(error)) as raised:
        go_on(world)
    assert raised.value is error
    assert [row for row in world.ledger.tables().values() if row.state is TableState.QUARANTINED] == []


ERRORS = pytest.mark.parametrize(
    "error", [KeyError("d1"), Broken("An invariant fell")], ids=["nobody expects", "an invariant fell"]
)


@ERRORS
@pytest.mark.parametrize(
    ("place", "method"),
    [
        (source_catalog, "table"),
        (source_storage, "list"),
        (target_catalog, "create_table"),
        (target_storage, "copy"),
        (ledger, "put_tables"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_defect_in_an_exact_read_ends_the_target(place: Place, method: str, error: Exception) -> None:
    world = world_of(opened=False)
    with_defect(world, place, method, error).on = True
    assert_ends(world, error)


@ERRORS
def test_a_defect_while_a_landed_table_is_taken_up_ends_the_target(error: Exception) -> None:
    world = world_of(opened=False)
    world.open()
    world.background.run()
    with_defect(world, target_catalog, "table", error).on = True
    assert_ends(world, error)


@ERRORS
@pytest.mark.parametrize("method", ["headers", "constraints"])
def test_a_defect_in_a_bulk_comparison_ends_the_target(method: str, error: Exception) -> None:
    world = world_of()
    defect = with_defect(world, source_catalog, method, error)
    world.writer.source.create_database(Database("e1"))
    world.lose()
    world.window()
    defect.on = True
    assert_ends(world, error)


@ERRORS
def test_a_defect_in_a_copy_beside_the_windows_ends_the_target(error: Exception) -> None:
    world = SlowWorld()
    defect = with_defect(world, target_storage, "copy", error)
    world.insert(LARGE, b"x" * SIZE)
    world.insert(SMALL, b"x")
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 1)
    defect.on = True
    assert_ends(world, error)
