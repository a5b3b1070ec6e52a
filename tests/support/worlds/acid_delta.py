"""A world whose target has the source's ACID tables as Delta tables, a writer of these, and a reader that judges what
it sees of them by the rows of the writer.

    world = AcidDeltaWorld(seed=1)
    world.step()                        # the writer takes a step, anything that an ACID table may go through
    world.world.settle()
    assert world.problems == []         # the reader looked after every call at the target
    assert world.differences() == []    # what the target shows in the end
"""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq

from calque.model.hive import Database, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName, partition_name
from calque.model.policy import Policy
from support.memory.metastore import HIVE_4, MemoryReader
from support.sources.acid_writer import AcidTransaction, AcidWriter, Compaction
from support.worlds.delta_reader import snapshot
from support.worlds.worlds import World

POLICY = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", acid="delta")
ROW_ID = ("_calque_write_id", "_calque_bucket", "_calque_row")
State = Mapping[str, Sequence[Any]] | str | None
"""The rows of a table by partition, those without rows left out; None for one that is not there, or a text that says
what is wrong."""


class AcidDeltaWorld:
    def __init__(self, seed: int, policy: Policy = POLICY) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed, HIVE_4, policy)
        self.world.looked = self.look  # type: ignore[method-assign]
        self.world.source.create_database(Database("d1"))
        source = self.world.source
        self.writer = AcidWriter(
            source, MemoryReader(source), source.transactions, self.world.storage, buckets=self.rng.choice([1, 2])
        )
        self.states: dict[TableName, list[State]] = {}
        self.reached: dict[TableName, int] = {}
        self.problems: list[str] = []
        self.open: list[AcidTransaction] = []
        self.obsolete: list[Compaction | None] = []
        self.made = 0

    # The source

    def step(self) -> None:
        (name,) = self.rng.choices(list(STEPS), list(STEPS.values()))
        with self.world.uninterrupted():
            getattr(self, name)()
            self.note()

    def note(self) -> None:
        """Remember the states that tables have by now."""
        shown = {name: without_empty(self.writer.rows(name)) for name in self.writer.tables}
        for name in shown.keys() | self.states.keys():
            states = self.states.setdefault(name, [None])
            if states[-1] != shown.get(name):
                states.append(shown.get(name))

    def table(self) -> TableName | None:
        names = [name for name in self.writer.tables if not self.writer.tables[name].owners]
        return self.rng.choice(names) if names else None

    def create(self) -> None:
        if len(self.writer.tables) < 3:
            self.made += 1
            is_full, keys = self.rng.random() < 0.7, ("p",) if self.rng.random() < 0.6 else ()
            file_format = "orc" if is_full else self.rng.choice(["orc", "parquet"])
            self.writer.create_table("d1", f"t{self.made}", keys, is_full=is_full, file_format=file_format)

    def insert(self) -> None:
        if name := self.table():
            with self.writer.transaction() as transaction:
                self.insert_into(transaction, name)

    def insert_into(self, transaction: AcidTransaction, name: TableName) -> None:
        known = self.writer.tables[name]
        places = self.rng.sample(["a", "b", "c"], self.rng.choice([1, 2])) if known.keys else [""]
        transaction.insert(name, {(place,) if known.keys else (): self.new_rows() for place in places})

    def new_rows(self) -> list[tuple[int, str]]:
        self.made += 1
        return [(self.made, f"v{number}") for number in range(self.rng.choice([1, 2, 5]))]

    def change(self) -> None:
        """Delete or update some rows of a partition."""
        name = self.table()
        if name is None or not self.writer.tables[name].is_full:
            return
        values = [one for one in self.writer.tables[name].changes if self.is_there(name, one)]
        if not values:
            return
        chosen, rest = self.rng.choice(values), self.rng.choice([0, 1])
        with self.writer.transaction() as transaction:
            if self.rng.random() < 0.5:
                transaction.delete(name, lambda row: row[0] % 2 == rest, chosen)
            else:
                transaction.update(name, lambda row: row[0] % 2 == rest, lambda row: (row[0] + 1, "new"), chosen)

    def overwrite(self) -> None:
        if name := self.table():
            known = self.writer.tables[name]
            with self.writer.transaction() as transaction:
                transaction.overwrite(name, {(self.rng.choice("ab"),) if known.keys else (): self.new_rows()})

    def truncate(self) -> None:
        name = self.table()
        values = [one for one in self.writer.tables[name].changes if self.is_there(name, one)] if name else []
        if name and values:
            with self.writer.transaction() as transaction:
                transaction.truncate(name, self.rng.choice(values))

    def begin(self) -> None:
        if len(self.open) < 2 and (name := self.table()):
            self.open.append(self.writer.begin())
            self.insert_into(self.open[-1], name)

    def end(self) -> None:
        if self.open:
            transaction = self.open.pop(self.rng.randrange(len(self.open)))
            transaction.commit() if self.rng.random() < 0.7 else transaction.abort()

    def compact(self) -> None:
        names = list(self.writer.tables)
        if not names:
            return
        name, is_major = self.rng.choice(names), self.rng.random() < 0.5
        for values in list(self.writer.tables[name].changes):
            if self.is_there(name, values):
                self.obsolete.append(self.writer.compact(name, values, is_major=is_major))

    def clean(self) -> None:
        while self.obsolete:
            self.writer.clean(self.obsolete.pop())

    def rename(self) -> None:
        if name := self.table():
            self.made += 1
            self.obsolete.clear()
            self.writer.rename(name, TableName("d1", f"r{self.made}"))

    def drop(self) -> None:
        if (name := self.table()) and self.rng.random() < 0.3:
            self.obsolete.clear()
            self.writer.drop(name)

    def drop_partition(self) -> None:
        name = self.table()
        if name is None or not self.writer.tables[name].keys:
            return
        values = [one for one in self.writer.tables[name].changes if self.is_there(name, one)]
        if values:
            self.obsolete.clear()
            self.writer.drop_partition(name, self.rng.choice(values))

    def rename_partition(self) -> None:
        """Perhaps to a name that another one had."""
        name = self.table()
        if name is None or not self.writer.tables[name].keys:
            return
        changes, stored = self.writer.tables[name].changes, self.world.source.the_table(name)
        free = [one for one in ("a", "b", "c", "d") if (one,) not in stored.partitions]
        values = [one for one in changes if self.is_there(name, one)]
        if values and free:
            self.obsolete.clear()
            was, now = self.rng.choice(values), (self.rng.choice(free),)
            self.world.source.rename_partition(name, was, replace(stored.partitions[was], values=now))
            changes[now] = changes.pop(was)

    def is_there(self, name: TableName, values: tuple[str, ...]) -> bool:
        return not values or values in self.world.source.the_table(name).partitions

    def finish(self) -> None:
        """End all that is open."""
        with self.world.uninterrupted():
            while self.open:
                self.open.pop().commit()
            self.note()

    # The target

    def look(self, method: str) -> None:
        """A reader looks at every table, and remembers what it should not see."""
        now = (self.world.target_store.current(), self.world.storage.changes)
        if now == self.world.seen_at:
            return
        self.world.seen_at = now
        with self.world.uninterrupted():
            seen = {name: self.shown(name) for name in self.states}
        for name, state in seen.items():
            states, at = self.states[name], self.reached.get(name, 0)
            found = next((number for number in range(at, len(states)) if states[number] == state), None)
            if found is None:
                self.problems.append(f"after {method}, {name} shows {state}, of {states[at:]}")
            else:
                self.reached[name] = found

    def shown(self, name: TableName) -> State:
        """What readers of the table's log see."""
        store = self.world.target_store
        if name.database not in store.databases() or name.table not in store.tables(name.database):
            return None
        root = location_of(store.the_table(name).table) or ""
        found = snapshot(self.world.storage.read, self.world.storage.children(f"{root}/_delta_log"), root)
        rows: dict[str, list[Any]] = {}
        keys = list(found.metadata["partitionColumns"])
        columns = [name for name, _ in found.columns() if name not in keys]
        for path, add in found.files.items():
            content = self.world.storage.read(f"{root}/{path}")
            if content is None:
                return f"{path} is gone"
            part = partition_name(keys, [add["partitionValues"][key] for key in keys]) if keys else ""
            for row in pq.read_table(io.BytesIO(content)).to_pylist():
                row_id = tuple(row[column] for column in ROW_ID) if ROW_ID[0] in row else ()
                rows.setdefault(part, []).append((row_id, *map(row.get, columns)))
        return without_empty({part: sorted(some, key=repr) for part, some in rows.items()})

    def quarantined(self) -> Mapping[str, str]:
        """Why tables are set aside, by table."""
        rows = self.world.ledger.tables().values()
        return {str(row.name): row.reason for row in rows if row.state == TableState.QUARANTINED}

    def differences(self) -> list[str]:
        """The tables that the target shows otherwise than they are."""
        return [
            f"{name} shows {shown}, of {states[-1]}"
            for name, states in self.states.items()
            if (shown := self.shown(name)) != states[-1]
        ]


def without_empty(rows: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
    return {part: list(some) for part, some in rows.items() if some}


STEPS = {
    "create": 3,
    "insert": 4,
    "change": 5,
    "overwrite": 1,
    "truncate": 1,
    "begin": 2,
    "end": 2,
    "compact": 3,
    "clean": 2,
    "rename": 1,
    "drop": 1,
    "drop_partition": 1,
    "rename_partition": 2,
}
