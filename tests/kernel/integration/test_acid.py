"""Insert-only ACID tables of real metastores as external ones, with a real process, while readers look."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import Fault
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.transactions import HiveTransactionReader
from calque.core.acid.directories import directory_of
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.formats.layout import place
from calque.model.hive import Database, is_transactional, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings
from support.judges.acid_rows import rows_read
from support.judges.proof import Look, places_of, read_tables, touched
from support.services.deployments import APP, NUMBERS, Deployment, RealFiles, whole_table
from support.services.servers import Shared
from support.sources.acid_writer import AcidWriter, TableRow, Values
from support.sources.plain_transactions import HiveTransactions
from support.storages import any_storage
from support.worlds.acid import AcidWriters
from support.worlds.worlds import State, rows_of, rows_seen


class AcidFiles(RealFiles):
    """Local files as writers of ACID tables handle them."""

    def make(self, location: str) -> None:
        Path(place(location).path).mkdir(parents=True, exist_ok=True)

    def contents(self, location: str) -> Sequence[tuple[str, bytes]]:
        return [(path, content) for path, content in super().content(location)]

    def content(self, location: str) -> State:
        """The rows of a plain table, in whichever files."""
        return rows_of(content for _, content in self.contents(location))


@dataclass
class NativeRows:
    """The rows that readers of a target's ACID tables see: those in directories of committed transactions. That write
    ids of the tables are valid is looked at when nothing changes any more."""

    files: AcidFiles
    reader: HiveTransactionReader

    def __call__(self, location: str) -> State:
        return rows_seen(self.files, location, ValidWriteIds(10**9), self.reader.open_transactions())


class AcidDeployment(Deployment):
    """A deployment whose source has ACID tables in the first of its databases. The configuration says `word`, which
    comes to `acid`."""

    def __init__(
        self,
        root: Path,
        number: int,
        source: Metastore,
        targets: Mapping[str, Metastore],
        seed: int,
        acid: str,
        word: str = "",
    ) -> None:
        self.acid, self.word = acid, word or acid
        super().__init__(root, number, source, targets, seed)
        self.acid_files = AcidFiles()
        client = Client(source.uri)
        self.transactions, self.reader = HiveTransactions(client), HiveTransactionReader(client)
        for target in self.targets:
            target.content = self.acid_files.content
            if target.policy.acid == "native":
                target.content = NativeRows(self.acid_files, HiveTransactionReader(Client(target.uri)))
        self.source.client.create_database(Database(self.databases[0]))
        self.writers = AcidWriters(
            self.source,
            self.acid_files,
            self.transactions,
            self.reader,
            self.note,
            random.Random(seed),
            self.databases[0],
        )

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        first, _ = self.databases
        return Policy(name, "hq", include=(f"{first}.*",), warehouse=f"file://{self.root}/wh_{name}", acid=self.acid)

    def text(self, source: Metastore) -> str:
        text = super().text(source)
        return text.replace("\ninclude", f'\nacid = "{self.word}"\ninclude')

    def write(self, steps: int, pause: float = 0.0) -> None:
        for _ in range(steps):
            try:
                self.writers.step()
            except Fault as fault:
                self.writer.done.append(f"refused: {fault}")
            if pause:
                time.sleep(self.rng.random() * 2 * pause)

    def check_write_ids(self) -> None:
        """Of every ACID table at a target all directories are of write ids that its readers see."""
        for target in self.targets:
            found = read_tables(target.catalog, self.databases[0])
            tables = {TableName(self.databases[0], name): table for name, table in found.items()}
            ids = HiveTransactionReader(Client(target.uri)).valid_write_ids(list(tables))
            for name, table in tables.items():
                for location in places_of([table]) if is_transactional(table.table) else ():
                    names = self.acid_files.children(location)
                    highest = max((one.high for each in names if (one := directory_of(each)) is not None), default=0)
                    assert ids[name].high >= highest, (name, names, ids[name])
                    assert not ids[name].invalid, (name, ids[name])

    def note(self) -> None:
        event_id = self.source.current()
        events = self.source.client.events(event_id if self.noted is None else self.noted)
        order, self.noted = touched(events), event_id
        database = self.databases[0]
        found = {
            TableName(database, name): table
            for name, table in read_tables(self.source.client.catalog, database).items()
        }
        ids, states = self.reader.valid_write_ids(list(found)), self.reader.open_transactions()
        contents = {
            location: rows_seen(self.acid_files, location, ids[name], states)
            for name, table in found.items()
            for location in places_of([table])
            if is_transactional(table.table)
        }
        for target in self.targets:
            look = Look(event_id, found, contents, frozenset())
            target.proof.note(event_id, look.source_states(target.looker), order, len(events))


@pytest.fixture
def deployment(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Iterator[AcidDeployment]:
    source, acid, *names = request.param
    servers = shared(source, *names)
    targets = {name[-1]: servers[name] for name in names}
    made = AcidDeployment(tmp_path, next(NUMBERS), servers[source], targets, 5, acid, "auto")
    yield made
    made.close()


@pytest.mark.parametrize(
    "deployment",
    [("source-3", "external", "target-3"), ("source-4", "native", "target-4")],
    ids=" ".join,
    indirect=True,
)
def test_readers_see_states_of_insert_only_tables_while_calque_is_killed(deployment: AcidDeployment) -> None:
    deployment.write(30)
    deployment.watch()
    for number in (signal.SIGKILL, signal.SIGTERM):
        deployment.start()
        deployment.wait_for(lambda status: status["state"] == "running")
        deployment.write(40, pause=0.05)
        deployment.end(number)
        deployment.write(5)
    deployment.start()
    deployment.write(30, pause=0.02)
    deployment.writers.finish()
    deployment.settle()
    deployment.check_equal()
    deployment.wait_for_readers()
    assert not (problems := deployment.problems()), "\n".join(problems[:3])
    deployment.check_write_ids()
    deployment.writers.compact_all()
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0


class FullDeployment(AcidDeployment):
    """A deployment whose source has full ACID tables, which a writer changes that knows their rows."""

    def make_writer(self) -> AcidWriter:
        client = self.source.client
        return AcidWriter(client, HiveReader(client.client), self.transactions, any_storage())

    def rows(self, writer: AcidWriter) -> dict[TableName, dict[Values, list[TableRow]]]:
        """The rows of all tables that a reader at the target sees at one moment, with their row ids."""
        (target,) = self.targets
        reader, storage = HiveTransactionReader(Client(target.uri)), any_storage()
        states, valid = reader.open_transactions(), reader.valid_write_ids([*writer.tables])
        tables = {name: whole_table(target.catalog, name) for name in writer.tables}
        return {
            name: {
                values: rows_read(
                    storage,
                    location_of(thing) or "",
                    valid[name],
                    known.layout,
                    is_full=known.is_full,
                    is_committed=states.is_committed,
                )
                for values, thing in (tables[name].partitions if known.keys else {(): tables[name].table}).items()
            }
            for name, known in writer.tables.items()
        }

    def check_rows(self, writer: AcidWriter) -> None:
        """A reader at the target sees the rows that the writer wrote, with their row ids."""
        for name, found in self.rows(writer).items():
            wanted = {tuple(part.partition("=")[2:]) if part else (): rows for part, rows in writer.rows(name).items()}
            assert {v: sorted(r) for v, r in found.items() if r} == {v: sorted(r) for v, r in wanted.items() if r}, name


@pytest.fixture
def full(shared: Shared, tmp_path: Path) -> Iterator[FullDeployment]:
    """At a target with the settings that a Hive 4 has by itself, which takes managed tables at few places."""
    source = shared("source-4")["source-4"]
    with Metastore.start(MetastoreSettings(version="4.2.0", stock=True), tmp_path / "stock") as stock:
        made = FullDeployment(tmp_path, next(NUMBERS), source, {"four": stock}, 6, "native")
        yield made
        made.close()


def test_full_acid_tables_have_the_rows_of_the_source_with_their_row_ids(full: FullDeployment) -> None:
    writer, database = full.make_writer(), full.databases[0]
    plain = writer.create_table(database, "plain")
    parted = writer.create_table(database, "parted", ("day",))
    with writer.transaction() as both:
        both.insert(plain, {(): [(1, "a"), (2, "b"), (3, "c")]})
        both.insert(parted, {("1",): [(1, "a")], ("2",): [(2, "b"), (3, "c")]})
    full.start()
    full.settle()
    full.check_rows(writer)
    with writer.transaction() as changes:
        changes.update(plain, lambda row: row[0] == 2, lambda row: (row[0], "new"), ())
        changes.delete(parted, lambda row: row[0] == 3, ("2",))
    given_up = writer.begin()
    given_up.insert(plain, {(): [(9, "never")]})
    given_up.abort()
    full.end(signal.SIGKILL)
    with writer.transaction() as more:
        more.insert(parted, {("3",): [(4, "d")]})
    writer.clean(writer.compact(plain, is_major=True))
    full.start()
    full.settle()
    full.check_rows(writer)
    with writer.transaction() as again:
        again.overwrite(parted, {("1",): [(7, "z")]})
        again.delete(plain, lambda row: row[0] == 1, ())
    with writer.transaction() as emptied:
        emptied.truncate(parted, ("2",))
    writer.clean(writer.compact(plain, is_major=False))
    full.settle()
    full.check_rows(writer)
    verified = full.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert full.end(signal.SIGTERM) == 0


def test_readers_see_no_part_of_a_transaction_over_two_tables(full: FullDeployment) -> None:
    """Of which each inserts the same row into both, while calque is killed."""
    writer, database = full.make_writer(), full.databases[0]
    names = [writer.create_table(database, name) for name in ("one", "other")]
    full.start()
    full.settle()
    seen: list[tuple[list[object], ...]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            found = full.rows(writer)
            seen.append(tuple(sorted(number for _, number, _ in found[name][()]) for name in names))

    with ThreadPoolExecutor(1) as reading:
        looks = reading.submit(read)
        for number in range(40):
            with writer.transaction() as both:
                for name in names:
                    both.insert(name, {(): [(number, "row")]})
            if number == 20:
                full.end(signal.SIGKILL)
                full.start()
            if number % 4 == 0:
                full.wait_for(lambda _, rows=number + 1: seen and len(seen[-1][0]) >= rows)
        full.settle()
        ended.set()
        looks.result()
    assert [one for one in seen if one[0] != one[1]] == []
    assert len({len(one[0]) for one in seen}) > 10
    epochs = APP.wiring(APP.load(full.config)).ledger(full.targets[0].name).epochs()
    assert {tables for epoch in epochs for tables in epoch.together} == {tuple(map(str, names))}
    assert full.end(signal.SIGTERM) == 0
