"""The live proof in memory: a world whose target is read after every call. As a program it says what
it finds with some seeds, as JSON: `wrong.py` runs it with a wrong planner."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.records import AnnouncedBridge, all_of
from support.judges.proof import Proof, Reader, touched, with_rows
from support.memory.metastore import MemoryLog, MemoryReader
from support.sources.writers import OPERATIONS
from support.worlds.worlds import World

PLAIN = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target")
POLICIES = {
    "listing": PLAIN,
    "rows": replace(PLAIN, atomicity="rows", appends="new_directory"),
    "whole": replace(PLAIN, consistency="database"),
}
DATABASES = ("d1", "d2")
WINDOWS = 25


@dataclass(frozen=True, slots=True)
class Verdict:
    problems: list[str]
    observations: int
    changes: int


class Watched(World):
    """A world with a reader of all tables of its target."""

    def __init__(self, seed: int, policy: Policy) -> None:
        whole = frozenset(DATABASES) if policy.consistency == "database" else frozenset[str]()
        self.proof = Proof(whole, with_rows) if policy.atomicity == "rows" else Proof(whole)
        self.noted = 0
        self.bridges: list[frozenset[TableName]] = []
        """What was announced at each look, which has its number for a time."""
        super().__init__(seed, policy=policy)
        self.reader = Reader(
            MemoryReader(self.target_store), MemoryLog(self.target_store), self.side.admission, DATABASES, self.content
        )

    def note(self) -> None:
        super().note()
        events, self.noted = self.source.events(self.noted), self.source.current()
        self.proof.note(self.noted, self.source_states(), touched(events), len(events))

    def looked(self, method: str) -> None:
        super().looked(method)
        with self.uninterrupted():
            self.reader.event_id = None
            if (look := self.reader.look()) is not None:
                self.proof.see(look.event_id, len(self.bridges), look.states(self.looker), look.vague)
        tables = {one.table for one in all_of(self.side.announced.waiting(), AnnouncedBridge)}
        self.bridges.append(frozenset(tables | {TableName(table.database) for table in tables}))

    def problems_seen(self) -> list[str]:
        return self.proof.problems(lambda name, at: name in self.bridges[int(at)])


def watched(policy: str, seed: int) -> Verdict:
    """Windows of a random history, of which every file is seen in time. They end before what the source has by then."""
    world = Watched(seed, POLICIES[policy])
    world.write(20)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    for _ in range(WINDOWS):
        for _ in range(world.rng.randrange(1, 12)):
            with world.uninterrupted():
                world.writer.run(world.rng.choice(OPERATIONS))
            world.capture_all()
        world.window(world.rng.randint(world.replica.cursor, world.capture.last()))
        world.read()
    return Verdict(world.problems_seen(), world.proof.observations, world.proof.changes)


def main(seeds: Sequence[str]) -> None:
    found = {policy: [watched(policy, int(seed)) for seed in seeds] for policy in POLICIES}
    print(json.dumps({policy: [asdict(verdict) for verdict in verdicts] for policy, verdicts in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1:])
