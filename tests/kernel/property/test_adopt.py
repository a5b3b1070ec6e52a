"""Targets that somebody filled by hand are taken over while the source changes, and whoever does it dies."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.core.events.kinds import kind_of
from calque.core.images.image import is_ours
from calque.errors import Unavailable
from calque.model.hive import Database
from calque.model.names import TableName
from support.worlds.handmade import FAULTS, REPL, copy_by_hand
from support.worlds.histories import DEATHS, Action, Player, Story, differences, stories, works
from support.worlds.worlds import Look

HISTORIES = {"check": 25, "prove": 20_000}
ADOPTIONS = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 150),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


class Adopter(Player):
    """Plays a story over hand-made copies; they are taken over before the action number `at`, and at the end."""

    def __init__(self, story: Story, seed: int, at: int) -> None:
        super().__init__(story)
        self.rng, self.at, self.number, self.first = random.Random(seed), at, 0, 0
        self.made: dict[TableName, Any] = {}
        self.shared: set[TableName] = set()
        """Tables whose readers read what the source's writers write, until they are taken over."""

    def before_open(self) -> None:
        world = self.world
        for name in sorted(world.source_states()):
            if self.rng.random() < 0.8 and not kind_of(world.source.the_table(name).table):
                root = self.rng.choice(["", f"file:/handmade/{name.database}/{name.table}"])
                parameters = self.rng.choice([{}, REPL])
                kind = self.rng.choice(["MANAGED_TABLE", "EXTERNAL_TABLE"])
                fault = self.rng.choice(FAULTS)
                copy_by_hand(world, name, fault, self.rng, root, parameters, kind)
                self.shared |= {name} if fault == "in the source's directory" else set()
        self.made = {name: state for name, state in world.target_states().items() if state is not None}
        self.first = len(world.looks)
        world.looked("copying by hand")

    def act(self, action: Action) -> None:
        if self.number == self.at:
            self.adopt()
        self.number += 1
        super().act(action)

    def adopt(self) -> None:
        """As a request: it is there until it is done."""
        todo = [True]

        def do() -> None:
            try:
                self.world.replica.requests.adoption.tables(lambda _: True, lambda _: True, "asked for by adopt")
                self.world.replica.tables.record(self.world.replica.epochs.record_states)
            except Unavailable:
                return
            todo.clear()

        while todo:
            self.world.survive(do)

    def end(self) -> None:
        self.world.settle()
        self.adopt()
        super().end()
        self.adopt()
        self.world.settle()

    def problems(self) -> list[str]:
        """A reader sees the hand-made rows until it sees the source's."""
        left: set[TableName] = set()
        judged: list[Look] = []
        for look in self.world.looks[self.first :]:
            if look.table not in left and rows(look.state) == rows(self.made.get(look.table)):
                continue
            left.add(look.table)
            if not look.bridged and look.table not in self.shared:
                judged.append(look)
        return self.world.judged(judged)

    def leave_foreign(self) -> None:
        """Nobody touched what the source has nothing of, but the source what lay in its own directories; it goes, so
        that the rest can be compared."""
        store = self.world.target_store
        for name, state in self.world.target_states().items():
            at = self.world.side.admission.name_at_target(name)
            if state is None or name in self.world.source_states():
                continue
            if not is_ours(store.the_table(at).table.parameters, "hq"):
                assert name in self.shared or rows(state) == rows(self.made[name])
                store.drop_table(at)
        for database in store.databases():
            if not is_ours(store.the_database(database).parameters, "hq") and not store.tables(database):
                store.drop_database(database)
        self.world.source.create_database(Database("last"))
        self.world.settle()


def rows(state: Any) -> Any:
    """What is read of a table, its definitions aside."""
    return state and (state[1], tuple((values, files) for values, (_, files) in state[2]))


def played(story: Story, seed: int, at: int) -> Adopter:
    player = Adopter(replace(story, settled=False), seed, at)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return player


@ADOPTIONS
@given(stories(works(deaths=DEATHS), seen=False), st.integers(0, 999), st.integers(0, 8))
def test_a_target_filled_by_hand_becomes_the_source_s_and_shows_nothing_between(
    story: Story, seed: int, at: int
) -> None:
    player = played(story, seed, at)
    player.leave_foreign()
    assert player.problems() == []
    assert differences(player.world) == []
