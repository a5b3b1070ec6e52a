"""Writers of insert-only ACID tables, a compactor and a cleaner: each of them at any time.

A row is a line that begins with the write id of its insert.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calque.core.acid.directories import AcidDirectory, DirectoryKind, directory_of, readable
from calque.core.acid.write_ids import ValidWriteIds
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_partitioned, location_of
from calque.model.names import TableName, partition_name
from calque.ports.transactions import TransactionReader
from support.memory.metastore import MemoryTransactionReader
from support.sources.plain_transactions import PlainTransactions
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
COLUMNS = (Column("id", "int"), Column("v", "string"))


@dataclass(slots=True)
class Writing:
    """A transaction that is open."""

    transaction: int
    tables: Sequence[TableName]


@dataclass(slots=True)
class AcidWriters:
    """They write to tables of one database of `source`, a metastore with the calls of the one in memory, whose files
    are in `storage`. `note` is called after each call that readers may see. `rng` decides which steps they take."""

    source: Any
    storage: Any
    transactions: PlainTransactions
    reader: TransactionReader
    note: Callable[[], None]
    rng: random.Random
    database: str = "d1"
    steps: Mapping[str, int] = field(default_factory=lambda: STEPS)
    """With how often each is taken."""
    overwriting: float = 0.2
    """The share of writes that replace what is there."""
    open: list[Writing] = field(default_factory=list)
    compacting: list[tuple[TableName, int]] = field(default_factory=list)
    wrote: dict[int, Sequence[TableName]] = field(default_factory=dict)
    """The tables of each transaction."""
    made: int = 0

    @staticmethod
    def of(world: World, seed: int) -> AcidWriters:
        world.source.create_database(Database("d1"))
        transactions, reader = world.source.transactions, MemoryTransactionReader(world.source)
        return AcidWriters(world.source, world.storage, transactions, reader, world.note, random.Random(seed))

    def step(self) -> None:
        (name,) = self.rng.choices(list(self.steps), list(self.steps.values()))
        getattr(self, name)()
        self.note()

    def finish(self) -> None:
        """End all that is open."""
        while self.open:
            self.commit()
            self.note()

    # Tables

    def tables(self) -> list[TableName]:
        return [TableName(self.database, name) for name in self.source.tables(self.database)]

    def idle(self) -> list[TableName]:
        """Those that no transaction writes to: others are locked."""
        written = {name for writing in self.open for name in writing.tables}
        return [name for name in self.tables() if name not in written and name not in dict(self.compacting)]

    def create(self) -> None:
        if len(self.tables()) >= 4:
            return
        self.made += 1
        keys = (Column("p", "string"),) if self.rng.random() < 0.6 else ()
        storage = Storage(columns=COLUMNS, input_format=INPUT, output_format=OUTPUT, serde=SerDe(None, SERDE, {}))
        self.source.create_table(
            Table(
                f"t{self.rng.randrange(3)}_{self.made}",
                self.database,
                "owner",
                storage=storage,
                partition_keys=keys,
                parameters=dict(INSERT_ONLY),
                type="MANAGED_TABLE",
            )
        )

    def drop(self) -> None:
        if (idle := self.idle()) and self.rng.random() < 0.3:
            self.source.drop_table(self.rng.choice(idle))

    def rename(self) -> None:
        if idle := self.idle():
            self.made += 1
            name = self.rng.choice(idle)
            table = self.source.the_table(name).table
            self.source.alter_table(name, replace(table, name=f"r_{self.made}"))

    def alter(self) -> None:
        if tables := self.tables():
            name = self.rng.choice(tables)
            table = self.source.the_table(name).table
            self.made += 1
            self.source.alter_table(name, replace(table, parameters={**(table.parameters or {}), "v": f"{self.made}"}))

    def drop_partition(self) -> None:
        for name in self.idle():
            if names := self.partition_names(name):
                self.source.drop_partitions(name, [self.rng.choice(names)])
                return

    def rename_partition(self) -> None:
        for name in self.idle():
            stored = self.source.the_table(name)
            if stored.partitions:
                self.made += 1
                values = self.rng.choice(list(stored.partitions))
                renamed = replace(stored.partitions[values], values=(f"r{self.made}",))
                self.source.rename_partition(name, values, renamed)
                return

    def partition_names(self, name: TableName) -> list[str]:
        stored = self.source.the_table(name)
        keys = [column.name or "" for column in stored.table.partition_keys or ()]
        return [partition_name(keys, values) for values in stored.partitions]

    # Transactions

    def select(self) -> None:
        (transaction,) = self.transactions.open()
        self.transactions.commit(transaction)

    def begin(self) -> None:
        """One that writes to one table or two, and perhaps replaces what they have."""
        tables = self.tables()
        chosen = self.rng.sample(tables, min(len(tables), self.rng.choice([1, 1, 2])))
        if not chosen:
            return
        (transaction,) = self.transactions.open()
        self.open.append(Writing(transaction, chosen))
        self.wrote[transaction] = chosen
        for name in chosen:
            write_id = self.transactions.allocate(name, [transaction])[transaction]
            overwrites = self.rng.random() < self.overwriting
            for location in self.written_places(name):
                self.put(location, write_id, overwrites=overwrites)

    def written_places(self, name: TableName) -> list[str]:
        """Those of the table, or of some of its partitions, one of which may be new."""
        stored = self.source.the_table(name)
        if not is_partitioned(stored.table):
            return [location_of(stored.table) or ""]
        if not stored.partitions or self.rng.random() < 0.4:
            self.made += 1
            partition = Partition((f"{self.made}",), *name, storage=stored.table.storage)
            place = f"{location_of(stored.table)}/p={self.made}"
            placed = replace(partition, storage=replace(stored.table.storage, location=place))
            self.source.add_partitions(name, [placed])
            stored = self.source.the_table(name)
        values = list(stored.partitions)
        chosen = self.rng.sample(values, min(len(values), self.rng.choice([1, 2])))
        return [location_of(stored.partitions[one]) or "" for one in chosen]

    def put(self, location: str, write_id: int, *, overwrites: bool) -> None:
        name = f"base_{write_id:07d}" if overwrites else f"delta_{write_id:07d}_{write_id:07d}_0000"
        self.storage.make(f"{location}/{name}")
        for number in range(self.rng.choice([0, 1, 1, 2]) if overwrites else self.rng.choice([1, 1, 2])):
            self.storage.write(f"{location}/{name}/00000{number}_0", f"{write_id}:{number}\n".encode())

    def commit(self) -> None:
        if self.open:
            writing = self.open.pop(self.rng.randrange(len(self.open)))
            self.transactions.commit(writing.transaction)

    def abort(self) -> None:
        if self.open and self.rng.random() < 0.5:
            writing = self.open.pop(self.rng.randrange(len(self.open)))
            self.transactions.abort(writing.transaction)

    def inserted(self) -> None:
        self.begin()
        self.note()
        if self.open:
            writing = self.open.pop()
            self.transactions.commit(writing.transaction)

    # Compactions

    def compact(self) -> None:
        """Of all directories of a table, up to the first write id that is open. Readers see it when it is committed."""
        tables = [name for name in self.tables() if name not in dict(self.compacting)]
        if not tables:
            return
        self.compact_one(self.rng.choice(tables), major=self.rng.random() < 0.5)

    def compact_one(self, name: TableName, *, major: bool) -> None:
        (transaction,) = self.transactions.open()
        valid = self.valid(name)
        high = min(valid.open, default=valid.high + 1) - 1
        below = ValidWriteIds(high, aborted=valid.aborted)
        for location in self.places(name):
            read = readable(self.directories(location), below, self.is_committed)
            chosen = [one for one in read.all() if major or one.kind is not DirectoryKind.BASE]
            if len(chosen) < 2:
                continue
            low = min(one.low for one in chosen)
            made = f"base_{high:07d}" if major else f"delta_{low:07d}_{high:07d}"
            lines = [
                line
                for one in chosen
                for _, content in self.storage.contents(f"{location}/{one.name}")
                for line in content.splitlines(keepends=True)
                if below.holds(int(line.split(b":")[0]))
            ]
            self.storage.write(f"{location}/{made}_v{transaction:07d}/000000_0", b"".join(lines))
        self.compacting.append((name, transaction))

    def compact_all(self) -> None:
        """Every table, and clean up behind it; while no transaction is open."""
        while self.compacting:
            self.compacted()
        for name in self.tables():
            self.compact_one(name, major=True)
            self.compacted()
        self.clean()

    def compacted(self) -> None:
        if self.compacting:
            _, transaction = self.compacting.pop(0)
            self.transactions.commit(transaction)

    def clean(self) -> None:
        """Remove what no reader needs any more."""
        for name in self.tables():
            valid = self.valid(name)
            for location in self.places(name):
                known = self.directories(location)
                obsolete = readable(known, valid, self.is_committed).obsolete
                aborted = [one for one in known if one.low == one.high and one.high in valid.aborted]
                for one in {*obsolete, *aborted}:
                    self.storage.remove([f"{location}/{one.name}"])

    def places(self, name: TableName) -> list[str]:
        stored = self.source.the_table(name)
        things = stored.partitions.values() if is_partitioned(stored.table) else [stored.table]
        return [location_of(thing) or "" for thing in things]

    def directories(self, location: str) -> list[AcidDirectory]:
        names = self.storage.children(location)
        return [one for name in names if (one := directory_of(name)) is not None]

    def valid(self, name: TableName) -> ValidWriteIds:
        return self.reader.valid_write_ids([name])[name]

    def is_committed(self, transaction: int) -> bool:
        return self.reader.open_transactions().is_committed(transaction)


STEPS = {
    "create": 2,
    "drop": 1,
    "rename": 1,
    "alter": 1,
    "drop_partition": 1,
    "rename_partition": 1,
    "select": 2,
    "begin": 2,
    "commit": 2,
    "abort": 1,
    "inserted": 3,
    "compact": 1,
    "compacted": 2,
    "clean": 1,
}
REMOVING = {"drop", "drop_partition", "rename_partition", "compact", "compacted", "clean"}
"""Those after which files of earlier states may be gone."""
