"""A mark that is done at a target: whoever reads there has the rows that the set had when it was marked, or those of a
later state of the same table. Over generated histories through the whole engine, in memory.

Sets are marked between the writer's operations, and each is looked for after every epoch, after every action, and at
the end. A history that breaks the rule is shrunk to the few actions that do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from calque.engine.sides.sides import SourceSide
from calque.model.hive import is_partitioned, is_view
from calque.model.names import EventId, TableName
from calque.plugins.marks.core import Done, NotDone
from calque.plugins.marks.engine.follow_tables import remember
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.make import make_mark
from calque.plugins.marks.engine.target_view import target_view
from calque.plugins.marks.model import Mark
from support.memory.marks import MemoryMarks
from support.memory.metastore import MemoryLog, MemoryReader
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    GAPS,
    HOLES,
    PLAIN,
    Action,
    Capture,
    Player,
    Story,
    Window,
    Write,
    stories,
    works,
)
from support.worlds.worlds import ABSENT, State

HISTORIES = {"check": 40, "prove": 30_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 90),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
LONG = 1e9
"""Seconds that no history takes."""


@dataclass
class Marker(Player):
    """Plays a story, marks sets, and reads at the target whatever is said to be done there."""

    story: Story
    marked: MemoryMarks = field(default_factory=MemoryMarks)
    tables: dict[EventId, dict[TableName, int]] = field(default_factory=dict)
    """By the newest event when somebody looked: which table stood under each name."""
    states_then: dict[int, dict[TableName, int]] = field(default_factory=dict)
    """By the numbers of marks: how many states the source had shown of each name."""
    done: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.story)
        world = self.world
        note = world.note

        def noted() -> None:
            note()
            self.tables[world.source.current()] = identities(world.source)

        world.note = noted  # type: ignore[method-assign]
        world.writer.source = type(world.writer.source)(world.source, noted)
        self.side = SourceSide(
            "hq",
            MemoryLog(world.source),
            MemoryReader(world.source),
            world.journal,
            world.evidence,
            world.storage,
            world.clock,
            gaps=world.gaps,
        )
        world.published = self.look

    def before_open(self) -> None:
        """What the source showed is remembered from here on: all of that is later than the marks that there are."""
        super().before_open()
        self.states_then = {number: {} for number in self.states_then}

    def write(self, write: Write) -> None:
        super().write(write)
        if write.operation in GAPS:
            return
        with self.world.uninterrupted():
            self.mark(random.Random(write.seed))

    def mark(self, rng: random.Random) -> None:
        """One set of a table that has partitions, if the draw wants it."""
        source = self.world.source
        names = [TableName(database, table) for database in source.databases() for table in source.tables(database)]
        tables = {name: source.the_table(name) for name in sorted(names)}
        candidates = [
            name for name, stored in tables.items() if is_partitioned(stored.table) and not is_view(stored.table)
        ]
        if not candidates or rng.random() < 0.3:
            return
        name = rng.choice(candidates)
        keys = [key.name for key in tables[name].table.partition_keys]
        rows = sorted(tables[name].partitions)
        values = rng.choice(rows) if rows else ("1",) * len(keys)
        some = dict(list(zip(keys, values, strict=True))[: rng.randint(1, len(keys))])
        mark = make_mark(self.side, self.marked, name, some, lambda _: LONG)
        self.tables[mark.event_id] = identities(source)
        self.states_then[mark.number] = {name: len(rows) for name, rows in self.world.history.states.items()}
        if rng.random() < 0.3:
            remember(self.side, self.marked)

    def act(self, action: Action) -> None:
        super().act(action)
        with self.world.uninterrupted():
            self.look()

    def look(self) -> None:
        world = self.world
        judge = MarkJudge(self.side, self.marked, lambda: target_view(world.ledger, world.gaps, world.side.admission))
        states = world.target_states()
        for mark, verdict in zip(marks := self.marked.after(0), judge.of(marks), strict=True):
            if isinstance(verdict, Done):
                self.done.add(mark.number)
                self.require_rows(mark, verdict, states[verdict.table])

    def require_rows(self, mark: Mark, done: Done, shown: State) -> None:
        """That a reader of the table at the target sees what the source had at the mark's event, or later."""
        first = self.states_then[mark.number].get(done.table, 1) - 1
        later = [state for _, state in self.world.history.states.get(done.table, [])[first:]]
        if shown is ABSENT or shown not in later:
            self.wrong.append(f"{done} is {shown}, and the source had {later}")
        before, after = self.tables.get(mark.event_id, {}), self.tables.get(done.shows, {})
        if before and after and before.get(mark.table) != after.get(done.table):
            self.wrong.append(f"{done} is of another table: {before.get(mark.table)}, {after.get(done.table)}")


def identities(source: Any) -> dict[TableName, int]:
    """Which table stands under each name: no two of them are made in one second."""
    return {
        TableName(database, table): source.the_table(TableName(database, table)).table.create_time
        for database in source.databases()
        for table in source.tables(database)
    }


def played(story: Story) -> Marker:
    marker = Marker(story)
    marker.begin()
    for action in story.actions:
        marker.act(action)
    marker.end()
    marker.look()
    return marker


def undone_in_the_end(marker: Marker) -> list[str]:
    """Marks of tables that are there, that the policy takes, and that no reason keeps from being done."""
    world = marker.world
    judge = MarkJudge(marker.side, marker.marked, lambda: target_view(world.ledger, world.gaps, world.side.admission))
    final = ("ended", "lost", "quarantined")
    return [
        str(verdict)
        for verdict in judge.of(marker.marked.after(0))
        if isinstance(verdict, NotDone) and verdict.state not in final
    ]


@LAW
@given(stories(works(deaths=DEATHS, others=HOLES), seen=False))
def test_what_is_done_at_a_target_can_be_read_there(story: Story) -> None:
    marker = played(story)
    assert marker.wrong == []
    assert undone_in_the_end(marker) == []


RENAME = Write("rename_table", 2)


@pytest.mark.parametrize("seed", range(5))
def test_marks_of_a_quiet_history_are_all_done_or_ended(seed: int) -> None:
    story = Story(PLAIN, 3, AT_FIRST, (Write("add_partitions", seed), Capture(), Window(), RENAME, Capture(), Window()))
    marker = played(story)
    assert marker.wrong == []
    assert marker.done
