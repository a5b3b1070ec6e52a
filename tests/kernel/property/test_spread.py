"""Large windows, whose groups are prepared in shares, end and look like small ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Executor
from zlib import crc32

import pyarrow as pa
import pytest

from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_FUNCTION
from calque.core.events.rows import table_of
from calque.core.states.fold import links_of
from calque.engine.replica.replica import Replica
from calque.engine.window.groups import Group, WindowBounds, prepare_share
from calque.model.journal import Entry, Event, EventKind
from calque.model.names import TableName
from calque.wiring.spark_windows import ROOT, by_root, in_order
from support.runs.seeds import history_seeds
from support.worlds.worlds import InlineExecutor, World

SEEDS = history_seeds(40)
SHARES = 3


class SpreadWorld(World):
    """A world in which every window is a large one; the shares are prepared one after the other."""

    def new_replica(self) -> Replica:
        def pool(_: int, name: str) -> Executor:
            return self.background if name.startswith("read") else InlineExecutor()

        return Replica(self.source_side, self.side, lambda: self.begin, lambda: None, pool, spread=self.spread, large=0)

    def spread(self, cut: WindowBounds) -> tuple[Sequence[Entry], Sequence[Group]]:
        entries = self.journal.entries(cut.span)
        links = links_of(entry for entry in entries if entry.keys.kind is EventKind.RENAME_TABLE)
        shares: dict[int, list[tuple[Entry, TableName]]] = {}
        for entry in entries:
            if (table := entry.keys.table) is not None and table.table:
                root = links.get(table, table)
                shares.setdefault(crc32("\n".join(root).encode()) % SHARES, []).append((entry, root))
        beside = [entry for entry in entries if entry.keys.kind in MAY_BE_OF_DATABASE_OR_FUNCTION]
        return beside, in_order(self.share(cut, share) for share in shares.values())

    def share(self, cut: WindowBounds, share: Sequence[tuple[Entry, TableName]]) -> Sequence[Group]:
        """What a task makes of these entries, which come in any order."""
        order = random.Random(0).sample(share, len(share))
        rows = table_of(
            (Event(entry.event_id, 0, entry.event_type, "", "", "", "", ""), entry.keys) for entry, _ in order
        )
        rooted = rows.append_column(ROOT, pa.array(["\n".join(root) for _, root in order]))
        return prepare_share(self.source_side, self.side, cut, by_root(rooted), InlineExecutor())


def play(seed: int, deadliness: float = 0.0) -> SpreadWorld:
    world = SpreadWorld(seed)
    world.write(world.rng.randrange(30))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.deadliness = deadliness
    world.open()
    for _ in range(world.rng.randrange(1, 8)):
        for _ in range(world.rng.randrange(30)):
            world.write()
            world.capture_all()
        world.work() if world.rng.random() < 0.7 else world.window_alone()
    world.deadliness = 0.0
    world.settle()
    return world


@pytest.mark.parametrize("deadliness", [0.0, 0.03])
@pytest.mark.parametrize("seed", SEEDS)
def test_windows_prepared_in_shares_show_only_states_of_the_source_and_reach_its_end(
    seed: int, deadliness: float
) -> None:
    world = play(seed, deadliness)
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states(), "\n".join(world.writer.done)
