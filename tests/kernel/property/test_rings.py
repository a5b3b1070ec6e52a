"""Chains and rings of calques in memory: each object goes from its home to all others, and never back."""

from __future__ import annotations

import pytest

from support.runs.seeds import history_seeds
from support.worlds.rings import Metastores

SEEDS = history_seeds(10)


def play(world: Metastores) -> None:
    """Writers at all of them, while the calques come to know each other in any order, and start again now and then."""
    world.write(world.rng.randrange(20))
    for _ in range(world.rng.randrange(2, 7)):
        world.write(world.rng.randrange(10))
        for link in world.links:
            if world.rng.random() < 0.7:
                link.turn()
            if world.rng.random() < 0.2:
                link.restart()
    world.settle()


def require_equal(world: Metastores) -> None:
    for link in world.links:
        assert not link.quarantined(), link.name
        found = link.verify()
        assert not found.differences, f"{link.name}: {found.differences[:3]}"
        assert not found.set_aside, f"{link.name}: {found.set_aside[:3]}"


def require_quiet(world: Metastores) -> None:
    """Nobody writes, and nothing comes: no calque makes another one work."""
    heads = world.heads()
    for _ in range(3):
        for link in world.links:
            link.turn()
    assert world.heads() == heads


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_of_three_ends_equal_and_quiet(seed: int) -> None:
    world = Metastores(seed, "a", "b", "c")
    world.link("a", "b")
    world.link("b", "c")
    play(world)
    require_equal(world)
    require_quiet(world)
    assert world.tables_of("b") >= world.tables_of("a")
    assert world.tables_of("c") >= world.tables_of("b")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_of_two_ends_equal_and_quiet_and_carries_nothing_back(seed: int) -> None:
    world = Metastores(seed, "a", "b")
    world.link("a", "b")
    world.link("b", "a")
    play(world)
    require_equal(world)
    require_quiet(world)
    assert world.tables_of("a") == world.tables_of("b")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_of_three_ends_equal_and_quiet_and_carries_nothing_back(seed: int) -> None:
    world = Metastores(seed, "a", "b", "c")
    for source, target in ("ab", "bc", "ca"):
        world.link(source, target)
    play(world)
    require_equal(world)
    require_quiet(world)
    assert world.tables_of("a") == world.tables_of("b") == world.tables_of("c")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_metastore_that_is_its_own_target_ends_equal_and_quiet(seed: int) -> None:
    world = Metastores(seed, "a")
    world.link("a", "a", rename={"a1": "a1_copy", "a2": "a2_copy"})
    play(world)
    require_equal(world)
    require_quiet(world)
    assert {name.replace("_copy", "") for name in world.tables_of("a")} <= world.tables_of("a")
