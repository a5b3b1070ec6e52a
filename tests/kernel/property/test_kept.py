"""Files that Hive keeps, through the whole engine, in memory: random sources, of which some databases are kept."""

from __future__ import annotations

import pytest

from calque.model.policy import Policy
from support.runs.seeds import history_seeds
from support.sources.keeping import KeepingDirectories, KeepingFiles, KeepingSource
from support.sources.writers import Noting, Writer
from support.worlds.worlds import World

SEEDS = history_seeds(40)
AT_FIRST = (*["create_database"] * 6, *["create_table"] * 10, *["add_partitions"] * 8)
HOT = (
    *["insert_partition"] * 6,
    *["overwrite_partition"] * 6,
    *["drop_partitions", "truncate_partitions", "overwrite", "insert"] * 3,
    *["add_partitions", "alter_partitions", "truncate_table", "insert_partition_files"] * 2,
    "alter_table",
    "rename_table",
    "rename_partition",
    "exchange_partition",
    "truncate",
    "create_again",
)
"""What is done to a few tables again and again."""


def keeping_world(seed: int) -> World:
    """`d1` is a source of Hive's replication, `d2` is none. Hive names its files alike again and again."""
    world = World(seed, None, Policy("dr", "hq", include=("d*.*",), warehouse="file:/target"))
    directories = KeepingDirectories(world.storage, lambda location: "/d1.db/" in location)
    source = Noting(KeepingSource(world.source, directories), world.note)  # type: ignore[arg-type]
    world.writer = HiveWriter(source, KeepingFiles(directories), world.rng, placed=world.note)
    world.open()
    for operation in AT_FIRST:
        world.writer.run(operation)
    return world


class HiveWriter(Writer):
    """Writes `000000_0` where no such file lies, and other names beside it."""

    def step(self) -> None:
        self.run(self.rng.choice(HOT))

    def put_file(self, location: str) -> str:
        names = self.storage.children(location)
        self.files += 1
        path = f"{location}/000000_0" if "000000_0" not in names else f"{location}/000000_0_copy_{self.files}"
        self.storage.write(path, self.rng.randbytes(self.rng.randrange(1, 4)))
        return path


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_see_only_states_of_the_source_and_nothing_is_written_where_hive_keeps_files(seed: int) -> None:
    world = keeping_world(seed)
    for _ in range(world.rng.randrange(3, 9)):
        for _ in range(world.rng.randrange(16)):
            world.write()
            if world.rng.random() < 0.3:
                world.capture_all()
        kept = world.storage.tree("file:/cmroot")
        world.work()
        assert world.storage.tree("file:/cmroot") == kept
        if world.rng.random() < 0.1:
            world.storage.remove(["file:/cmroot"])
    world.settle()
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states(), "\n".join(world.writer.done)
