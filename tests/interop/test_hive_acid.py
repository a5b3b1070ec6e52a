"""Hive 4.0.1 itself writes ACID tables of every kind at a source and reads the replicas while calque follows; it writes
them, too, once calque has stopped: `make interop`. For long, with the marker `prove`: `make prove PART=acid`."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest

from calque.model.hive import is_full_acid
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings
from support.judges.acid_tables import Reads, shape
from support.services.acid_deployments import AcidTables, Replica, kept, wait_for
from support.services.hive_acid import SOURCE, AcidHive, acid_hive
from support.services.hive_driver import Hive
from support.sources.acid_statements import (
    AFTER_TAKEOVER,
    INSERT_ONLY_TABLES,
    TABLES,
    Compact,
    Fails,
    Step,
    steps_of_round,
)

VANISHED = "No such file or directory"
"""Hadoop fails to list a directory of this machine from which a file goes meanwhile, even a hidden one, such as a copy
that is not complete yet. HDFS and object stores list them."""
EXTERNAL = "external"
TARGETS = ("native", EXTERNAL)


class HiveDeployment(AcidTables):
    """A source that Hive writes, and two targets at one metastore: one has all tables as ACID tables, the other one the
    insert-only ones as external tables. `by_hive` has what Hive read at each."""

    def __init__(self, root: Path, source: Metastore, target: Metastore, writer: AcidHive, at_target: AcidHive) -> None:
        super().__init__(root, source, dict.fromkeys(TARGETS, target))
        self.hive, self.at_target = writer, at_target
        self.by_hive = {name: Reads() for name in TARGETS}
        self.vanished = 0
        """Reads of Hive's that failed because a file went."""
        self.reading: Future[None] | None = None

    def policy(self, name: str, index: int) -> Policy:
        if name != EXTERNAL:
            return super().policy(name, index)
        database, warehouse = self.databases[0], f"file:{self.root}/wh_{name}"
        include = tuple(f"{database}.{table}" for table in INSERT_ONLY_TABLES)
        rename = {database: f"{database}_{name}"}
        return Policy(name, "hq", include=include, rename=rename, warehouse=warehouse, acid="external")

    # The source

    def begin(self) -> None:
        self.hive.run(f"CREATE DATABASE {self.database}")
        self.hive.run(f"USE {self.database}")
        self.play(TABLES)

    def play(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Fails(text):
                    with pytest.raises(AssertionError):
                        self.hive.run(text)
                case Compact(table, partition, is_major):
                    self.hive.compact(TableName(self.database, table), partition, is_major=is_major)
                case str():
                    self.hive.run(step)
            self.note_rows()

    def check_reader(self) -> None:
        """Hive reads at the source what the tests' own reader reads."""
        for name, found in self.at_source.tables().items():
            rows = self.hive.run(select(TableName(self.database, name), is_full=is_full_acid(found.table)))
            assert tuple(sorted(rows)) == self.read_source()[name], name

    # The targets

    def watch_rows(self) -> None:
        """Also Hive, at all targets."""

        def watch(session: Hive) -> None:
            while not self.watching.is_set():
                for replica in self.replicas:
                    self.read_by_hive(session, replica)

        self.reading = self.at_target.begin(watch)
        super().watch_rows()

    def stop_watching(self) -> None:
        super().stop_watching()
        if self.reading is not None:
            self.reading.result()

    def read_by_hive(self, session: Hive, replica: Replica) -> None:
        """All tables, one after the other; but for those that are defined anew meanwhile."""
        for name, before in kept(replica.reader.tables()).items():
            now, at_target = time.time(), TableName(replica.reader.database, name)
            rows, problem = tried(session, select(at_target, is_full=is_full_acid(before.table)))
            after = replica.reader.tables().get(name)
            if VANISHED in problem:
                self.vanished += 1
            elif after is not None and shape(after) == shape(before):
                assert not problem, problem
                self.by_hive[replica.target.name].see(now, TableName(self.database, name), tuple(sorted(rows)))

    def problems(self) -> list[str]:
        by_hive = [(one, self.by_hive[one.target.name]) for one in self.replicas]
        found = [(one.target.name, problem) for one, reads in by_hive for problem in self.judged(one, reads)]
        return [*super().problems(), *(f"Hive at {name}: {problem}" for name, problem in found)]

    def check_rows(self) -> None:
        """Every target has the rows of the source, as both readers read them."""
        source = self.read_source()
        for replica in self.replicas:
            names = INSERT_ONLY_TABLES if replica.target.name == EXTERNAL else source.keys()
            wanted = {name: source[name] for name in names}
            assert wait_for(replica.reader.read) == wanted
            self.at_target.begin(lambda session, replica=replica: self.read_by_hive(session, replica)).result()
            last = self.by_hive[replica.target.name].last
            assert {name: last[TableName(self.database, name)] for name in wanted} == wanted


def select(name: TableName, *, is_full: bool) -> str:
    return f"SELECT {'ROW__ID, ' if is_full else ''}* FROM {name}"


def tried(session: Hive, statement: str) -> tuple[list[str], str]:
    """The rows, or why there are none."""
    try:
        return session.run(statement), ""
    except AssertionError as error:
        return [], str(error)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[HiveDeployment]:
    stock = MetastoreSettings(version="4.2.0", stock=True)
    with ExitStack() as stack:
        source = stack.enter_context(Metastore.start(SOURCE, tmp_path / "source"))
        target = stack.enter_context(Metastore.start(stock, tmp_path / "target"))
        writer = stack.enter_context(acid_hive(tmp_path / "hive_source", source))
        at_target = stack.enter_context(acid_hive(tmp_path / "hive_target", target))
        made = HiveDeployment(tmp_path, source, target, writer, at_target)
        stack.callback(made.close)
        yield made


@pytest.mark.parametrize(
    ("rounds", "reads", "by_hive"),
    [(2, 1_000, 40), pytest.param(6, 10_000, 200, marks=pytest.mark.prove)],
    ids=["short", "long"],
)
def test_hive_reads_at_replicas_only_what_it_wrote_at_the_source_and_writes_them_at_last(
    deployment: HiveDeployment, tmp_path: Path, rounds: int, reads: int, by_hive: int
) -> None:
    deployment.begin()
    deployment.start()
    deployment.watch_rows()
    for number in range(1, rounds + 1):
        deployment.play(steps_of_round(number, tmp_path))
        deployment.check_reader()
    deployment.settle()
    deployment.stop_watching()
    counts = deployment.reads(), sum(one.count for one in deployment.by_hive.values())
    print(f"{counts[0]} reads, {counts[1]} by Hive, {deployment.vanished} more of these failed as files went")
    assert not (problems := deployment.problems()), "\n".join(problems[:5])
    assert counts[0] >= reads
    assert counts[1] >= by_hive + deployment.vanished
    deployment.check_rows()
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0
    deployment.at_target.run(f"USE {deployment.database}")
    for statement in AFTER_TAKEOVER:
        deployment.hive.run(statement)
        deployment.at_target.run(statement)
    for table in ("f", "p", "b", "m", "q", "c"):
        assert sorted(deployment.at_target.run(f"SELECT * FROM {table}")) == sorted(
            deployment.hive.run(f"SELECT * FROM {table}")
        ), table
