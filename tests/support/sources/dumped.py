"""Dumps as tests look at them, and a writer whose every state is known."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from calque.core.events.decode import thrift_object
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import EventId, TableName, partition_name
from calque.plugins.dumps.core.dump_metadata import DumpMetadata, read_dump_metadata
from calque.plugins.dumps.core.file_lists import read_files
from calque.plugins.dumps.core.layout import DumpDirectory, DumpLayout, ObjectDirectories
from calque.plugins.dumps.core.metadata import read_table
from calque.plugins.dumps.core.scope import scope_of_policy
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.sources.writers import INPUT, OUTPUT, SERDE

Content = frozenset[tuple[str, bytes]]
"""Files by name."""
TableState = tuple[str, Mapping[str, Content]]
"""A table's parameter `k`, and its contents by partition, an unpartitioned table's under an empty name."""
DatabaseState = Mapping[str, TableState]
PLAIN = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))


@dataclass
class DumpedDirectory:
    """A dump on this machine's disk."""

    directory: DumpDirectory

    @classmethod
    def of(cls, path: str, layout: DumpLayout = DumpLayout.HIVE_4) -> DumpedDirectory:
        return cls(DumpDirectory(path.removeprefix("file:"), layout))

    @property
    def metadata(self) -> DumpMetadata:
        return read_dump_metadata(Path(self.directory.dump_metadata).read_text())

    @property
    def is_finished(self) -> bool:
        return Path(self.directory.finished_dump).exists()

    def tables(self, database: str) -> list[str]:
        return tables_of(self.directory.objects, database)

    def state(self, database: str) -> DatabaseState:
        """The tables with the contents that a bootstrap names or has."""
        return states_of(self.directory.objects, database)

    def events(self) -> dict[EventId, str]:
        """The kinds of events, by id."""
        roots = Path(self.directory.root)
        found = [*roots.glob("events_batch_*/*/_dumpmetadata"), *roots.glob("[0-9]*/_dumpmetadata")]
        read = {int(path.parent.name): read_dump_metadata(path.read_text()).kind for path in found}
        return dict(sorted(read.items()))


def tables_of(objects: ObjectDirectories, database: str) -> list[str]:
    return sorted(path.parent.name for path in Path(objects.database(database)).glob("*/_metadata"))


def states_of(objects: ObjectDirectories, database: str) -> DatabaseState:
    return {table: state_of(objects, TableName(database, table)) for table in tables_of(objects, database)}


def state_of(objects: ObjectDirectories, name: TableName) -> TableState:
    [table], partitions = definitions(Path(objects.table_metadata(name)))
    contents = (partitions if table.partition_keys else [""]) if table.type != "VIRTUAL_VIEW" else []
    k = (table.parameters or {}).get("k", "")
    return k, {each: content_of(Path(objects.table_data(name, each))) for each in contents}


def loaded(state: DatabaseState, dump: DumpedDirectory, database: str) -> DatabaseState:
    """What the state becomes by an increment, as Hive loads it: what the policy does not take goes, then come the
    events, then the tables that are in it whole."""
    metadata, after = dump.metadata, dict(state)
    if metadata.scope_changed:
        assert metadata.policy is not None
        scope = scope_of_policy(metadata.policy)
        after = {table: one for table, one in after.items() if scope.takes_table(table)}
    for event_id in dump.events():
        apply(after, dump, event_id)
    return after | states_of(dump.directory.bootstrapped, database)


def apply(state: dict[str, TableState], dump: DumpedDirectory, event_id: EventId) -> None:
    """One event."""
    batches = (dump.directory.event(event_id, batch) for batch in range(1, 100))
    event = next(each for each in batches if Path(each.dump_metadata).exists())
    dumped = read_dump_metadata(Path(event.dump_metadata).read_text())
    message = json.loads(dumped.payload or "{}")
    tables, partitions = definitions(Path(event.metadata))
    files = {partition: content_of(Path(event.data(partition))) for partition in partitions or [""]}
    table = tables[0].name if tables else message.get("table", "")
    k, contents = state.get(table, ("", {}))
    match dumped.kind:
        case "EVENT_CREATE_TABLE":
            state[table] = ((tables[0].parameters or {}).get("k", ""), {} if tables[0].partition_keys else files)
        case "EVENT_ALTER_TABLE":
            state[table] = ((tables[0].parameters or {}).get("k", ""), contents)
        case "EVENT_ADD_PARTITION":
            state[table] = (k, {**contents, **files})
        case "EVENT_INSERT":
            state[table] = (k, {**contents, **{each: contents[each] | new for each, new in files.items()}})
        case "EVENT_ALTER_PARTITION":
            assert partitions
        case "EVENT_DROP_PARTITION":
            gone = {partition_name(list(one), list(one.values())) for one in message["partitions"]}
            state[table] = (k, {each: one for each, one in contents.items() if each not in gone})
        case "EVENT_DROP_TABLE" | "EVENT_RENAME_DROP_TABLE":
            state.pop(table, None)
        case "EVENT_RENAME_TABLE":
            to = thrift_object(Table, message["tableObjAfterJson"]).name
            state[to] = state.pop(table)
        case other:
            raise AssertionError(other)


def definitions(metadata: Path) -> tuple[list[Table], list[str]]:
    if not metadata.exists():
        return [], []
    read = read_table([metadata.read_bytes()])
    table = thrift_object(Table, read.table)
    keys = [key.name for key in table.partition_keys or ()]
    return [table], [partition_name(keys, thrift_object(Partition, text).values) for text in read.partitions]


def content_of(folder: Path) -> Content:
    if (listed := folder / "_files").exists():
        paths = [Path(file.uri.removeprefix("file:")) for file in read_files(listed.read_text())]
    else:
        paths = [path for path in folder.iterdir() if path.is_file()] if folder.exists() else []
    return frozenset((path.name, path.read_bytes() if path.exists() else b"gone") for path in paths)


@dataclass
class KnownSource:
    """A database, and the states that it went through: each with the event that ended it. One thread writes."""

    client: HiveClient
    database: str
    seed: int = 0
    states: list[tuple[EventId, DatabaseState]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)
    stepping: threading.Lock = field(default_factory=threading.Lock)
    """Held while `write` changes something and notes the state: whoever compares meanwhile waits for the note."""

    @classmethod
    def make(cls, server: Metastore, database: str, seed: int = 0, **parameters: str) -> KnownSource:
        client = HiveClient(server.uri)
        client.create_database(Database(database, parameters=parameters))
        source = cls(client, database, seed)
        source.states.append((client.current(), {}))
        return source

    @property
    def state(self) -> dict[str, TableState]:
        return dict(self.states[-1][1])

    def state_at(self, event_id: EventId) -> DatabaseState:
        """The newest state at or before the event."""
        return [state for at, state in self.noted() if at <= event_id][-1]

    def noted(self) -> list[tuple[EventId, DatabaseState]]:
        """The states, with that of every change that has begun."""
        with self.stepping:
            return list(self.states)

    def is_state_at(self, event_id: EventId, found: DatabaseState) -> bool:
        """Whether it is the one at the event. A file may lie there before the event that tells of it, as for readers of
        the source."""
        expected = self.state_at(event_id)
        if found.keys() != expected.keys():
            return False
        return all(
            found[table][0] == expected[table][0]
            and found[table][1].keys() == expected[table][1].keys()
            and all(
                expected[table][1][each] <= content <= expected[table][1][each] | self.next_file(event_id)
                for each, content in found[table][1].items()
            )
            for table in found
        )

    def next_file(self, event_id: EventId) -> Content:
        """The files that the first state after the event adds."""
        later = next((state for at, state in self.noted() if at > event_id), {})
        return frozenset(file for _, contents in later.values() for content in contents.values() for file in content)

    def done(self, state: DatabaseState) -> None:
        self.states.append((self.client.current(), state))

    def name(self, table: str) -> TableName:
        return TableName(self.database, table)

    def create(self, table: str, *, partitioned: bool = False, external: str = "", files: int = 0) -> None:
        keys = (Column("p", "string"),) if partitioned else ()
        kind = "EXTERNAL_TABLE" if external else "MANAGED_TABLE"
        parameters = {"k": "0", **({"EXTERNAL": "TRUE"} if external else {})}
        storage = replace(PLAIN, location=external or None)
        self.client.create_table(
            Table(table, self.database, "me", storage=storage, partition_keys=keys, parameters=parameters, type=kind)
        )
        self.done(self.state | {table: ("0", {} if partitioned else {"": frozenset()})})
        for _ in range(files):
            self.insert(table)

    def location(self, table: str, partition: str = "") -> Path:
        definition = self.client.catalog.table(self.name(table))
        assert definition is not None
        return Path((location_of(definition) or "").removeprefix("file:")) / partition

    def write_file(self, folder: Path) -> tuple[str, bytes]:
        number = next(self.numbers)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(b"%d" % number)
        return f"f{number}", b"%d" % number

    def insert(self, table: str, partition: str = "") -> None:
        folder = self.location(table, partition)
        file = self.write_file(folder)
        values = [partition.partition("=")[2]] if partition else None
        self.client.insert(self.name(table), [f"file:{folder}/{file[0]}"], values=values)
        k, contents = self.state[table]
        self.done(self.state | {table: (k, {**contents, partition: contents[partition] | {file}})})

    def add(self, table: str, value: str) -> None:
        folder = self.location(table, f"p={value}")
        file = self.write_file(folder)
        partition = Partition(
            (value,), *self.name(table), storage=replace(PLAIN, location=f"file:{folder}"), parameters={}
        )
        self.client.add_partitions(self.name(table), [partition])
        k, contents = self.state[table]
        self.done(self.state | {table: (k, {**contents, f"p={value}": frozenset({file})})})

    def drop_partition(self, table: str, partition: str) -> None:
        self.client.drop_partitions(self.name(table), [partition])
        k, contents = self.state[table]
        self.done(self.state | {table: (k, {each: one for each, one in contents.items() if each != partition})})

    def alter(self, table: str) -> None:
        definition = self.client.catalog.table(self.name(table))
        assert definition is not None
        k = str(next(self.numbers))
        self.client.alter_table(
            self.name(table), replace(definition, parameters={**(definition.parameters or {}), "k": k})
        )
        self.done(self.state | {table: (k, self.state[table][1])})

    def rename(self, table: str, to: str) -> None:
        definition = self.client.catalog.table(self.name(table))
        assert definition is not None
        self.client.alter_table(self.name(table), replace(definition, name=to))
        state = self.state
        state[to] = state.pop(table)
        self.done(state)

    def drop(self, table: str) -> None:
        self.client.drop_table(self.name(table))
        self.done({each: one for each, one in self.state.items() if each != table})

    def write(self, stopping: threading.Event, pause: float = 0.02) -> None:
        """Anything, until it is to stop."""
        rng = random.Random(self.seed)
        while not stopping.is_set():
            with self.stepping:
                self.step(rng)
            time.sleep(pause * rng.random())

    def step(self, rng: random.Random) -> None:
        state = self.state
        table = rng.choice(["a", "b", "c", "d"])
        if table not in state:
            self.create(table, partitioned=rng.random() < 0.7)
            return
        contents = state[table][1]
        match rng.choice(["insert", "insert", "add", "add", "alter", "drop_partition", "rename", "drop"]):
            case "insert" if contents:
                self.insert(table, rng.choice(sorted(contents)))
            case "add" if "" not in contents:
                self.add(table, str(next(self.numbers)))
            case "drop_partition" if contents and "" not in contents:
                self.drop_partition(table, rng.choice(sorted(contents)))
            case "alter":
                self.alter(table)
            case "rename" if len(state) < 4:
                self.rename(table, next(each for each in ("a", "b", "c", "d") if each not in state))
            case "drop" if rng.random() < 0.3:
                self.drop(table)
            case _:
                self.alter(table)
