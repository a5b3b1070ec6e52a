"""The live proof: what a reader sees at a target while the target's event id stays the same, the source showed before,
and what it sees only advances. The same at real servers and in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.core.events.keys import keys_of
from calque.core.images.image import STATE
from calque.core.policy.admit import Admission
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.journal import Event
from calque.model.names import EventId, TableName
from calque.ports import CatalogReader, EventLog
from support.worlds.worlds import ABSENT, History, Looker, State

Together = dict[TableName, State]
"""All tables of a database that are there."""
MOST = 1000
"""Partitions of a table."""


@dataclass(frozen=True, slots=True)
class Found:
    """A table as it was read."""

    table: Table
    partitions: Sequence[Partition]


@dataclass(frozen=True, slots=True)
class Look:
    """What all tables show at one event id of the target, by their names at the source. `contents` are files by
    location, and `vague` the databases that say that they promise no cut across their tables just now."""

    event_id: EventId
    tables: Mapping[TableName, Found]
    contents: Mapping[str, State]
    vague: frozenset[str]

    def states(self, looker: Looker) -> Together:
        """Definitions, partitions and files, as a target shows them."""
        whole = replace(looker, content=self.contents.get)
        return {name: whole.target(name, found.table, list(found.partitions)) for name, found in self.tables.items()}

    def source_states(self, looker: Looker) -> Together:
        """The policy's images of them, where they were read at the source."""
        whole = replace(looker, content=self.contents.get)
        return {name: whole.source(name, found.table, list(found.partitions)) for name, found in self.tables.items()}


def read_tables(catalog: CatalogReader, database: str) -> dict[str, Found]:
    """All tables of a database, in two calls and one more for each that has partitions."""
    found = {}
    for name, table in catalog.headers(database, catalog.tables(database)).items():
        partitions = catalog.few_partitions(table, MOST) if is_partitioned(table) else {}
        assert partitions is not None
        found[name] = Found(table, tuple(partitions.values()))
    return found


def places_of(tables: Iterable[Found]) -> set[str]:
    """Where the tables' files are."""
    return {
        location_of(thing) or ""
        for found in tables
        if not is_view(found.table)
        for thing in (found.partitions if is_partitioned(found.table) else (found.table,))
    }


class Reader:
    """Reads all tables of some databases of the source at a target, again and again."""

    def __init__(
        self,
        catalog: CatalogReader,
        log: EventLog,
        admission: Admission,
        databases: Collection[str],
        content: Callable[[str], State],
    ) -> None:
        self.catalog, self.log, self.content = catalog, log, content
        self.databases = {name: admission.name_at_target(TableName(name)).database for name in databases}
        self.event_id: EventId | None = None

    def look(self) -> Look | None:
        """None where something changed meanwhile: the event id, or files, of which no event tells."""
        before = self.log.current() if self.event_id is None else self.event_id
        tables, vague = {}, set()
        for name, at in self.databases.items():
            database = self.catalog.database(at)
            if database is not None:
                tables |= {TableName(name, table): found for table, found in read_tables(self.catalog, at).items()}
                if (database.parameters or {}).get(STATE):
                    vague.add(name)
        places = places_of(tables.values())
        try:
            contents, again = ({place: self.content(place) for place in places} for _ in range(2))
        except FileNotFoundError:
            contents, again = {}, {"": ABSENT}
        self.event_id = self.log.current()
        if before != self.event_id or contents != again:
            return None
        return Look(before, tables, contents, frozenset(vague))


@dataclass
class Past:
    """Every state that a database of the source was in, between the events of one call too; how far readers got."""

    states: list[Together] = field(default_factory=lambda: [{}])
    reached: int = 0

    def note(self, order: Sequence[TableName], whole: Together, events: int) -> None:
        """After a call of so many events, which touched the tables in this order: what it changes on several tables, it
        changes in the order of its events."""
        last = {name: place for place, name in enumerate(order)}
        steps = [order] if events == 1 else [[name] for name in sorted(last, key=lambda name: last[name])]
        for names in [*steps, [*whole, *self.states[-1]]]:
            changed = {name: whole.get(name, ABSENT) for name in names if name in whole or name in self.states[-1]}
            now = {name: state for name, state in {**self.states[-1], **changed}.items() if state is not ABSENT}
            if now != self.states[-1]:
                self.states.append(now)

    def see(self, state: Together) -> bool:
        """Whether a reader may see that now."""
        found = next((i for i in range(self.reached, len(self.states)) if self.states[i] == state), None)
        self.reached = self.reached if found is None else found
        return found is not None


def touched(events: Iterable[Event]) -> list[TableName]:
    """The tables in the order in which events touched them."""
    return [
        name for event in events for keys in [keys_of(event)] for name in (keys.table, keys.other) if name is not None
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """What differed from what was seen before: of a table, or of a database (no table's name) all at once. `at` is the
    time in seconds since the epoch."""

    event_id: EventId
    at: float
    name: TableName
    state: State


@dataclass
class Proof:
    """What the source showed, and what one reader of a target saw: each told as it comes, by different threads, and
    judged in the end, as the source may be looked at later than its target. With `shape` states are compared as it
    makes them. `whole` are the databases whose tables are compared all at once, too."""

    whole: frozenset[str] = frozenset()
    shape: Callable[[State], State] = lambda state: state
    history: History = field(default_factory=History)
    pasts: dict[str, Past] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    last: Together = field(default_factory=dict)
    looks: int = 0
    observations: int = 0
    """How many tables were seen, all looks together."""

    @property
    def changes(self) -> int:
        return len(self.seen)

    def note(self, event_id: EventId, states: Together, order: Sequence[TableName] = (), events: int = 1) -> None:
        """What the source shows now, after a call of so many events that touched tables in this order."""
        shaped = {name: self.shape(state) for name, state in states.items()}
        self.history.note(event_id, shaped)
        for database in self.whole:
            whole = {name: state for name, state in shaped.items() if name.database == database}
            of_it = [name for name in order if name.database == database]
            self.pasts.setdefault(database, Past()).note(of_it, whole, events)

    def see(self, event_id: EventId, at: float, states: Together, vague: Collection[str] = ()) -> None:
        """What the target shows at its event id."""
        shaped = {name: self.shape(state) for name, state in states.items()}
        self.looks += 1
        self.observations += len(shaped)
        now: Together = {name: ABSENT for name in self.last if name.table} | shaped
        for database in self.whole - {*vague}:
            now[TableName(database)] = {name: state for name, state in shaped.items() if name.database == database}
        for name, state in now.items():
            if name not in self.last or self.last[name] != state:
                self.seen.append(Seen(event_id, at, name, state))
                self.last[name] = state

    def problems(self, is_bridged: Callable[[TableName, float], bool]) -> list[str]:
        """What the reader must not have seen: states that the source never showed, or older ones than before. Excepted
        are tables of which a bridge is announced at the time, and their databases."""
        judge, found = History(self.history.states), []
        pasts = {database: Past(past.states) for database, past in self.pasts.items()}
        for seen in self.seen:
            if is_bridged(seen.name, seen.at):
                continue
            if seen.name.table:
                problem = judge.judge(seen.name, seen.state)
            else:
                past = pasts.setdefault(seen.name.database, Past())
                problem = (
                    "" if past.see(seen.state) else f"{seen.name} shows no state after {past.reached}: {seen.state}"
                )
            if problem:
                found.append(f"at event {seen.event_id} of the target {problem}")
        return found


def with_rows(state: State) -> State:
    """A table without its partitions that have no files: with `atomicity = "rows"` these come early."""
    if state is ABSENT:
        return state
    image, files, rows = state
    return image, files, tuple((values, row) for values, row in rows if row[1])
