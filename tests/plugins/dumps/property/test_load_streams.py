"""Dumps that are loaded under several names into one target, in any order: each name is a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from calque.engine.sides.sides import TargetSide
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.load_policy import load_policy
from calque.plugins.dumps.engine.request import FinishedDump
from calque.plugins.dumps.run.load import DumpLoad, LoadBounds
from calque.plugins.dumps.wiring.dump_source import DumpSource, opened_dump
from plugins.dumps.property.test_loads import AT_FIRST, TOLD
from support.memory.ledger import MemoryLedger
from support.runs.seeds import history_seeds
from support.worlds.dumpworlds import DumpWorld
from support.worlds.worlds import ABSENT, InlineExecutor, Looker, Recall

NUMBER = {"check": 1, "prove": 40}.get(settings.get_current_profile_name(), 4)


@dataclass
class Stream:
    """A database at the target, and how many of the dumps are loaded into it."""

    source: str
    side: TargetSide
    loaded: int = 0


class StreamsWorld(DumpWorld):
    """One source whose dumps go to three databases, to one of them as those of another source."""

    def streams(self) -> list[Stream]:
        return [self.stream(*each) for each in (("hq", "local_one"), ("hq", "local_two"), ("far", "local_three"))]

    def stream(self, source: str, local: str) -> Stream:
        policy = load_policy(self.policy, source, "d1", local, "").policy
        ledger = MemoryLedger()
        return Stream(source, TargetSide.of(policy, self.side.catalog, ledger, self.side.storage))

    def load_into(self, stream: Stream, finished: FinishedDump) -> None:
        source = DumpSource(opened_dump(self.storage, finished.directory.directory), stream.source)
        stream.side.stopping.clear()
        load = DumpLoad(source, stream.side, LoadBounds(), pool=lambda _workers, _name: InlineExecutor())
        assert load.run() == [], self.writer.done
        stream.loaded += 1

    def wrong_in(self, stream: Stream, event_id: EventId) -> list[TableName]:
        """Tables that the stream does not show as they were at the event, but for the name of their database."""
        self.side = stream.side
        local = self.side.admission.name_at_target(TableName("d1")).database
        shown = self.target_states(Looker(self.side.imaging, self.content, Recall()))
        return [
            name
            for name in {*self.history.states, *shown}
            if self.scope.takes(name)
            and repr(shown.get(name, ABSENT)).replace(local, "d1_dr") not in map(repr, self.history.at(name, event_id))
        ]


@pytest.mark.parametrize("seed", history_seeds(NUMBER))
def test_each_name_comes_to_the_end_of_its_own_dumps_whatever_is_loaded_under_others(seed: int, tmp_path: Path) -> None:
    world = StreamsWorld(seed, tmp_path, TOLD)
    for operation in AT_FIRST:
        world.writer.run(operation)
    streams, dumps = world.streams(), [world.dump()]
    while any(stream.loaded < 4 for stream in streams):
        if len(dumps) < 4 and world.rng.random() < 0.5:
            for _ in range(world.rng.randrange(1, 12)):
                world.write()
            dumps.append(world.dump(dumps[-1].last_event))
        stream = world.rng.choice(streams)
        if stream.loaded < len(dumps):
            world.load_into(stream, dumps[stream.loaded])
        for each in streams:
            if each.loaded:
                assert not world.wrong_in(each, dumps[each.loaded - 1].last_event), world.writer.done
