"""Notices over generated histories: at the source the history in order, at a target the states that it shows."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from calque.core.images.image import STATE
from calque.engine.failpoints import passing
from calque.model.journal import EventKind
from calque.model.ledger import TableRow, TableState
from calque.model.names import Span, TableName, partition_name, table_name
from calque.plugins.marks.model import Mark
from calque.plugins.notices.engine.source_feed import SourceFeed
from support.memory.marks import MemoryMarks
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    HOLES,
    PLAIN,
    QUIET,
    Capture,
    Meanwhile,
    Player,
    Story,
    Window,
    Write,
    stories,
    works,
)
from support.worlds.subscribers import Believer, Site, drain, expected_of, sorted_name, without_repetitions
from support.worlds.worlds import Died, World

HISTORIES = {"check": 50, "prove": 20_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
Shown = Mapping[TableName, set[str]]


def name_of(values: Mapping[str, str]) -> str:
    return sorted_name(partition_name(list(values), list(values.values())))


def shown(world: World) -> dict[TableName, set[str]]:
    """The tables that the target has, with their partitions, by the source's names."""
    tables: dict[TableName, set[str]] = {}
    for at_target, stored in world.stored_at_target():
        name = world.side.admission.source_of(at_target)
        if name is not None:
            partitions = stored.partitions.values()
            keys = [key.name for key in stored.table.partition_keys or ()]
            listed = [part for part in partitions if STATE not in (part.parameters or {})]
            tables[name] = {sorted_name(partition_name(keys, part.values)) for part in listed}
    return tables


class Heard(Player):
    """A story, and what the target showed at each epoch, of the tables that were live."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.epochs: dict[int, tuple[Shown, set[TableName]]] = {}
        self.site = Site(self.world)
        self.feed = self.site.target_feed()
        self.believer = Believer()
        self.heard = 0
        self.states: dict[TableName, object] = {}
        """Of the tables that were live at the epoch before, all that a reader sees of them."""
        self.world.published = self.published

    def published(self) -> None:
        """Who hears all notices knows what is there."""
        world = self.world
        drain(self.feed)
        notices = self.site.broker.notices()[self.heard :]
        for notice in notices:
            self.believer.hear(notice, name_of)
        self.heard = len(self.site.broker.messages)
        rows = [row for row in world.ledger.tables().values() if isinstance(row, TableRow)]
        aside = {row.name for row in rows if row.state is not TableState.LIVE}
        there = shown(world)
        for name in {*there, *self.believer.tables} - aside:
            assert self.believer.tables.get(name) == there.get(name), (name, world.ledger.last_epoch())
        states = {name: state for name, state in world.target_states().items() if name not in aside}
        told = {TableName(notice["database"], notice["table"]) for notice in notices}
        told |= {table_name(*notice["was"].split(".")) for notice in notices if notice["was"]}
        changed = {name for name, state in states.items() if self.states.get(name, state) != state}
        assert changed <= told, (changed - told, world.ledger.last_epoch())
        self.states = states


@LAW
@given(stories(works(others=HOLES), seen=False))
def test_who_hears_a_target_knows_which_tables_and_partitions_it_shows(story: Story) -> None:
    heard = Heard(story)
    heard.begin()
    for action in story.actions:
        heard.act(action)
    heard.end()
    heard.published()
    ids = [notice["id"] for notice in heard.site.broker.notices()]
    assert len(ids) == len({*ids})


TRUNCATED_BEFORE_A_DEATH = Story(
    PLAIN,
    3,
    (*AT_FIRST, Write("drop_and_create", 0)),
    (Write("truncate", 0), Capture(None, QUIET), Window(100, Meanwhile((), (4,)))),
    settled=True,
)


@LAW
@example(TRUNCATED_BEFORE_A_DEATH)
@given(stories(works(deaths=DEATHS, others=HOLES), seen=False))
def test_that_holds_where_calque_dies_at_any_time(story: Story) -> None:
    """What an attempt did that was not recorded is told by the next epoch."""
    heard = Heard(story)
    heard.begin()
    for action in story.actions:
        heard.act(action)
    heard.end()
    heard.published()


class Dying:
    """Dies at the hits of these numbers, one after the other."""

    def __init__(self, deaths: tuple[int, ...]) -> None:
        self.deaths, self.hits = list(deaths), 0

    def __call__(self, _: str) -> None:
        self.hits += 1
        if self.deaths and self.hits > self.deaths[0]:
            del self.deaths[0]
            self.hits = 0
            raise Died


def expected_history(world: World, after: int) -> list[tuple[int, str, str]]:
    """Event, type and table of what the source did, as its journal tells it."""
    entries = world.journal.entries(Span(after, world.journal.last() or after))
    return [(entry.event_id, kind, str(entry.keys.table)) for entry in entries for kind in expected_of(entry)]


@LAW
@given(
    stories(works(), seen=False),
    st.lists(st.integers(0, 40), max_size=8).map(tuple),
    st.lists(st.integers(0, 100), max_size=5),
)
def test_the_notices_of_a_source_are_its_history_in_order(
    story: Story, deaths: tuple[int, ...], marked: list[int]
) -> None:
    player, marks = Player(story), MemoryMarks()
    player.begin()
    world = player.world
    site = Site(world)
    begin = world.journal.last() or world.begin
    site.source_feed(marks)
    site.broker.hit = site.records.hit = Dying(deaths)
    feed = site.source_feed(marks)
    for action in story.actions:
        player.act(action)
        if marked:
            mark(world, marks, marked.pop())
        feed = gone_on(site, marks, feed)
    player.end()
    site.broker.hit = site.records.hit = passing
    drain(site.source_feed(marks))
    notices = without_repetitions(site.broker.notices())
    history = [notice for notice in notices if notice["type"] != "done"]
    found = [(one["event_id"], one["type"], f"{one['database']}.{one['table']}") for one in history]
    assert found == expected_history(world, begin)
    places = {notice["id"]: place for place, notice in enumerate(notices)}
    for one in marks.after(0):
        place = places[f"hq:mark:{one.number}"]
        assert all((one.event_id >= notice["event_id"]) == (places[notice["id"]] < place) for notice in history)
    for message, notice in zip(site.broker.messages, site.broker.notices(), strict=True):
        assert message.topic == f"hq.{notice['database']}.{notice['table']}"
    keys = {
        notice["id"]: message.key for message, notice in zip(site.broker.messages, site.broker.notices(), strict=True)
    }
    assert [keys[notice["id"]] for notice in history] == expected_keys(world, begin)


def expected_keys(world: World, after: int) -> list[str]:
    """The key of each notice of the history: where the table was created, else its first name."""
    keys: dict[TableName, str] = {}
    found = []
    for entry in world.journal.entries(Span(world.begin, world.journal.last() or 0)):
        table, other = entry.keys.table, entry.keys.other
        if table is None or not table.table:
            continue
        if entry.keys.kind is EventKind.CREATE_TABLE:
            keys[table] = str(entry.event_id)
        if entry.keys.kind is EventKind.RENAME_TABLE and other is not None:
            keys[table] = keys.pop(other, str(other))
        kinds = expected_of(entry)
        found += [keys.get(table, str(table))] * (len(kinds) if entry.event_id > after else 0)
        if entry.keys.kind is EventKind.DROP_TABLE:
            keys.pop(table, None)
    return found


def mark(world: World, marks: MemoryMarks, seed: int) -> None:
    tables = sorted(world.source_states())
    if tables:
        table, number, now = tables[seed % len(tables)], marks.last() + 1, world.clock.now
        event_id = world.source.current()
        assert marks.add(Mark(number, table, f"r{event_id}", {"ds": str(seed)}, event_id, now, now + 10**12))


def gone_on(site: Site, marks: MemoryMarks, feed: SourceFeed) -> SourceFeed:
    while True:
        try:
            drain(feed)
        except Died:
            feed = site.source_feed(marks)
        else:
            return feed
