"""Whatever comes from outside is applied, or sets its own object aside, and the next table goes on.

Definitions, parameters, statistics, files, messages and queries are made at random (`support.sources.foreign`), and
come to a source in memory beside a table and a function of somebody else, which have to arrive. What is set aside has
a reason of its own: calque itself has no defect in any of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from calque.core.defects import DEFECT
from calque.core.events.decode import bounded
from calque.core.records.lifecycle import State
from calque.engine.verify.verify import verify
from calque.errors import Refused
from calque.model.facets import Statistics
from calque.model.hive import Column, Database, Function, SerDe, Storage, Table
from calque.model.journal import Event
from calque.model.ledger import TableState, state_key
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.page.run.routes import MOST_ROWS, query_of
from calque.ports import Conflict
from calque.ports.forwarding import ForwardingCatalogReader, ForwardingEventLog
from support.memory.metastore import HIVE_3, HIVE_4
from support.sources import foreign
from support.sources.foreign import DEFINITIONS, KINDS, Definition, Foreign
from support.worlds.worlds import INPUT, OUTPUT, SERDE, InlineExecutor, World

AT_ONCE = 20
"""Inputs of one world."""
EXAMPLES = {"check": 4, "prove": 5_000}
"""Worlds: in `prove` they come to a hundred thousand inputs, otherwise to two thousand."""
POLICY = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target")
POLICIES = (
    POLICY,
    replace(POLICY, partitions={"d1.t*": "p >= '5'"}, rename={"d1.good": "d1.better"}),
    replace(
        POLICY,
        appends="new_directory",
        atomicity="rows",
        properties={"x": "y"},
        where="param('x') IS NULL OR owner = 'me'",
    ),
    replace(POLICY, format={"d1.*": "delta"}),
)
GOOD = TableName("d1", "good")
SETTLED = (State.LIVE, State.QUARANTINED)


class ForeignSource:
    """What a server says that is not as it should be, by the names of tables."""

    def __init__(self) -> None:
        self.definitions: dict[str, Definition] = {}
        self.messages: dict[str, Foreign] = {}
        self.statistics: dict[str, Statistics] = {}


class ForeignLog(ForwardingEventLog):
    def __init__(self, world: World, said: ForeignSource) -> None:
        super().__init__(world.source_side.log)
        self.world, self.said = world, said

    def read(self, after: int, limit: int) -> Sequence[Event]:
        return [bounded(self.garbled(event), 1 << 20) for event in super().read(after, limit)]

    def garbled(self, event: Event) -> Event:
        name = event.table or ""
        if (one := self.said.messages.get(name)) is not None:
            return foreign.garbled(one.rng(), event)
        if (change := self.said.definitions.get(name)) is not None:
            there = self.world.source.the_table(TableName(event.database, name)).table
            return foreign.with_definition(event, change, there)
        return event


class ForeignReader(ForwardingCatalogReader):
    def __init__(self, world: World, said: ForeignSource) -> None:
        super().__init__(world.source_side.catalog)
        self.said = said

    def changed(self, table: Table) -> Table:
        change = self.said.definitions.get(table.name)
        return table if change is None else change(table)

    def table(self, name: TableName) -> Table | None:
        found = super().table(name)
        return None if found is None else self.changed(found)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        return {name: self.changed(table) for name, table in super().headers(database, names).items()}

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        if name.table in self.said.statistics:
            return self.said.statistics[name.table]
        return super().table_statistics(name, columns)


class ForeignWorld(World):
    """No reader looks: what is foreign has no right state."""

    def __init__(self, seed: int) -> None:
        habits = replace(HIVE_4 if seed % 2 else HIVE_3, any_names=True)
        super().__init__(seed, habits, POLICIES[seed])
        self.target_store.habits = replace(HIVE_4, any_names=True)
        self.said = ForeignSource()
        log, reader = ForeignLog(self, self.said), ForeignReader(self, self.said)
        self.source_side = replace(self.source_side, log=log, catalog=reader)
        self.gatherer = type(self.gatherer)(self.source_side, self.side.admission.takes)
        self.capture = type(self.capture)(self.source_side, self.begin, self.gatherer)
        self.replica = self.new_replica()
        self.source.create_database(Database("d1"))
        self.make("good")
        self.source.create_function(Function("good_f", "d1", "x.Y"))

    def note(self, *_: object) -> None: ...

    def looked(self, method: str) -> None: ...

    def append_log(self, limit: int | None = None) -> None:
        """As `World`, through the log that says what is foreign."""
        from calque.core.events.rows import rows_of_events

        last = self.capture.reached()
        events = list(self.source_side.log.read(last, 10_000))
        if events:
            self.capture.append(rows_of_events(events[:limit]))

    def make(self, name: str, key: str = "") -> None:
        location = f"file:/source/d1.db/{name}"
        storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        keys = (Column("p", key),) if key else ()
        self.storage.write(f"{location}/f", b"1\n")
        self.source.create_table(Table(name, "d1", "me", storage=storage, partition_keys=keys, parameters={}))

    def touch(self, name: str) -> None:
        table = self.source.the_table(TableName("d1", name)).table
        self.source.alter_table(
            TableName("d1", name), replace(table, parameters={**(table.parameters or {}), "k": "1"})
        )

    def settled(self) -> None:
        """Until the position is the source's newest event, and all tables are live or set aside."""
        for _ in range(100):
            self.capture_all()
            self.work()
            waiting = [name for name, row in self.replica.tables.rows.items() if row.state not in SETTLED]
            at_head = self.replica.epochs.position() == self.source.current()
            if not waiting and at_head and not self.replica.tables.positions:
                return
            self.clock.now += 40_000_000_000
        raise AssertionError(f"{self.replica.epochs.position()} of {self.source.current()}: {self.replica.tables.rows}")


def come(world: ForeignWorld, one: Foreign, number: int) -> None:
    """The object of that number, with what is foreign about it."""
    name, rng = f"t{number}", one.rng()
    if one.what == "function":
        world.source.create_function(Function(name, "d1", "x.Y", resources=foreign.resources(rng)))
        return
    if one.what == "database":
        world.source.create_database(Database(f"d9{name}", parameters=foreign.parameters(rng), location=None))
        return
    if one.what in DEFINITIONS:
        world.said.definitions[name] = lambda table: DEFINITIONS[one.what](one.rng(), table)
        location = f"file:/source/d1.db/{name}"
        if one.what == "iceberg":
            put(world, name, foreign.lake(rng, location))
        elif one.what == "delta":
            put(world, name, foreign.commits(rng))
    elif one.what == "message":
        world.said.messages[name] = one
    elif one.what == "statistics":
        world.said.statistics[name] = foreign.statistics(rng)
    elif one.what == "files":
        put(world, name, foreign.files(rng))
    world.make(name, rng.choice(foreign.KEY_TYPES) if one.what == "partition" else "")
    if one.what == "partition":
        table = world.source.the_table(TableName("d1", name)).table
        world.storage.write(f"file:/source/d1.db/{name}/p=1/f", b"1\n")
        world.source.add_partitions(TableName("d1", name), [foreign.partition(rng, table)])
    if rng.random() < 0.5:
        world.touch(name)


def put(world: ForeignWorld, name: str, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        world.storage.write(f"file:/source/d1.db/{name}/{path}", content)


def reasons(world: ForeignWorld) -> dict[tuple[str, ...], str]:
    rows = world.ledger.tables().values()
    return {state_key(row): row.reason for row in rows if row.state is TableState.QUARANTINED}


@settings(max_examples=EXAMPLES.get(settings.get_current_profile_name(), 100))
@given(
    st.integers(0, 3),
    st.lists(st.builds(Foreign, st.sampled_from(KINDS), st.integers(0, 10**6)), min_size=AT_ONCE, max_size=AT_ONCE),
)
def test_what_is_foreign_is_applied_or_sets_its_own_object_aside(seed: int, inputs: Sequence[Foreign]) -> None:
    logging.disable(logging.CRITICAL)
    world = ForeignWorld(seed)
    begins_with = AT_ONCE // 2 if seed >= 2 else 0
    for number, one in enumerate(inputs):
        if number == begins_with:
            world.open()
            world.settled()
        try:
            come(world, one, number)
        except (Refused, Conflict):
            continue
    world.make("next")
    world.touch("good")
    world.settled()
    states = {name: status.state for name, status in world.replica.tables.rows.items()}
    assert (states[GOOD], states[TableName("d1", "next")]) == (State.LIVE, State.LIVE)
    good = world.target_store.the_table(world.side.admission.name_at_target(GOOD)).table
    assert (good.parameters or {})["k"] == "1"
    assert world.target_store.function(TableName("d1", "good_f")) is not None
    assert {key: reason for key, reason in reasons(world).items() if DEFECT in reason} == {}
    if seed % 2:
        verification = verify(world.source_side, world.side, patience=0.0, pool=lambda *_: InlineExecutor())
        assert [one for one in verification.set_aside if DEFECT in one.reason] == []


# HTTP

NUMBERS = (
    "0",
    "-1",
    "inf",
    "-inf",
    "nan",
    "1e400",
    "1e308",
    "9" * 5_000,
    "0x1",
    "1_0",
    "٣",
    "",
    " ",
    "%",
    "true",
    "1e-9",
)
texts = st.one_of(st.sampled_from([*NUMBERS, *foreign.VALUES]), st.text(max_size=20))


def asked(**query: str) -> Request:
    from urllib.parse import urlencode

    encoded = urlencode({key: value.encode("utf-8", "replace") for key, value in query.items()})
    scope: dict[str, Any] = {"type": "http", "query_string": encoded.encode("latin-1"), "headers": []}
    return Request(scope)


@given(texts, texts, texts, texts)
def test_any_query_is_answered_or_refused(offset: str, limit: str, text: str, state: str) -> None:
    try:
        query = query_of(asked(offset=offset, limit=limit, q=text, state=state, target=text))
    except Refused:
        return
    assert query.offset >= 0
    assert 1 <= query.limit <= MOST_ROWS
