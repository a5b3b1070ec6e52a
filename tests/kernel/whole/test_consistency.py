"""`consistency = "database"`: a reader of all tables of a database sees what the source's database showed, in order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from calque.app import APP
from calque.config.conflicts import unsupported
from calque.core.images.image import STATE
from calque.core.records.lifecycle import State
from calque.model.hive import Column, Database, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from support.judges.proof import Past, touched
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.sources.writers import OPERATIONS, RARER
from support.worlds.histories import (
    DEATHS,
    HOLES,
    PLAIN,
    Action,
    Capture,
    Meanwhile,
    Player,
    Read,
    Reread,
    Story,
    Window,
    Write,
    differences,
)
from support.worlds.worlds import ABSENT, World

WHOLE = replace(PLAIN, consistency="database")
REPLICATED = sorted({*OPERATIONS, *RARER} - {"make_acid"})


class WholeWorld(World):
    """A world whose reader looks at all tables of a database at once."""

    def __init__(self, seed: int, habits: ServerHabits, policy: Policy) -> None:
        self.databases: dict[str, Past] = {}
        self.complaints: list[str] = []
        self.noted = 0
        self.whole_seen_at = (-1, -1)
        super().__init__(seed, habits, policy)

    def note(self) -> None:
        """What one call changes on several tables, it changes in the order of its events."""
        super().note()
        after = self.source_states()
        events = self.source.events(self.noted)
        self.noted = self.source.current()
        order = touched(events)
        for database in {name.database for name in (*after, *order)} | self.databases.keys():
            whole = {name: state for name, state in after.items() if name.database == database}
            of_it = [name for name in order if name.database == database]
            self.databases.setdefault(database, Past()).note(of_it, whole, len(events))

    def looked(self, method: str) -> None:
        super().looked(method)
        now = (self.target_store.current(), self.storage.changes)
        if method == "publish" or now == self.whole_seen_at:  # Parts of an append are seen, as at the source.
            return
        self.whole_seen_at = now
        with self.uninterrupted():
            states = self.target_states()
        bridged = {one.table.database for one in self.side.announced.waiting()}
        for database, known in self.databases.items():
            if database in bridged or self.says(database):
                continue
            state = {name: s for name, s in states.items() if name.database == database and s is not ABSENT}
            if not known.see(state):
                self.complaints.append(f"after {method} in window {len(self.windows)}, {database} shows {state}")

    def says(self, database: str) -> str:
        at = self.side.admission.name_at_target(TableName(database)).database
        if at not in self.target_store.databases():
            return ""
        return (self.target_store.the_database(at).parameters or {}).get(STATE, "")


class WholePlayer(Player):
    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.world: WholeWorld = WholeWorld(0, HIVE_3 if story.hive == 3 else HIVE_4, story.policy)
        self.world.between = self.come_between
        self.world.storage.before = self.storage_called
        self.world.fate = self.fate


def play(story: Story) -> WholeWorld:
    player = WholePlayer(story)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return player.world


# Single cases

A, B, C = TableName("d1", "a"), TableName("d1", "b"), TableName("d1", "c")


class Case:
    """Plain tables a and b of one database, shown by the target unless it is `new`."""

    def __init__(self, policy: Policy = WHOLE, *, new: bool = False) -> None:
        self.world = WholeWorld(0, HIVE_4, policy)
        self.source = self.world.writer.source
        self.source.create_database(Database("d1", parameters={}))
        for name in (A, B):
            self.create(name)
        self.world.begin = self.world.capture.after = self.world.source.current()
        self.world.gatherer.resume(self.world.begin, self.world.begin)
        self.world.open()
        if not new:
            self.world.settle()

    def create(self, name: TableName, *keys: str) -> None:
        storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
        columns = tuple(Column(key, "string") for key in keys)
        table = Table(name.table, name.database, storage=storage, partition_keys=columns, parameters={})
        self.source.create_table(table)

    def table(self, name: TableName) -> Table:
        return self.world.source.the_table(name).table

    def insert(self, name: TableName) -> None:
        self.source.insert(name, [self.world.writer.put_file(location_of(self.table(name)) or "")])
        self.world.capture_all()

    def unseen_insert(self, name: TableName) -> None:
        """One whose files change once more before anybody looks at them."""
        self.source.insert(name, [self.world.writer.put_file(location_of(self.table(name)) or "")])
        self.world.append_log()
        self.world.writer.put_file(location_of(self.table(name)) or "")

    def alter(self, name: TableName, **parameters: str) -> None:
        table = self.table(name)
        self.source.alter_table(name, replace(table, parameters={**(table.parameters or {}), **parameters}))
        self.world.capture_all()

    def hops(self) -> list[tuple[str, int]]:
        """Of a window: the table and the event of each hop, in the order in which the plans have them."""
        self.world.window()
        plans = self.world.windows[-1].plans
        return [(hop.operation.table.table, hop.to_event) for plan in plans for hop in plan.hops]

    def says(self) -> str:
        return self.world.says("d1")

    def rebasing(self) -> list[tuple[str, ...]]:
        return [epoch.rebasing for epoch in self.world.ledger.epochs()]


def test_stops_are_skipped_only_where_the_skipped_events_are_of_the_same_table() -> None:
    case = Case()
    first = case.world.source.current()
    for name in (A, A, B, A):
        case.insert(name)
    assert case.hops() == [("a", first + 2), ("b", first + 3), ("a", first + 4)]


def test_with_table_consistency_each_table_goes_to_the_end_by_itself() -> None:
    case = Case(PLAIN)
    first = case.world.source.current()
    for name in (A, A, B, A):
        case.insert(name)
    assert sorted(case.hops()) == [("a", first + 4), ("b", first + 3)]


def test_a_rename_across_databases_makes_one_chain_of_both() -> None:
    case = Case()
    case.source.create_database(Database("d2", parameters={}))
    case.create(TableName("d2", "x"))
    case.world.capture_all()
    case.world.settle()
    first = case.world.source.current()
    case.insert(A)
    case.source.alter_table(B, replace(case.table(B), database="d2"))
    case.insert(TableName("d2", "x"))
    assert case.hops() == [("a", first + 1), ("b", first + 2), ("x", first + 3)]


def test_a_database_says_that_it_is_bootstrapping_until_the_first_epoch() -> None:
    case = Case(new=True)
    assert case.says() == "bootstrapping"
    case.world.read()
    assert case.says() == "bootstrapping"
    case.world.window()
    assert (case.says(), case.rebasing()) == ("", [()])


def test_a_database_that_comes_during_a_bootstrap_says_so_too() -> None:
    case = Case(new=True)
    case.source.create_database(Database("d2", parameters={}))
    case.world.capture_all()
    case.world.window()
    assert case.world.says("d2") == "bootstrapping"
    case.world.settle()
    assert case.world.says("d2") == ""


def test_a_table_that_is_read_again_leaves_alone_and_its_database_says_so_until_it_is_back() -> None:
    case = Case()
    case.world.replica.reads.reread(lambda name: name == A, "the test wants it", {State.LIVE})
    assert case.says() == "rebasing"
    case.insert(B)
    case.insert(A)
    assert case.hops() == [("b", case.world.source.current() - 1)]
    assert case.says() == "rebasing"
    case.world.settle()
    assert case.says() == ""
    case.insert(B)
    case.world.settle()
    assert case.rebasing() == [(), ("d1",), ("d1",), ()]


def test_the_flag_stands_before_a_chain_without_the_table_goes_on() -> None:
    case = Case()
    case.create(C)
    case.world.capture_all()
    case.world.settle()
    first = case.world.source.current()
    case.insert(B)
    case.alter(A, v="1")
    case.source.alter_table(A, replace(case.table(A), type="VIRTUAL_VIEW", view_original_text="SELECT 1"))
    case.insert(C)
    case.insert(B)
    before = case.world.target_store.current()
    assert case.hops() == [("b", first + 1), ("c", first + 4), ("b", first + 5)]
    types = [event.event_type for event in case.world.target_store.events(before)]
    assert types[0] == "ALTER_DATABASE"
    assert case.world.replica.tables.in_state(State.UNKNOWN) == [A]
    assert case.world.replica.tables.rows[B].state == State.LIVE
    case.world.settle()
    assert (case.says(), case.world.complaints, differences(case.world)) == ("", [], [])


def test_the_flag_stands_before_a_chain_goes_on_whose_database_a_table_came_to_from_elsewhere() -> None:
    """From a database that the target does not take. It is read after the window."""
    case = Case()
    case.source.create_database(Database("elsewhere", parameters={}))
    came = TableName("elsewhere", "c")
    case.create(came)
    case.source.alter_table(came, replace(case.table(came), database="d1"))
    case.alter(A, k="v")
    before = len(case.rebasing())
    case.world.settle()
    assert case.world.complaints == []
    assert ("d1",) in case.rebasing()[before:]
    assert case.says() == ""
    assert C in case.world.target_states()


def test_the_flag_stands_before_a_chain_goes_on_through_whose_database_a_table_passed_that_the_target_lacks() -> None:
    """Nothing is left of it to be read at the window's end, and the database showed it beside others before."""
    case = Case()
    case.source.create_database(Database("elsewhere", parameters={}))
    came = TableName("elsewhere", "c")
    case.create(came)
    case.world.capture_all()
    case.world.settle()
    case.source.alter_table(came, replace(case.table(came), database="d1"))
    case.alter(A, k="v")
    case.alter(B, k="v")
    case.source.drop_table(C)
    case.world.capture_all()
    before = len(case.rebasing())
    case.world.settle()
    assert case.world.complaints == []
    assert case.rebasing()[before:] == [("d1",)]
    assert case.says() == ""


def test_a_table_that_was_shown_and_is_quarantined_keeps_its_database_rebasing() -> None:
    case = Case()
    case.alter(A, transactional="true")
    case.world.settle()
    assert (case.says(), case.rebasing()[-1]) == ("rebasing", ("d1",))
    first = case.world.source.current()
    case.create(C)
    case.insert(B)
    case.insert(C)
    assert case.hops() == [("c", first + 1), ("b", first + 2), ("c", first + 3)]
    case.source.drop_table(A)
    case.world.capture_all()
    case.world.settle()
    assert case.says() == ""


def test_a_table_that_was_never_shown_is_no_part_of_what_its_database_promises() -> None:
    case = Case()
    storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
    case.source.create_table(Table("c", "d1", storage=storage, parameters={"transactional": "true"}))
    case.world.capture_all()
    case.world.settle()
    assert case.world.replica.tables.in_state(State.QUARANTINED) == [C]
    assert case.says() == ""


def test_where_files_stay_unknown_only_their_table_is_read() -> None:
    case = Case()
    case.insert(B)
    case.unseen_insert(A)
    case.insert(B)
    case.world.evidence.append([], case.world.source.current())
    case.world.window()
    waiting = case.world.replica.tables.in_state(State.WAITING)
    assert (waiting, case.says()) == ([A, B], "")
    for _ in range(2):
        case.world.clock.now += 40_000_000_000
        case.world.window()
    assert case.world.replica.tables.in_state(State.UNKNOWN) == [A]
    assert case.world.replica.tables.rows[B].state == State.LIVE
    assert case.says() == "rebasing"
    case.world.settle()
    assert (case.says(), case.world.complaints, differences(case.world)) == ("", [], [])


def test_a_flag_that_a_crash_left_is_taken_back() -> None:
    case = Case()
    case.world.replica.databases.say("d1", "rebasing")
    case.world.restart()
    case.world.window()
    assert case.says() == ""


def test_a_database_that_is_not_ours_says_nothing_but_its_epochs_do() -> None:
    world = WholeWorld(0, HIVE_4, WHOLE)
    world.target_store.create_database(Database("d1", parameters={"theirs": "1"}))
    world.writer.source.create_database(Database("d1", parameters={}))
    storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
    world.writer.source.create_table(Table("a", "d1", storage=storage, parameters={}))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    world.replica.reads.reread(lambda name: name == A, "the test wants it", {State.LIVE})
    world.settle()
    assert world.target_store.the_database("d1").parameters == {"theirs": "1"}
    assert [epoch.rebasing for epoch in world.ledger.epochs()] == [(), ("d1",)]


def test_with_table_consistency_databases_say_nothing() -> None:
    case = Case(PLAIN, new=True)
    assert case.says() == ""
    case.world.settle()
    case.world.replica.reads.reread(lambda name: name == A, "the test wants it", {State.LIVE})
    case.world.settle()
    assert (case.says(), {*case.rebasing()}) == ("", {()})


def refusals(tmp_path: Path, setting: str) -> list[str]:
    file = tmp_path / "calque.toml"
    text = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[targets.dr]\nconsistency = "database"\n'
    file.write_text(f'{text}metastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n{setting}\n')
    return [refusal.what for refusal in unsupported(APP.load(str(file)))]


def test_tables_that_are_kept_are_in_no_state_of_the_database(tmp_path: Path) -> None:
    assert refusals(tmp_path, 'drops = "follow"') == []
    [what] = refusals(tmp_path, 'drops = "keep"')
    assert what == 'targets.dr: consistency = "database" and drops = "keep" exclude each other'


# Histories

REPLICATED = sorted({*OPERATIONS, *RARER} - {"make_acid"})
WRITES = st.builds(Write, st.sampled_from([*REPLICATED, *OPERATIONS]), st.integers(0, 999))
POLICIES = st.sampled_from([WHOLE, replace(WHOLE, rename={"d1": "m"}), replace(WHOLE, appends="new_directory")])
BEGUN = (*(Write("create_database", seed) for seed in range(4)), *(Write("create_table", seed) for seed in range(4)))
BETWEEN = st.lists(st.tuples(st.integers(1, 8), WRITES, st.booleans()), max_size=4).map(tuple)
HISTORIES = settings(
    max_examples={"check": 40, "prove": 20_000}.get(settings.get_current_profile_name(), 100),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def stories(works: st.SearchStrategy[Action]) -> st.SearchStrategy[Story]:
    """Two databases with tables; the target shows them in most. Then some writing and some work, again and again."""
    before = st.lists(WRITES, max_size=12).map(lambda writes: (*BEGUN, *writes))
    burst = st.tuples(st.lists(WRITES, max_size=8), st.lists(works, min_size=1, max_size=3))
    bursts = st.lists(burst, max_size=6).map(lambda drawn: tuple(a for some, work in drawn for a in (*some, *work)))
    shown = st.sampled_from([(Capture(), Read(), Window()), (Capture(), Read(), Window()), ()])
    actions = st.tuples(shown, bursts).map(lambda both: (*both[0], *both[1]))
    return st.builds(Story, POLICIES, st.sampled_from([3, 4]), before, actions, st.booleans())


def works(deaths: st.SearchStrategy[tuple[int, ...]], percents: tuple[int, ...]) -> st.SearchStrategy[Action]:
    meanwhile = st.builds(Meanwhile, BETWEEN, deaths)
    return st.one_of(
        st.builds(Window, st.sampled_from(percents), meanwhile),
        st.builds(Read, meanwhile),
        st.builds(Capture, st.none(), st.builds(Meanwhile, BETWEEN)),
        st.sampled_from(HOLES),
    )


PASSED_THROUGH = Story(
    WHOLE,
    3,
    BEGUN,
    (
        Capture(),
        Read(),
        Window(),
        Write("create_partitioned_view", 0),
        Window(meanwhile=Meanwhile(((1, Write("rename_table", 588), False), (1, Write("drop_database", 899), False)))),
        Reread("d2"),
    ),
    seen=True,
)
"""A view that is read again is renamed into a database and goes with it, table by table."""


@HISTORIES
@given(stories(works(st.just(()), (100, 100, 50, 30))))
@example(PASSED_THROUGH)
def test_a_reader_of_all_tables_sees_states_of_the_database_in_their_order(story: Story) -> None:
    world = play(story)
    assert world.complaints == []
    assert differences(world) == []


@settings(HISTORIES, max_examples=HISTORIES.max_examples // 4)
@given(stories(works(DEATHS, (100,))))
def test_and_so_it_does_when_calque_dies(story: Story) -> None:
    world = play(story)
    assert world.complaints == []
    assert differences(world) == []
