"""Histories as values: what happens to a world, in order. Drawn by hypothesis, they shrink to the few actions that
matter, and the text of one is its reproduction: `play` does it again.

    rename = Write("rename_table", 2)                   # an operation of the writer's, and the seed of what it chooses
    insert = (2, Write("insert_partition", 1), True)    # before the second call of a window; capture looks at once
    story = Story(PLAIN, 3, AT_FIRST, (rename, Capture(), Window(meanwhile=Meanwhile((insert,)))))
    world = play(story)
    assert world.problems == []                         # no reader saw what it must not see
    assert differences(world) == []                     # in the end the target is the policy's image of the source

Property tests draw stories of `stories(works(…), seen=…)`: which actions there are, what comes between calls, and
whether capture sees every event before the next. What judges a world at its end is below: `differences`, `holes`,
`incarnations`, `live_states`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from hypothesis import strategies as st

from calque.core.events.kinds import kind_of
from calque.core.images.image import INCARNATION, MARKS, STATISTICS, canonical
from calque.core.records import lifecycle
from calque.engine.apply.functions import same_function
from calque.engine.exact_reads.build_in_batches import BATCH
from calque.engine.window.long_copies import PATIENCE
from calque.model.hive import is_view, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import Hop, Rebuild
from calque.model.policy import Policy, SmallFilesRule
from support.memory.metastore import HIVE_3, HIVE_4
from support.sources.writers import OPERATIONS, RARER
from support.worlds.worlds import ABSENT, OPERATOR, Backup, State, World, computed


@dataclass(frozen=True, slots=True)
class Write:
    """An operation of the source's writer, or one of `GAPS`; `seed` decides what it chooses."""

    operation: str
    seed: int


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What comes between the remote calls of the action that it belongs to: before the call number `at` of it an
    operation, and a look of capture with `seen`. At the points `deaths` (each counted from the last) calque dies and
    is started again."""

    writes: tuple[tuple[int, Write, bool], ...] = ()
    deaths: tuple[int, ...] = ()


QUIET = Meanwhile()


@dataclass(frozen=True, slots=True)
class Capture:
    """Capture copies the log's next events, about `limit` of them, and looks at the files that they name."""

    limit: int | None = None
    meanwhile: Meanwhile = QUIET


@dataclass(frozen=True, slots=True)
class Read:
    """The tables that are to be read exactly are read, and land; groups that left the window are copied. Of all that
    waits for it only the first `limit`."""

    meanwhile: Meanwhile = QUIET
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A window over `percent` of what the journal has and the target does not show."""

    percent: int = 100
    meanwhile: Meanwhile = QUIET


@dataclass(frozen=True, slots=True)
class Twice:
    """A window, and the same again from the ledger that it began with."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Longer than evidence is waited for."""


@dataclass(frozen=True, slots=True)
class Reread:
    """The live tables of a database are to be read again."""

    database: str


@dataclass(frozen=True, slots=True)
class Release:
    """What is quarantined is to be read again."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Calque is started again, capture too."""


Action = Write | Capture | Read | Window | Twice | Wait | Reread | Release | Restart


PLAIN = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target")


@dataclass(frozen=True, slots=True)
class Story:
    """`before` is what the source did before calque knew it. With `seen`, capture looks after every operation, so that
    no evidence is lost."""

    policy: Policy = PLAIN
    hive: int = 4
    before: tuple[Write, ...] = ()
    actions: tuple[Action, ...] = ()
    seen: bool = False
    settled: bool = False
    """Everything is live before the first action."""
    patient: bool = True
    """Copies may hold up a window; otherwise all of them are made beside the windows, in `ReadOutcome`."""
    batch: int = BATCH
    """Partitions that are held at a time: of tables with more, those that the target lacks are built in batches."""
    opening: Meanwhile = QUIET
    """What comes between the calls with which the source is listed."""


HOLES = (Reread("d1"), Reread("d2"), Restart(), Wait(), Release())
"""Actions after which states between are not known."""


GAPS = ("purge", "forget", "back_up", "restore")
"""The log is purged under the journal's end but for a few events, the journal lets go of all but a few, or the
metastore is restored as it was backed up. The latter comes between windows alone: ids that come again can't be told
from others by what is under way."""


SOURCE_PLACES = ("file:/source", "file:/outside")


def play(story: Story) -> World:
    """The world after the story, settled. Raises `AssertionError` when it does not settle."""
    player = Player(story)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return player.world


class Player:
    """Plays a story in a world of its own."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.world = self.made()
        self.writes: list[tuple[int, Write, bool]] = []
        self.deaths: list[int] = []
        self.calls = self.points = self.farthest = 0
        self.backup: Backup | None = None
        self.world.between = self.come_between
        self.world.storage.before = self.storage_called
        self.world.fate = self.fate
        self.written = self.source_tree()
        """What lay below the source's places when its writer was last done."""
        self.touched: list[str] = []
        """What anybody else changed there."""

    def made(self) -> World:
        patience = PATIENCE if self.story.patient else 0.0
        return World(0, HIVE_3 if self.story.hive == 3 else HIVE_4, self.story.policy, patience, batch=self.story.batch)

    def begin(self) -> None:
        noting, self.world.writer.source = self.world.writer.source, self.world.source
        for write in self.story.before:
            self.write(write)
        self.world.writer.source = noting
        self.world.history.states.clear()
        self.world.history.noted.clear()
        self.world.note()
        self.world.begin = self.world.capture.after = self.world.source.current()
        self.world.gatherer.resume(self.world.begin, self.world.begin)
        self.before_open()
        self.meanwhile(self.story.opening)
        self.world.mortal = True
        self.world.open()
        self.world.mortal = False
        self.meanwhile(QUIET)
        if self.story.settled:
            self.world.settle()

    def before_open(self) -> None:
        """What is done at the target before calque comes."""

    def end(self) -> None:
        self.world.settle()
        self.act(Release())
        self.world.settle()
        self.look_for_strangers()

    def act(self, action: Action) -> None:
        world = self.world
        match action:
            case Write():
                self.write(action)
                if self.story.seen:
                    world.capture_all()
            case Capture(limit, meanwhile):
                self.meanwhile(meanwhile)
                world.capture_all(limit)
            case Read(meanwhile, limit):
                self.meanwhile(meanwhile)
                world.read(limit)
            case Window(percent, meanwhile):
                self.meanwhile(meanwhile)
                world.survive(lambda: world.window(self.upto(percent)))
            case Twice():
                self.twice()
            case Wait():
                world.clock.now += 40_000_000_000
            case Reread(database):
                live = {lifecycle.State.LIVE, lifecycle.State.WAITING, lifecycle.State.PAUSED}
                world.replica.reads.reread(lambda name: name.database == database, OPERATOR, live)
            case Release():
                world.replica.reads.reread(lambda _: True, OPERATOR, {lifecycle.State.QUARANTINED})
            case Restart():
                world.restart()
            case _:
                assert_never(action)
        self.meanwhile(QUIET)
        world.note_reread()

    def write(self, write: Write) -> None:
        """One operation; no two tables are created in the same second, which is all that a metastore tells of them."""
        self.world.clock.now += 1_000_000_000
        with self.world.uninterrupted():
            if write.operation in GAPS:
                self.lose(write)
                return
            self.look_for_strangers()
            self.world.writer.rng = random.Random(write.seed)
            self.world.writer.run(write.operation)
            self.written = self.source_tree()

    def source_tree(self) -> dict[str, tuple[int, int]]:
        """Names, sizes and times of all that lies where the source's tables do."""
        return {path: row for place in SOURCE_PLACES for path, row in self.world.storage.tree(place).items()}

    def look_for_strangers(self) -> None:
        """Who but the writer changed something at the source."""
        tree = self.source_tree()
        self.touched += sorted(
            path for path in tree.keys() | self.written.keys() if tree.get(path) != self.written.get(path)
        )
        self.written = tree

    def lose(self, write: Write) -> None:
        """Gaps are found at once; not while capture looks at files."""
        world = self.world
        if write.operation == "back_up":
            self.backup = Backup(world.source)
        elif write.operation == "purge" and not world.gathering:
            world.lose(write.seed % 3)
        elif write.operation == "forget" and not world.gathering:
            world.forget(write.seed % 4)
        elif write.operation == "restore" and self.backup is not None:
            world.go_back(self.backup)

    def upto(self, percent: int) -> EventId:
        """Where a window ends: not before one that died, whose drops no mark tells of."""
        shown, last = self.world.replica.cursor, self.world.capture.last()
        self.farthest = min(last, max(self.farthest, shown + (last - shown) * percent // 100))
        return self.farthest

    def twice(self) -> None:
        """A window whose record is lost changes nothing when it is played again, unless more is known of files then."""
        world = self.world
        upto = self.upto(100)
        world.capture_all()
        seen = []
        for ledger in (world.ledger, world.ledger.copy()):
            world.restart_replica(ledger)
            world.read()
            world.window(upto)
            seen.append((world.target_states(), incarnations(world)))
        assert seen[0] == seen[1]

    # Between the calls

    def meanwhile(self, meanwhile: Meanwhile) -> None:
        self.writes, self.deaths = list(meanwhile.writes), list(meanwhile.deaths)
        self.calls = self.points = 0

    def come_between(self, _: str) -> None:
        self.calls += 1
        while self.writes and self.writes[0][0] <= self.calls:
            _at, write, seen = self.writes.pop(0)
            self.calls = 0
            self.write(write)
            if seen or self.story.seen:
                self.world.capture_all()

    def storage_called(self, method: str, _about: str) -> None:
        if not self.world.busy:
            self.world.looked(method)
            self.world.called(method)

    def fate(self) -> bool:
        if not self.deaths:
            return False
        self.points += 1
        if self.points <= self.deaths[0]:
            return False
        self.points = 0
        del self.deaths[0]
        return True


# What must hold at the end


def differences(world: World) -> list[str]:
    """Where the target is not the policy's image of the source, which has its own statistics where the target has a
    Delta table or an ACID table. Empty when everything is as it must be."""
    silent = frozenset() if world.habits.facet_events else {"COLUMN_STATS_ACCURATE"}
    whole = replace(world.looker, recall=computed, ignored=MARKS | silent, early=True, of_places=True)
    source, shown = world.source_states(whole), world.target_states(whole)
    of_logs = replace(whole, ignored=whole.ignored | STATISTICS)
    for states, found_states in ((source, world.source_states(of_logs)), (shown, world.target_states(of_logs))):
        states |= {name: state for name, state in found_states.items() if world.is_delta(name) or world.is_acid(name)}
    quarantined = set(world.replica.tables.in_state(lifecycle.State.QUARANTINED))
    keeps = world.policy.drops == "keep"
    found = [f"{name} is quarantined without need" for name in sorted(quarantined) if not is_obstacle(world, name)]
    for name in sorted(source.keys() | shown.keys()):
        want, have = source.get(name, ABSENT), shown.get(name, ABSENT)
        if name not in quarantined and want != have and not (keeps and want is ABSENT):
            found.append(f"{name} shows {have} in place of {want}")
    return [*found, *database_differences(world), *function_differences(world), *copies_at_source(world, quarantined)]


def copies_at_source(world: World, quarantined: Collection[TableName]) -> list[str]:
    """Objects of tables whose files are copied that lie where the source's do."""
    found = []
    for at, stored in world.stored_at_target():
        name = world.side.admission.source_of(at)
        if name is None or name in quarantined or not world.side.admission.copies(name) or is_view(stored.table):
            continue
        locations = [location_of(thing) or "" for thing in (stored.table, *stored.partitions.values())]
        found += [f"{name} has {location}" for location in locations if location.startswith(SOURCE_PLACES)]
    return found


def live_states(world: World) -> dict[TableName, State]:
    """What the target shows of tables that are not quarantined: those stay as they happened to be."""
    quarantined = world.replica.tables.in_state(lifecycle.State.QUARANTINED)
    return {name: state for name, state in world.target_states().items() if name not in quarantined}


def is_obstacle(world: World, name: TableName) -> bool:
    return name.table in world.source.tables(name.database) and bool(kind_of(world.source.the_table(name).table))


def database_differences(world: World) -> list[str]:
    """A dropped database stays while something is in it; one that tables of others are renamed into may stay longer."""
    found = []
    there = set(world.target_store.databases())
    for name in world.source.databases():
        if world.side.admission.takes_database(name):
            at = world.side.admission.name_at_target(TableName(name)).database
            want = world.side.imaging.database(world.source.the_database(name), 0, None)
            if at not in there:
                found.append(f"database {at} is missing")
            elif name != "default" and canonical(world.target_store.the_database(at)) != canonical(want):
                found.append(f"database {at} is {world.target_store.the_database(at)}, not {want}")
    apart = {new.partition(".")[0] for new in world.policy.rename.values() if "." in new}
    for at in sorted(there - {"default"}):
        name = world.side.admission.source_of(TableName(at))
        if name is None or at in apart or world.target_store.tables(at):
            continue
        gone = name.database not in world.source.databases()
        if gone and world.side.admission.takes_database(name.database) and world.policy.drops == "follow":
            found.append(f"database {at} is there still")
    return found


def function_differences(world: World) -> list[str]:
    found = []
    for database in world.source.databases():
        for function in world.source.functions(database):
            name = TableName(database, function)
            if world.side.admission.takes_function(name):
                want = world.side.imaging.function(world.source.function(name))
                have = world.target_store.function(TableName(want.database, want.name))
                if have is None or not same_function(have, want):
                    found.append(f"function {name} is {have}, not {want}")
    for at in world.target_store.databases():
        for function in world.target_store.functions(at):
            name = world.side.admission.source_of(TableName(at, function))
            if name is not None and world.source.function(name) is None:
                found.append(f"function {name} is there still")
    return found


def incarnations(world: World) -> dict[State, State]:
    """What the target's tables and partitions are marked with."""
    marks = {}
    for database in world.target_store.databases():
        for table in world.target_store.tables(database):
            stored = world.as_listed(TableName(database, table))
            for key, thing in {(): stored.table, **stored.partitions}.items():
                marks[database, table, key] = (thing.parameters or {}).get(INCARNATION)
    return marks


def holes(world: World) -> list[str]:
    """Bridges where the files of every state that they pass over are known, and tables that were read again though the
    target had them. Where drops are not followed, a table that is read may have to take a kept one's place. A Delta
    table's name and columns are two places, so that one event that changes both is crossed by a bridge."""
    keeps = world.policy.drops == "keep"
    crossed = [
        f"{plan.tables} crosses a bridge: {plan.hops}"
        for window in world.windows
        for plan in window.plans
        if any(hop.bridge and not (keeps and is_read(hop)) and not changes_both(world, hop) for hop in plan.hops)
        and not plan.unvisitable
        and not world.unknown_states.intersection(plan.tables)
        and not (keeps and world.reread.intersection(plan.tables))
    ]
    if keeps:
        return crossed
    return crossed + [f"{name} was read again: {reason}" for name, reason in sorted(world.read_again)]


def changes_both(world: World, hop: Hop) -> bool:
    """Whether it brings a Delta table's state that differs from all before in the name and the columns."""
    names = [
        name for event, name in world.writer.renamed_and_altered.items() if hop.first_event <= event <= hop.to_event
    ]
    return isinstance(hop.operation, Rebuild) and any(map(world.side.admission.wanted_format, names))


def is_read(hop: Hop) -> bool:
    """Whether it brings a table that an exact read found: the mark says so."""
    return isinstance(hop.operation, Rebuild) and hop.operation.head.incarnation.startswith("r")


# Drawing stories

WRITES = st.builds(Write, st.sampled_from([*OPERATIONS, *RARER]), st.integers(0, 999))
FORMATS = ("plain", "plain", "plain", "delta", {"*.*": "delta", "d1.a": "plain", "d2.*": "plain"})
MIXED = ({"d2.*": "none"}, {"*.*": "none", "d1.*": "copy", "*.tmp": "none"}, {"d1.a": "none", "d1.p*": "none"})
"""`data` by table."""


def permitted(policy: Policy) -> Policy:
    """As the configuration permits it: tables that are Delta tables have files of their own, one for each."""
    return replace(policy, format="plain") if policy.data == "none" or policy.compact else policy


POLICIES = st.builds(
    Policy,
    st.just("dr"),
    st.just("hq"),
    include=st.sampled_from([("d*.*",), ("d1.*",), ("d1.*", "d2.a", "d2.v"), ("/d[12][.].*/",)]),
    exclude=st.sampled_from([(), ("*.tmp",), ("d1.b", "*.pv")]),
    rename=st.sampled_from([{}, {"d2": "d2_dr"}, {"d1": "m", "d2.c": "m.c2"}, {"d1.a": "d2.aa", "d1.tmp": "d1.temp"}]),
    properties=st.sampled_from([{}, {"made": "by calque", "v": ""}]),
    warehouse=st.just("file:/target"),
    external_base=st.sampled_from(["", "file:/target/outside"]),
    appends=st.sampled_from(["in_place", "new_directory"]),
    data=st.sampled_from(["copy", "copy", "copy", "none", *MIXED]),
    compact=st.sampled_from([{}, {}, {"d*.*": SmallFilesRule(2, 8)}]),
    drops=st.sampled_from(["follow", "follow", "keep"]),
    format=st.sampled_from(FORMATS),
).map(permitted)
AS_DELTA = st.builds(
    replace, POLICIES, format=st.just("delta"), compact=st.just({}), data=st.sampled_from(["copy", *MIXED])
)
"""Policies under which tables are Delta tables."""
PARTITIONS = st.sampled_from(
    [
        {},
        {"d*.*": "p >= '2'"},
        {"d1.*": "p IN ('1', '3') OR p IS NULL", "d2.*": "NOT (p BETWEEN '2' AND '3')"},
        {"d1.a": "p < '3'", "*.p*": "p <> '1'"},
    ]
)
WHERE = st.sampled_from(
    ["", "", "type = 'EXTERNAL_TABLE'", "type <> 'EXTERNAL_TABLE'", "type IN ('MANAGED_TABLE', 'EXTERNAL_TABLE')"]
)
SUBSETS = st.builds(replace, POLICIES, partitions=PARTITIONS, where=WHERE)
"""Policies that take some partitions and some tables alone."""
BETWEEN = st.lists(st.tuples(st.integers(1, 8), WRITES, st.booleans()), max_size=4).map(tuple)
NONE: st.SearchStrategy[tuple[int, ...]] = st.just(())
DEATHS = st.lists(st.integers(0, 30), max_size=3).map(tuple)


AT_FIRST = tuple(
    Write(operation, seed)
    for operation, seeds in (("create_database", (0, 1)), ("create_table", range(5)), ("add_partitions", range(2)))
    for seed in seeds
)
"""What no history is without."""


def stories(
    works: st.SearchStrategy[Action], policies: st.SearchStrategy[Policy] = POLICIES, *, seen: bool
) -> st.SearchStrategy[Story]:
    """Some writing, a look of capture, then work, again and again."""
    writes = st.lists(WRITES, max_size=7)
    captures = st.sampled_from([(Capture(),), (Capture(),), (Capture(),), ()])
    bursts = st.tuples(writes, captures, st.lists(works, min_size=1, max_size=2))
    return st.builds(
        Story,
        policies,
        st.sampled_from([3, 4]),
        writes.map(lambda drawn: (*AT_FIRST, *drawn)),
        st.lists(bursts, min_size=1, max_size=7).map(
            lambda drawn: tuple(action for burst in drawn for part in burst for action in part)
        ),
        st.just(seen),
        st.sampled_from([True, True, True, False]),
        st.sampled_from([True, True, False]),
        st.sampled_from([BATCH, 2, 1]),
    )


def works(
    between: st.SearchStrategy[tuple[tuple[int, Write, bool], ...]] = BETWEEN,
    deaths: st.SearchStrategy[tuple[int, ...]] = NONE,
    others: Sequence[Action] = (Wait(), Release()),
) -> st.SearchStrategy[Action]:
    """Windows, reads and captures, with what comes between their calls, and `others`."""
    meanwhile = st.builds(Meanwhile, between, deaths)
    windows = st.builds(Window, st.sampled_from([100, 100, 50, 30]), meanwhile)
    return st.one_of(
        windows,
        windows,
        windows,
        st.builds(Read, meanwhile),
        st.builds(Capture, st.sampled_from([None, None, 1, 3]), st.builds(Meanwhile, between)),
        st.sampled_from(others),
    )
