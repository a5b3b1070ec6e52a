"""Large windows, whose groups are prepared in shares, end and look like small ones."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import pytest

from calque.core.events.rows import table_of
from calque.engine.replica.replica import Replica
from calque.engine.window.groups import Group, WindowBounds, prepare_share
from calque.model.journal import Entry, Event, EventKind, Keys
from calque.model.names import TableName
from calque.wiring.spark_windows import in_order, of_all_shares, share_of, tables_of
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
        rows = table_of(
            (Event(entry.event_id, 0, entry.event_type, "", "", "", "", ""), entry.keys) for entry in entries
        )
        half = rows.num_rows // 2
        beside, shares = of_all_shares([rows.slice(0, half), rows.slice(half)], SHARES)
        parts = [tables_of(share_of(rows, shares, number), shares.links) for number in range(shares.count)]
        inline = InlineExecutor()
        return beside, in_order(prepare_share(self.source_side, self.side, cut, part, inline) for part in parts)


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


def test_shares_are_of_about_as_many_rows_each_and_hold_each_row_once() -> None:
    counts = {"hot": 40, "warm": 25, "cool": 10, "cold": 5}
    rows = table_of(
        (Event(number, 0, "INSERT", "", "", "", "", ""), Keys(EventKind.INSERT, TableName("d", name)))
        for number, name in enumerate(name for name, count in counts.items() for _ in range(count))
    )
    _, shares = of_all_shares([rows.slice(0, 30), rows.slice(30)], 2)
    parts = [share_of(rows, shares, number) for number in range(shares.count)]
    assert [part.num_rows for part in parts] == [40, 40]
    assert sorted(number for part in parts for number in part["event_id"].to_pylist()) == [*range(80)]
    assert of_all_shares([rows.slice(0, 0)], 2)[1].count == 0
