"""A world whose policy changes: readers know tables by their marks, whatever they are called at the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.core.images.image import SOURCE, ImageBuilder
from calque.core.images.policies import marked
from calque.core.policy.admit import Admission
from calque.engine.sides.sides import TargetSide
from calque.engine.window.long_copies import PATIENCE
from calque.model.hive import Partition, Table
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from calque.model.records import RetainedReplica, all_of
from support.memory.metastore import HIVE_3, HIVE_4
from support.worlds.histories import QUIET, Meanwhile, Player, Story
from support.worlds.worlds import ABSENT, Died, Look, Looker, Recall, State, World

UNUSED = "an image of a policy that the target never had"


@dataclass(frozen=True, slots=True)
class Change:
    """The target gets the policy of that number; dying in the midst of it, it gets the one of number `instead`."""

    policy: int
    instead: int | None = None
    meanwhile: Meanwhile = QUIET


class Images:
    """What readers saw, judged by the images of all policies that the target had until then."""

    def __init__(self, states: Mapping[TableName, list[tuple[int, State]]]) -> None:
        self.states = states
        self.reached: dict[TableName, int] = {}

    def judge(self, name: TableName, state: State, known: int) -> str:
        rows, at = self.states.get(name, [(0, ABSENT)])[:known], self.reached.get(name, 0)
        images, may_be_absent = state
        if images is ABSENT and may_be_absent:
            return ""
        found = next((i for i in range(at, len(rows)) if self.is_one(rows[i][1], images)), None)
        if found is None:
            before = [i for i, row in enumerate(rows) if self.is_one(row[1], images)]
            return (
                f"{name} shows {f'state {before} again, after {at}' if before else 'no state of the source'}: {images}"
            )
        self.reached[name] = found
        return ""

    def is_one(self, row: State, images: State) -> bool:
        if row is ABSENT or images is ABSENT:
            return bool(row is images)
        return any(image is not UNUSED and image == wanted for image, wanted in zip(images, row, strict=True))


class Nameless(Looker):
    """What a reader sees of a table but for its name, which says nothing of its state."""

    def definition(self, thing: object) -> State:
        if isinstance(thing, Table):
            thing = replace(thing, name="", database="")
        elif isinstance(thing, Partition):
            thing = replace(thing, table="", database="")
        return super().definition(thing)


class PolicyWorld(World):
    """States are tuples with an image for each pair of names and properties that policies give; what the target shows
    says with it whether nothing might be there."""

    def __init__(self, policies: Sequence[Policy], *given: Any) -> None:
        super().__init__(0, given[0], policies[0], *given[1:])
        self.policies = policies
        self.used = {0}
        self.admissions = [Admission(policy) for policy in policies]
        mixed = {
            (one, other): ImageBuilder(Admission(replace(policies[one], properties=policies[other].properties)))
            for one in range(len(policies))
            for other in range(len(policies))
        }
        self.lookers = {pair: Nameless(imaging, self.content, Recall()) for pair, imaging in mixed.items()}
        self.misplaced: list[str] = []

    def change(self, number: int) -> None:
        """Another process takes the target up, with another policy; capture goes on."""
        self.used.add(number)
        self.policy = self.policies[number]
        self.side = TargetSide.of(self.policy, self.side.catalog, self.ledger, self.storage)
        self.looker = replace(self.looker, imaging=self.side.imaging, recall=Recall())
        self.gatherer.takes = self.side.admission.takes
        self.background.waiting.clear()
        self.replica = self.new_replica()
        self.replica.open()

    def source_states(self, looker: Looker | None = None) -> dict[TableName, State]:
        if looker is not None:
            return super().source_states(looker)
        found = {}
        for database in self.source.databases():
            for table in self.source.tables(database):
                name = TableName(database, table)
                stored = self.source.the_table(name)
                rows = list(stored.partitions.values())
                found[name] = tuple(one.source(name, stored.table, rows) for one in self.lookers.values())
        return found

    def target_states(self, looker: Looker | None = None) -> dict[TableName, State]:
        if looker is not None:
            return super().target_states(looker)
        found: dict[TableName, State] = {name: (ABSENT, self.may_be_absent(name)) for name in self.history.states}
        kept = {str(one.at_target) for one in all_of(self.ledger.records(), RetainedReplica)}
        seen: set[TableName] = set()
        for database in self.target_store.databases():
            for table in self.target_store.tables(database) if database != OURS else ():
                at = TableName(database, table)
                stored = self.target_store.the_table(at)
                name = marked((stored.table.parameters or {}).get(SOURCE, ""), "hq")
                if name is None or str(at) in kept:
                    continue
                places = {self.admissions[number].name_at_target(name) for number in self.used}
                if name in seen or at not in places:
                    self.misplaced.append(f"{name} is there as {at}{' too' * (name in seen)}")
                seen.add(name)
                rows = list(stored.partitions.values())
                images = tuple(
                    one.target(name, stored.table, rows) if self.used.issuperset(pair) else UNUSED
                    for pair, one in self.lookers.items()
                )
                found[name] = (images, self.may_be_absent(name))
        return found

    def may_be_absent(self, name: TableName) -> bool:
        return not all(self.admissions[number].takes(name) for number in self.used)

    def judged(self, looks: Iterable[Look]) -> list[str]:
        judge, found = Images(self.history.states), list(self.misplaced)
        for look in looks:
            appending = look.method == "publish" and look.table in self.reread
            if not appending and (problem := judge.judge(look.table, look.state, look.known)):
                found.append(f"after {look.method} in window {look.window}, {problem}")
        return found


class PolicyPlayer(Player):
    """Plays stories in which the policy changes."""

    def __init__(self, story: Story, policies: Sequence[Policy]) -> None:
        self.policies = policies
        super().__init__(story)

    def made(self) -> World:
        habits = HIVE_3 if self.story.hive == 3 else HIVE_4
        return PolicyWorld(self.policies, habits, PATIENCE if self.story.patient else 0.0)

    def change(self, change: Change) -> None:
        world = self.world
        assert isinstance(world, PolicyWorld)
        self.meanwhile(change.meanwhile)
        world.mortal = True
        try:
            world.change(change.policy)
        except Died:
            world.mortal = False
            world.change(change.policy if change.instead is None else change.instead)
        world.mortal = False
        self.meanwhile(QUIET)
        world.note_reread()


def play(story: Story, policies: Sequence[Policy], changes: Mapping[int, Change]) -> PolicyWorld:
    """The world after the story, settled. `changes` come before the action of that number."""
    player = PolicyPlayer(story, policies)
    player.begin()
    for number, action in enumerate((*story.actions, None)):
        if number in changes:
            player.change(changes[number])
        if action is not None:
            player.act(action)
    player.end()
    assert player.touched == []
    assert isinstance(player.world, PolicyWorld)
    return player.world
