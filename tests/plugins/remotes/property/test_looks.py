"""Looks at a catalog without a log: what the log of our own says is what the catalog had at some look, and nothing
else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from calque.core.events import decode
from calque.core.events.keys import entry_of
from calque.core.policy.admit import Admission
from calque.core.states.fold import same_run
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.journal import LOOKED, Event, EventKind
from calque.model.names import EventId, TableName, partition_name
from calque.model.policy import Policy
from calque.plugins.remotes.adapters.polled_log import PolledLog
from calque.plugins.remotes.engine.catalog_poller import CatalogPoller
from support.memory.remote_catalog import MemoryCatalog
from support.worlds.worlds import WorldClock

LAW = settings(max_examples={"check": 10, "prove": 20_000}.get(settings.get_current_profile_name(), 45), deadline=None)
POLICY = Policy("links", "far", include=("d1.*", "d2.a", "d2.p"), data="none")
DATABASES, PLAIN, KEYED = ("d1", "d2"), ("a", "b"), ("p", "q")
State = tuple[Table, Mapping[str, Partition]] | None


def storage(writer: random.Random, place: str) -> Storage:
    columns = tuple(Column(f"c{number}", "int") for number in range(writer.randint(1, 3)))
    parameters = {"x": str(writer.randint(0, 9)), "y": "1"}
    return Storage(columns, f"file:/far/{place}", serde=SerDe(parameters=parameters), parameters={})


def random_table(writer: random.Random, name: TableName) -> Table:
    keys = (Column("ds", "string"),) if name.table in KEYED else ()
    parameters = {"v": str(writer.randint(0, 3))}
    place = storage(writer, f"{name.database}/{name.table}")
    return Table(
        name.table, name.database, storage=place, partition_keys=keys, parameters=parameters, type="MANAGED_TABLE"
    )


def write(catalog: MemoryCatalog, writer: random.Random) -> None:
    """One change of the catalog."""
    database = writer.choice(DATABASES)
    name = TableName(database, writer.choice(PLAIN + KEYED))
    if catalog.database(database) is None:
        catalog.put_database(Database(database, parameters={}))
        return
    if writer.random() < 0.03:
        catalog.drop_database(database)
        return
    table, choice = catalog.table(name), writer.random()
    if table is None or choice < 0.1:
        catalog.create_table(random_table(writer, name))
    elif choice < 0.2:
        catalog.drop_table(name)
    elif choice < 0.5 or not table.partition_keys:
        catalog.alter_table(random_table(writer, name))
    else:
        values = [(str(writer.randint(0, 5)),) for _ in range(writer.randint(1, 4))]
        if choice < 0.75:
            catalog.put_partitions(
                name, [Partition(one, *name, storage=storage(writer, str(one)), parameters={}) for one in values]
            )
        else:
            catalog.drop_partitions(name, [partition_name(["ds"], one) for one in values])


def state_of(catalog: MemoryCatalog, name: TableName) -> State:
    table = catalog.table(name)
    return None if table is None else (table, catalog.partitions(table))


def applied(state: State, event: Event) -> State:
    """What an event makes of its table, by the most naive reading of it."""
    entry, kind = entry_of(event), entry_of(event).keys.kind
    if kind is EventKind.DROP_TABLE:
        return None
    if kind is EventKind.CREATE_TABLE:
        return decode.table_after(event), {}
    assert state is not None
    table, partitions = state
    if kind is EventKind.ALTER_TABLE:
        assert decode.table_before(event) == table
        return decode.table_after(event), partitions
    if kind is EventKind.DROP_PARTITIONS:
        assert set(entry.keys.partitions) <= partitions.keys()
        return table, {name: one for name, one in partitions.items() if name not in entry.keys.partitions}
    new = dict(zip(entry.keys.partitions, decode.partitions_after(event), strict=True))
    assert kind in (EventKind.ADD_PARTITIONS, EventKind.ALTER_PARTITIONS)
    assert (new.keys() <= partitions.keys()) is (kind is EventKind.ALTER_PARTITIONS)
    return table, {**partitions, **new}


@dataclass(slots=True)
class FailingCatalog(MemoryCatalog):
    """Goes away after so many more calls."""

    answers: int = 1_000_000

    def _answer(self) -> None:
        self.answers -= 1
        self.away = self.answers < 0
        MemoryCatalog._answer(self)


@LAW
@given(st.integers(0, 2**32), st.booleans())
def test_the_log_says_of_each_table_the_states_that_looks_found_and_no_others(seed: int, has_versions: bool) -> None:
    writer, catalog = random.Random(seed), FailingCatalog(has_versions=has_versions)
    admission, clock = Admission(POLICY), WorldClock()
    names = [TableName(database, table) for database in DATABASES for table in PLAIN + KEYED]
    with TemporaryDirectory() as folder:
        log = PolledLog(Path(folder) / "looks.sqlite")
        looks: list[tuple[EventId, Mapping[TableName, State]]] = []
        for number in reversed(range(writer.randint(2, 12))):
            for _ in range(writer.randint(0, 15)):
                write(catalog, writer)
            there = {name: state_of(catalog, name) for name in names}
            catalog.answers = writer.randint(0, 20) if number and writer.random() < 0.3 else 1_000_000
            try:
                CatalogPoller(catalog, log, lambda: [admission], clock).poll()
            except Unavailable:
                assert catalog.answers < 0
            catalog.answers = 1_000_000
            looks.append((log.current(), there))
            clock.sleep(writer.choice([0, 1]))
        calls = catalog.calls
        assert CatalogPoller(catalog, log, lambda: [admission], clock).poll() == log.current()  # Nothing is new.
        if has_versions:
            databases = {name.database for name, table in looks[-1][1].items() if table is not None}
            keyed = [name for name, table in looks[-1][1].items() if table is not None and name.table in KEYED]
            assert catalog.calls - calls <= 1 + 2 * len({*databases, *catalog.databases()}) + len(keyed)
        events = log.read(0, 1_000_000)
        assert [event.event_id for event in events] == list(range(1, log.current() + 1))
        for name in names:
            of_table = [event for event in events if TableName(event.database, event.table) == name]
            assert admission.takes(name) or not of_table
            state = check(name, of_table, looks)
            if admission.takes(name):
                assert state == looks[-1][1][name]


def check(name: TableName, events: list[Event], looks: list[tuple[EventId, Mapping[TableName, State]]]) -> State:
    """Raises `AssertionError` unless the table is after each step as the look had it that the step is of, or gone
    where it was made anew. Gives the last state."""
    state: State = None
    entries = [entry_of(event) for event in events]
    joined = [same_run(one, after) for one, after in pairwise(entries)]
    for event, goes_on in zip_longest(events, joined, fillvalue=False):
        assert isinstance(event, Event)
        looked = next(there[name] for head, there in looks if head >= event.event_id)
        state = looked if event.event_type == LOOKED else applied(state, event)
        if not goes_on:
            assert state is None or state == looked
    return state
