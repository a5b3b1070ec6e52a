"""Bootstraps in memory: a world that judges what the target's epochs claim, and counts what is read exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from calque.engine.window.long_copies import PATIENCE
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.histories import Action, Player, Release, Reread, Story
from support.worlds.worlds import ABSENT, World


class Bootstrap(World):
    """A world whose epochs are judged when they are published: every table that they cover shows the source's state at
    their event id."""

    def __init__(self, seed: int, habits: ServerHabits, policy: Policy, patience: float = PATIENCE) -> None:
        super().__init__(seed, habits, policy, patience)
        self.false_claims: list[str] = []
        self.published = self.judge_claim
        self.restarts = self.wanted = 0

    def judge_claim(self) -> None:
        epoch = self.ledger.last_epoch()
        assert epoch is not None
        rows, shown = self.ledger.tables(), self.target_states()
        for name in self.history.states:
            row = rows.get(("table", *name))
            if row is not None and row.state != TableState.LIVE:
                continue
            wanted = self.history.at(name, epoch.event_id)
            if shown[name] in wanted or (self.policy.drops == "keep" and ABSENT in wanted):
                continue
            self.false_claims.append(
                f"epoch {epoch.epoch} at event {epoch.event_id}: {name} shows {shown[name]}, the source had {wanted}"
            )

    def restart_replica(self, ledger: Any) -> None:
        self.restarts += 1
        super().restart_replica(ledger)

    def reads(self) -> int:
        """How many exact reads were begun."""
        return sum(self.reads_of().values())

    def reads_of(self) -> Counter[TableName]:
        return Counter(args[0] for args in self.background.run_with if args and isinstance(args[0], TableName))

    def reads_allowed(self) -> int:
        """One of each name at each start and each time that somebody wants it, and one more for each event of the
        source."""
        return len(self.history.states) * (1 + self.restarts + self.wanted) + self.source.current() - self.begin


class Booting(Player):
    """Plays a story in such a world."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        patience = PATIENCE if story.patient else 0.0
        self.world: Bootstrap = Bootstrap(0, HIVE_3 if story.hive == 3 else HIVE_4, story.policy, patience)
        self.world.between = self.come_between
        self.world.storage.before = self.storage_called
        self.world.fate = self.fate

    def act(self, action: Action) -> None:
        self.world.wanted += isinstance(action, Reread | Release)
        super().act(action)


def boot(story: Story) -> Bootstrap:
    """The world after the story, settled. Raises `AssertionError` when it does not settle."""
    player = Booting(story)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return player.world


def taken_up(story: Story) -> Bootstrap:
    """The same from a settled target on whose ledger is lost: it is known to equal the source at its position, `start`
    says so, and nothing of it is read."""
    player = Booting(story)
    player.begin()
    world = player.world
    start = world.replica.epochs.position()
    world.side = replace(world.side, policy=replace(world.policy, start=start))
    read, copied = world.reads(), world.storage.changes
    world.restart_replica(type(world.ledger)(world.recorded))
    world.read()
    world.window_alone()
    assert (world.reads(), world.storage.changes) == (read, copied)
    for action in story.actions:
        player.act(action)
    player.end()
    return world
