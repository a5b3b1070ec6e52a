"""Random histories of a source, dumped and loaded in random cuts: whoever reads the target sees states of the source
alone, and each load comes to the source's state at its dump's end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from calque.model.ledger import TableState
from calque.plugins.dumps.core.dump_metadata import read_dump_metadata
from calque.plugins.dumps.core.scope import scope_of
from calque.plugins.dumps.run.load import LoadBounds
from support.runs.seeds import history_seeds
from support.worlds.dumpworlds import EVERYTHING, DumpWorld

NUMBER = {"check": 8}.get(settings.get_current_profile_name(), 40)
SEEDS = history_seeds(2 * NUMBER)
AT_FIRST = ("create_database", *["create_table"] * 6, *["add_partitions"] * 6)
TOLD = (
    *["insert_partition", "add_partitions"] * 5,
    *["overwrite_partition", "insert", "overwrite"] * 3,
    *["create_table", "drop_partitions", "truncate_table", "truncate_partitions", "alter_partitions"] * 2,
    "alter_table",
    "rename_table",
    "rename_partition",
    "drop_table",
    "drop_and_create",
    "create_view",
    "insert_partition_files",
    "insert_files",
    "alter_database",
    "swap",
    "statistics",
)
"""What events tell whole: a load has nothing else to go by."""


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_of_a_loaded_database_see_only_states_of_the_source(seed: int, tmp_path: Path) -> None:
    world = DumpWorld(seed, tmp_path, TOLD)
    for operation in AT_FIRST:
        world.writer.run(operation)
    finished = world.dump()
    world.load(finished)
    assert not world.wrong(finished.last_event)
    last = finished.last_event
    for _ in range(world.rng.randrange(2, 6)):
        for _ in range(world.rng.randrange(25)):
            world.write()
        world.deadliness = world.rng.choice([0.0, 0.0, 0.05])
        limit = world.rng.choice([None, None, 5, 20])
        finished = world.dump(last, limit=limit)
        left = world.load(finished, LoadBounds(world.rng.choice([1, 3, 10_000])))
        done = "\n".join(world.writer.done)
        assert left == [], done
        assert not world.wrong(finished.last_event), done
        last = finished.last_event
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    assert {TableState.LIVE} >= {row.state for row in world.ledger.tables().values()}


SCOPES = (
    EVERYTHING,
    scope_of("d1", ["[ab]", "v"], None),
    scope_of("d1", ["[a-c]"], None),
    scope_of("d1", None, ["c"]),
)


@pytest.mark.parametrize("seed", sorted({11, 24, 301045, 301110, 306114, 307019, *history_seeds(NUMBER)}))
def test_under_changing_policies_the_target_has_what_the_newest_one_takes(seed: int, tmp_path: Path) -> None:
    world = DumpWorld(seed, tmp_path, TOLD)
    for operation in AT_FIRST:
        world.writer.run(operation)
    world.scope = world.rng.choice(SCOPES)
    finished = world.dump()
    world.load(finished)
    for _ in range(4):
        for _ in range(world.rng.randrange(15)):
            world.write()
        before, world.scope = world.scope, world.rng.choice(SCOPES)
        is_whole = world.rng.random() < 0.2
        replaced = before if before is not world.scope and not is_whole else None
        finished = world.dump(None if is_whole else finished.last_event, replaced=replaced)
        done = "\n".join(world.writer.done)
        assert world.load(finished) == [], done
        assert not world.wrong(finished.last_event), done
        shown = {name for name, state in world.target_states().items() if state is not None}
        assert all(map(world.scope.takes, shown)), done


def test_a_bootstrap_at_the_event_that_is_shown_brings_what_its_policy_takes(tmp_path: Path) -> None:
    world = DumpWorld(0, tmp_path, TOLD)
    for operation in AT_FIRST:
        world.writer.run(operation)
    for world.scope in (SCOPES[2], EVERYTHING, SCOPES[3]):
        finished = world.dump()
        assert world.load(finished) == []
        assert not world.wrong(finished.last_event)
        assert all(world.scope.takes(name) for name, state in world.target_states().items() if state is not None)


UNLOCKED = tuple(name for name in TOLD if "rename" not in name and name != "swap")
"""What Hive lets happen while it dumps: it forbids renames until it is done."""


@pytest.mark.parametrize("seed", history_seeds(NUMBER))
def test_a_bootstrap_that_its_source_overtook_is_healed_by_the_next_increment(seed: int, tmp_path: Path) -> None:
    """Hive's own bootstrap says the event that it began at, and has objects as they were at later ones."""
    world = DumpWorld(seed, tmp_path, UNLOCKED)
    for operation in AT_FIRST:
        world.writer.run(operation)
    begin = world.source.current()
    for _ in range(world.rng.randrange(1, 10)):
        world.write()
    torn = world.dump()
    path, layout = torn.directory.dump_metadata, torn.directory.layout
    said = read_dump_metadata((world.storage.read(path) or b"").decode())
    world.storage.write(path, replace(said, from_event=begin).text(layout).encode())
    assert world.load(torn) == []
    for _ in range(world.rng.randrange(1, 10)):
        world.write()
    increment = world.dump(begin)
    done = "\n".join(world.writer.done)
    assert world.load(increment) == [], done
    assert not world.wrong(increment.last_event), done
