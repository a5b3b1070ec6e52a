"""A whole small world in memory: a source that a random writer changes, calque, a target, and a reader that remembers
every state the source showed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

from calque.adapters.memory.evidence import MemoryEvidence
from calque.adapters.memory.journal import MemoryJournal
from calque.adapters.memory.ledger import MemoryLedger
from calque.adapters.memory.metastore import (
    HIVE_3,
    HIVE_4,
    Habits,
    MemoryCatalog,
    MemoryLog,
    MemoryMetastore,
    MemoryReader,
)
from calque.adapters.memory.storage import MemoryStorage
from calque.core.image import MARKS, STATISTICS, Imaging, Marks, canonical
from calque.core.keys import keys_of
from calque.core.layout import join
from calque.core.rows import table_of
from calque.engine.capture import Capture, Gatherer
from calque.engine.replica import Replica, Window
from calque.engine.world import SourceSide, TargetSide
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_partitioned, is_view, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName, partition_name, table_name
from calque.model.policy import Policy

State = Any
INPUT = "org.apache.hadoop.mapred.TextInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
ABSENT: State = None


class Died(BaseException):
    """The process was killed."""


class InlineExecutor(Executor):
    """Runs everything at once, in the caller."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass


class DeferredExecutor(InlineExecutor):
    """Keeps what is submitted until `run` is called, so that a test says when background work happens."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        self.waiting.append((fn, args))
        return Future()

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for fn, args in waiting:
            fn(*args)


class WorldClock:
    """Time that passes a little with every look; sleeping lets capture work."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000_000
        self.asleep: Callable[[], None] = lambda: None

    def now_ns(self) -> int:
        self.now += 1_000_000
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)
        self.asleep()


class Directories:
    """What the source's metastore does to the directories of managed tables."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage

    def move(self, source: str, target: str) -> None:
        prefix = f"{source.rstrip('/')}/"
        moved = [path for path in self.storage.paths() if path.startswith(prefix)]
        self.storage.publish([(path, join(target, path[len(prefix) :])) for path in moved])

    def remove(self, location: str) -> None:
        self.storage.remove([location])


class Noting:
    """A metastore each of whose calls is followed by a look."""

    def __init__(self, source: MemoryMetastore, look: Callable[[], None]) -> None:
        self._source, self._look = source, look

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._source, method)

        def called(*args: Any, **named: Any) -> Any:
            before = self._source.current()
            result = found(*args, **named)
            if self._source.current() != before:
                self._look()
            return result

        return called


class Writer:
    """Random operations at the source, each of them one or more whole calls of its metastore."""

    def __init__(
        self,
        source: Any,
        storage: Any,
        rng: random.Random,
        databases: Sequence[str] = ("d1", "d2"),
        outside: str = "file:/outside",
    ) -> None:
        self.source, self.storage, self.rng = source, storage, rng
        self.databases, self.outside = databases, outside
        self.files = 0
        self.values = 0
        self.done: list[str] = []

    def step(self) -> None:
        name = self.rng.choice(OPERATIONS)
        before = self.source.current()
        getattr(self, name)()
        if self.source.current() != before:
            self.done.append(f"{before + 1}..{self.source.current()} {name}")

    def database(self) -> str:
        return self.rng.choice(self.databases)

    def any_table(self, want: Callable[[Table], bool] = lambda _: True) -> Table | None:
        tables = [
            self.source.the_table(TableName(database, table)).table
            for database in sorted({*self.databases} & {*self.source.databases()})
            for table in self.source.tables(database)
        ]
        found = sorted((table for table in tables if want(table)), key=lambda table: (table.database, table.name))
        return self.rng.choice(found) if found else None

    def partitions_of(self, table: Table) -> list[Partition]:
        return list(self.source.the_table(name_of(table)).partitions.values())

    def any_partition(self) -> tuple[Table, Partition] | None:
        table = self.any_table(lambda t: is_partitioned(t) and bool(self.partitions_of(t)))
        return (table, self.rng.choice(self.partitions_of(table))) if table else None

    def fresh(self) -> str:
        self.values += 1
        return str(self.values)

    def put_file(self, location: str) -> str:
        self.files += 1
        path = join(location, f"part-{self.files:05d}")
        self.storage.write(path, self.rng.randbytes(self.rng.randrange(4)))
        return path

    def create_database(self) -> None:
        name = self.database()
        if name not in self.source.databases():
            self.source.create_database(Database(name, parameters={"k": self.fresh()}))

    def alter_database(self) -> None:
        name = self.database()
        if name in self.source.databases():
            found = self.source.the_database(name)
            self.source.alter_database(name, replace(found, parameters={"k": self.fresh()}))

    def drop_database(self) -> None:
        name = self.database()
        if name in self.source.databases() and self.rng.random() < 0.1:
            self.source.drop_database(name, cascade=True)

    def create_table(self) -> None:
        database = self.database()
        if database not in self.source.databases():
            return
        free = [name for name in ("a", "b", "c", "tmp") if name not in self.source.tables(database)]
        if not free:
            return
        name = self.rng.choice(free)
        partitioned = self.rng.random() < 0.6
        external = self.rng.random() < 0.3
        location = f"{self.outside}/{self.fresh()}/{name}" if external else None
        columns = (Column("x", "int"),)
        self.source.create_table(
            Table(
                name,
                database,
                owner="me",
                storage=Storage(columns, location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={})),
                partition_keys=(Column("p", "string"),) if partitioned else (),
                parameters={"v": self.fresh()} | ({"EXTERNAL": "TRUE"} if external else {}),
                type="EXTERNAL_TABLE" if external else "MANAGED_TABLE",
            )
        )

    def create_view(self) -> None:
        database = self.database()
        if database in self.source.databases() and "v" not in self.source.tables(database):
            text = f"SELECT x FROM {database}.a"
            view = Table("v", database, type="VIRTUAL_VIEW", view_original_text=text, view_expanded_text=text)
            self.source.create_table(
                replace(
                    view,
                    parameters={"v": self.fresh()},
                    storage=Storage(
                        (Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={})
                    ),
                )
            )

    def drop_table(self) -> None:
        if table := self.any_table():
            self.source.drop_table(name_of(table))

    def drop_and_create(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            self.source.drop_table(name_of(table))
            keys = () if table.partition_keys else (Column("p", "string"),)
            storage = replace(table.storage or Storage(), location=None)
            self.source.create_table(
                replace(
                    table, partition_keys=keys, storage=storage, parameters={"v": self.fresh()}, type="MANAGED_TABLE"
                )
            )

    def alter_table(self) -> None:
        if table := self.any_table():
            parameters = {**(table.parameters or {}), "v": self.fresh()}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))

    def statistics(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            parameters = {**(table.parameters or {}), "numRows": self.fresh()}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))

    def add_column(self) -> None:
        if (table := self.any_table(lambda t: not is_view(t))) and table.storage:
            columns = (*(table.storage.columns or ()), Column(f"c{self.fresh()}", "string"))
            after = replace(table, storage=replace(table.storage, columns=columns))
            self.source.alter_table(name_of(table), after, cascade=self.rng.random() < 0.5)

    def rename_table(self) -> None:
        if table := self.any_table():
            database = self.database() if self.rng.random() < 0.3 else table.database
            if database in self.source.databases():
                free = [name for name in ("a", "b", "c", "tmp") if name not in self.source.tables(database)]
                if free:
                    self.source.alter_table(
                        name_of(table), replace(table, database=database, name=self.rng.choice(free))
                    )

    def swap(self) -> None:
        for database in sorted({*self.databases} & {*self.source.databases()}):
            tables = self.source.tables(database)
            if {"a", "b"} <= set(tables) and "tmp" not in tables:
                for old, new in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
                    table = self.source.the_table(TableName(database, old)).table
                    self.source.alter_table(TableName(database, old), replace(table, name=new))
                return

    def truncate(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.storage.remove(
                [join(location_of(table) or "", f.path) for f in self.files_at(location_of(table) or "")]
            )
            self.source.alter_table(
                name_of(table), replace(table, parameters={**(table.parameters or {}), "v": self.fresh()})
            )

    def files_at(self, location: str) -> Any:
        return self.storage.list([location])[location].files

    def insert(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.source.insert(name_of(table), [self.put_file(location_of(table) or "")])

    def overwrite(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            location = location_of(table) or ""
            self.storage.remove([join(location, file.path) for file in self.files_at(location)])
            self.source.insert(name_of(table), [self.put_file(location)], replace=True)

    def add_partitions(self) -> None:
        if table := self.any_table(is_partitioned):
            there = {partition.values for partition in self.partitions_of(table)}
            used = {location_of(partition) for partition in self.partitions_of(table)}
            free = [
                value
                for value in ("1", "2", "3", "a b%", "é=/")
                if (value,) not in there and join(location_of(table) or "", partition_name(["p"], [value])) not in used
            ]
            chosen = self.rng.sample(free, min(len(free), self.rng.randrange(1, 3)))
            rows = []
            for value in chosen:
                location = join(location_of(table) or "", partition_name(["p"], [value]))
                self.storage.remove([location])
                for _ in range(self.rng.randrange(3)):
                    self.put_file(location)
                storage = replace(table.storage or Storage(), location=location)
                rows.append(
                    Partition((value,), table.database, table.name, storage=storage, parameters={"w": self.fresh()})
                )
            if rows:
                self.source.add_partitions(name_of(table), rows)

    def alter_partitions(self) -> None:
        if table := self.any_table(lambda t: is_partitioned(t) and bool(self.partitions_of(t))):
            rows = self.partitions_of(table)
            chosen = self.rng.sample(rows, self.rng.randrange(1, len(rows) + 1))
            self.source.alter_partitions(
                name_of(table),
                [replace(row, parameters={**(row.parameters or {}), "w": self.fresh()}) for row in chosen],
            )

    def partition_statistics(self) -> None:
        if found := self.any_partition():
            table, row = found
            after = replace(row, parameters={**(row.parameters or {}), "numRows": self.fresh()})
            self.source.alter_partition(name_of(table), after)

    def insert_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            path = self.put_file(location_of(row) or "")
            self.source.insert(name_of(table), [path], values=row.values)

    def overwrite_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            location = location_of(row) or ""
            self.storage.remove([join(location, file.path) for file in self.files_at(location)])
            self.source.insert(name_of(table), [self.put_file(location)], values=row.values, replace=True)

    def rename_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            there = {partition.values for partition in self.partitions_of(table)}
            free = [value for value in ("1", "2", "3", "a b%", "é=/") if (value,) not in there]
            if free:
                self.source.rename_partition(name_of(table), row.values, replace(row, values=(self.rng.choice(free),)))

    def drop_partitions(self) -> None:
        if table := self.any_table(lambda t: is_partitioned(t) and bool(self.partitions_of(t))):
            rows = self.partitions_of(table)
            chosen = self.rng.sample(rows, self.rng.randrange(1, len(rows) + 1))
            self.source.drop_partitions(name_of(table), [partition_name(["p"], row.values) for row in chosen])


OPERATIONS = (
    *["create_table"] * 4,
    *["add_partitions"] * 6,
    *["insert_partition"] * 4,
    *["insert"] * 3,
    "create_database",
    "create_database",
    "alter_database",
    "drop_database",
    "create_view",
    "drop_table",
    "drop_and_create",
    "alter_table",
    "statistics",
    "add_column",
    "rename_table",
    "swap",
    "truncate",
    "overwrite",
    "alter_partitions",
    "partition_statistics",
    "overwrite_partition",
    "rename_partition",
    "drop_partitions",
)


def name_of(table: Table) -> TableName:
    return table_name(table.database, table.name)


@dataclass(frozen=True)
class Looker:
    """What a reader sees of a table: definitions without marks and statistics, and the content of every file."""

    imaging: Imaging
    content: Callable[[str], State]

    def source(self, name: TableName, table: Table, partitions: list[Partition]) -> State:
        """The policy's image of a source's table."""
        return self.state(name, self.imaging.table(table, Marks(0, ""), location_of(table)), table, partitions)

    def target(self, name: TableName, table: Table, partitions: list[Partition]) -> State:
        return self.state(name, table, table, partitions)

    def state(self, name: TableName, image: Table, located: Table, partitions: list[Partition]) -> State:
        ignore = STATISTICS | MARKS
        rows = {}
        for partition in partitions:
            of_name = replace(partition, table=name.table, database=name.database)
            seen = self.imaging.partition(of_name, name, Marks(0, ""), None)
            rows[tuple(partition.values)] = (canonical(seen, ignore), self.files(location_of(partition)))
        plain = not is_view(located) and not is_partitioned(located)
        data = self.files(location_of(located)) if plain else None
        return (canonical(image, ignore), data, tuple(sorted(rows.items())))

    def files(self, location: str | None) -> State:
        return None if location is None else self.content(location)


@dataclass
class History:
    """Every state that each table of the source was in, with the event id that it began at."""

    states: dict[TableName, list[tuple[int, State]]] = field(default_factory=dict)
    reached: dict[TableName, int] = field(default_factory=dict)

    def note(self, event_id: int, seen: Mapping[TableName, State]) -> None:
        for name in seen.keys() | self.states.keys():
            rows = self.states.setdefault(name, [(0, ABSENT)])
            state = seen.get(name, ABSENT)
            if rows[-1][1] != state:
                rows.append((event_id, state))

    def check(self, seen: Mapping[TableName, State]) -> list[tuple[TableName, str]]:
        """What a reader must not see: a state that the source never had, or an older one than was seen before."""
        problems = []
        for name, state in seen.items():
            rows, at = self.states.get(name, [(0, ABSENT)]), self.reached.get(name, 0)
            found = next((i for i in range(at, len(rows)) if rows[i][1] == state), None)
            if found is None:
                before = [i for i, row in enumerate(rows) if row[1] == state]
                what = f"state {before} again, after {at}" if before else "no state of the source"
                problems.append((name, f"{name} shows {what}: {state}"))
            else:
                self.reached[name] = found
        return problems


class World:
    """Everything, wired. `seed` decides all of it."""

    def __init__(self, seed: int, habits: Habits | None = None, policy: Policy | None = None) -> None:
        self.rng = random.Random(seed)
        self.clock = WorldClock()
        self.clock.asleep = self.capture_all
        self.storage = MemoryStorage(self.clock.now_ns)
        self.habits = habits or self.rng.choice([HIVE_3, HIVE_4])
        self.source = MemoryMetastore(
            self.habits, "file:/source", directories=Directories(self.storage), clock=self.seconds
        )
        self.target_store = MemoryMetastore(HIVE_4, "file:/managed", clock=self.seconds)
        self.writer = Writer(Noting(self.source, self.note), self.storage, self.rng)
        self.policy = policy or Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target")
        self.history = History()
        self.journal, self.evidence, self.ledger = MemoryJournal(), MemoryEvidence(), MemoryLedger()
        self.between: Callable[[str], None] = lambda _: None
        self.found: list[tuple[int, TableName, str]] = []
        self.windows: list[Window] = []
        self.busy = False
        self.deadliness = 0.0
        """How likely calque dies before or after each call at the target and at the storage."""
        self.mortal = False
        self.deaths = 0
        log = MemoryLog(self.source, before=self.called)
        reader = MemoryReader(self.source, before=self.called)
        self.source_side = SourceSide("hq", log, reader, self.journal, self.evidence, self.storage, self.clock)
        catalog = MemoryCatalog(self.target_store, before=self.called, after=self.returned)
        self.side = TargetSide.of(self.policy, catalog, self.ledger, self.storage)
        self.looker = Looker(self.side.imaging, self.content)
        self.begin = 0
        self.gatherer = Gatherer(self.source_side, self.side.admission.takes)
        self.capture = Capture(self.source_side, self.begin, self.gatherer)
        self.background = DeferredExecutor()
        self.replica = self.new_replica()

    def seconds(self) -> float:
        return self.clock.now / 1e9

    def new_replica(self) -> Replica:
        def pool(_: int, name: str) -> Executor:
            return self.background if name.startswith("read") else InlineExecutor()

        return Replica(self.source_side, self.side, lambda: self.begin, lambda: None, pool)

    def returned(self, method: str) -> None:
        self.looked(method)
        self.perhaps_die()

    def perhaps_die(self) -> None:
        if self.mortal and self.rng.random() < self.deadliness:
            self.mortal = False
            self.deaths += 1
            raise Died

    def called(self, method: str) -> None:
        self.perhaps_die()
        if not self.busy:
            self.busy = True
            try:
                self.between(method)
            finally:
                self.busy = False

    def write(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.writer.step()

    def note(self) -> None:
        self.history.note(self.source.current(), self.source_states())

    def capture_all(self) -> None:
        events = self.source.events(self.capture.last())
        if events:
            self.capture.append(table_of((event, keys_of(event)) for event in events))
        self.gatherer.once()

    def work(self) -> None:
        """Background reads and a window."""
        self.survive(self.background.run)
        self.window_alone()

    def window_alone(self) -> None:
        self.survive(self.window)

    def survive(self, action: Callable[[], None]) -> None:
        """When calque dies it is started again."""
        self.mortal = True
        try:
            action()
        except Died:
            self.background.waiting.clear()
            self.replica = self.new_replica()
            self.open()
        finally:
            self.mortal = False

    def open(self) -> None:
        while True:
            try:
                self.replica.open()
            except Died:
                self.background.waiting.clear()
                self.replica = self.new_replica()
            else:
                return

    def window(self) -> None:
        try:
            if (window := self.replica.window(self.capture.last())) is not None:
                self.windows.append(window)
        except Unavailable:
            pass

    def settle(self, rounds: int = 200) -> None:
        """Until the target shows the source's newest state."""
        for _ in range(rounds):
            self.capture_all()
            self.work()
            out = self.replica.tables.in_state(*set(TableState) - {TableState.LIVE})
            if not out and self.replica.position() == self.source.current() and not self.replica.tables.apart:
                return
            self.clock.now += 2_000_000_000
        raise AssertionError(f"it did not settle: {self.replica.tables.rows}")

    @property
    def problems(self) -> list[str]:
        """What readers saw and should not have; while a bridge is crossed its table is excepted."""
        bridged = {
            (number, table)
            for number, window in enumerate(self.windows)
            for plan in window.plans
            for table in plan.tables
            if any(hop.bridge for hop in plan.hops)
        }
        return [text for number, name, text in self.found if (number, name) not in bridged]

    # What readers see

    def looked(self, method: str) -> None:
        """A reader at the target, after every call: each table is in a state the source had, none goes back."""
        mortal, self.mortal = self.mortal, False
        for name, problem in self.history.check(self.target_states()):
            self.found.append((len(self.windows), name, f"after {method}, {problem}"))
        self.mortal = mortal

    def source_states(self) -> dict[TableName, State]:
        found = {}
        for database in self.source.databases():
            for table in self.source.tables(database):
                name = TableName(database, table)
                if self.side.admission.takes(name):
                    stored = self.source.the_table(name)
                    found[name] = self.looker.source(name, stored.table, list(stored.partitions.values()))
        return found

    def target_states(self) -> dict[TableName, State]:
        found: dict[TableName, State] = dict.fromkeys(self.history.states, ABSENT)
        for database in self.target_store.databases():
            for table in self.target_store.tables(database):
                name = self.side.admission.source_of(TableName(database, table))
                if name is not None:
                    stored = self.target_store.the_table(TableName(database, table))
                    found[name] = self.looker.target(name, stored.table, list(stored.partitions.values()))
        return found

    def content(self, location: str) -> State:
        files = self.storage._listing(location).files
        return tuple((file.path, self.storage.read(join(location, file.path))) for file in files)
