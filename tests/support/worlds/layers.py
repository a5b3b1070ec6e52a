"""A world in which names of the source have several images at the target: a replica for each layer of links, all over
one journal, in one target. Its stories are those of `histories`; the target's reader looks at all layers after every
call, whichever of them made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calque.core.records import lifecycle
from calque.engine.sides.sides import TargetSide
from calque.engine.window.long_copies import PATIENCE
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, MemoryLog, MemoryReader
from support.worlds.histories import Action, Player, Release, Reread, Story, differences, incarnations
from support.worlds.worlds import OPERATOR, History, Looker, Recall, World


class LayeredWorld(World):
    """The first layer, which captures for all of them, and the `others`."""

    def __init__(self, policies: Sequence[Policy], *given: Any, **named: Any) -> None:
        self.others: list[Layer] = []
        super().__init__(0, given[0], policies[0], *given[1:], **named)
        self.others = [Layer(self, policy) for policy in policies[1:]]
        self.take_all()

    @property
    def layers(self) -> list[World]:
        return [self, *self.others]

    def take_all(self) -> None:
        """Capture looks at the files of what any layer takes."""
        admissions = [layer.side.admission for layer in self.layers]
        self.gatherer.takes = lambda name: any(admission.takes(name) for admission in admissions)

    def note(self) -> None:
        super().note()
        for other in self.others:
            other.note()

    def looked(self, method: str) -> None:
        super().looked(method)
        for other in self.others:
            other.looked_alone(method)

    def open(self) -> None:
        super().open()
        for other in self.others:
            other.open()

    def read(self, limit: int | None = None) -> None:
        super().read(limit)
        for other in self.others:
            other.read(limit)

    def window(self, upto: EventId | None = None) -> None:
        super().window(upto)
        for other in self.others:
            other.survive(lambda other=other: other.window(upto))  # type: ignore[misc]

    def restart(self) -> None:
        super().restart()
        self.take_all()

    def restart_replica(self, ledger: MemoryLedger) -> None:
        """Another process takes up what the ledgers say: that of the first layer is given."""
        for other in self.others:
            other.share_capture()
            other.restart_replica(other.ledger)
        super().restart_replica(ledger)

    def settle(self, rounds: int = 200) -> None:
        super().settle(rounds)
        for other in self.others:
            other.settle(rounds)


class Layer(World):
    """A further layer: a ledger and a replica of its own, all else is the first one's."""

    def __init__(self, first: LayeredWorld, policy: Policy) -> None:
        super().__init__(0, first.habits, policy, first.patience, first.storage, batch=first.batch)
        self.first = first
        self.clock, self.source, self.target_store = first.clock, first.source, first.target_store
        self.journal, self.evidence, self.gaps = first.journal, first.evidence, first.gaps
        log, reader = MemoryLog(self.source, before=self.called), MemoryReader(self.source, before=self.called)
        self.source_side = replace(first.source_side, log=log, catalog=reader)
        catalog = MemoryCatalog(self.target_store, before=self.called, after=self.returned)
        self.side = TargetSide.of(policy, catalog, self.ledger, self.storage)
        self.looker = Looker(self.side.imaging, self.content, Recall())
        self.between = lambda method: first.between(method)
        self.fate = lambda: first.fate()
        self.share_capture()
        self.replica = self.new_replica()

    def share_capture(self) -> None:
        self.begin, self.gatherer, self.capture = self.first.begin, self.first.gatherer, self.first.capture

    def begin_anew(self) -> None:
        """Nothing that the source showed before counts."""
        self.share_capture()
        self.history = History()
        self.note()

    def looked(self, method: str) -> None:
        self.first.looked(method)

    def looked_alone(self, method: str) -> None:
        super().looked(method)

    def append_log(self, limit: int | None = None) -> None:
        self.first.append_log(limit)

    def capture_all(self, limit: int | None = None) -> None:
        self.first.capture_all(limit)


class LayeredPlayer(Player):
    """Plays a story whose policy has several images of some names."""

    def __init__(self, story: Story, policies: Sequence[Policy]) -> None:
        self.policies = policies
        super().__init__(story)

    @property
    def layers(self) -> list[World]:
        assert isinstance(self.world, LayeredWorld)
        return self.world.layers

    def made(self) -> World:
        habits, patience = HIVE_3 if self.story.hive == 3 else HIVE_4, PATIENCE if self.story.patient else 0.0
        return LayeredWorld(self.policies, habits, patience, batch=self.story.batch)

    def before_open(self) -> None:
        for other in self.layers[1:]:
            assert isinstance(other, Layer)
            other.begin_anew()

    def act(self, action: Action) -> None:
        super().act(action)
        live = {lifecycle.State.LIVE, lifecycle.State.WAITING, lifecycle.State.PAUSED}
        for other in self.layers[1:]:
            match action:
                case Reread(database):
                    self.reread(other, database, live)
                case Release():
                    self.reread(other, "", {lifecycle.State.QUARANTINED})
                case _:
                    pass
            other.note_reread()

    def twice(self) -> None:
        """A window of all layers whose records are lost."""
        upto, seen = self.upto(100), []
        ledgers = [layer.ledger for layer in self.layers]
        copies = [ledger.copy() for ledger in ledgers]
        for taken in (ledgers, copies):
            for layer, ledger in zip(self.layers, taken, strict=True):
                World.restart_replica(layer, ledger)
            self.world.read()
            self.world.window(upto)
            seen.append(([layer.target_states() for layer in self.layers], incarnations(self.world)))
        assert seen[0] == seen[1]

    def reread(self, layer: World, database: str, states: set[lifecycle.State]) -> None:
        def chosen(name: TableName) -> bool:
            return not database or name.database == database

        layer.replica.reads.reread(chosen, OPERATOR, states)


def all_differences(layers: Sequence[World]) -> list[str]:
    """Where the target is not all policies' image of the source. A database that one layer follows stays where another
    one puts single tables into it: whoever makes a database for single tables never drops it."""
    found = []
    for layer in layers:
        admissions = [other.side.admission for other in layers if other is not layer]
        shared = {
            admission.name_at_target(name).database
            for admission in admissions
            for name in admission.named()
            if name.table
        }
        stays = {f"database {database} is there still" for database in shared}
        found += [difference for difference in differences(layer) if difference not in stays]
    return found


def play(story: Story, policies: Sequence[Policy]) -> list[World]:
    """The layers after the story, settled."""
    player = LayeredPlayer(story, policies)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    assert player.touched == []
    return player.layers
