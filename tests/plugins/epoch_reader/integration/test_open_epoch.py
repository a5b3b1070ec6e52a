"""Reading tables as of an epoch, on real metastores, while the source is written to and the target is swept."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calque
from calque.adapters.spark.session import session
from calque.app import APP
from calque.commands.sweep import sweep_one
from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.sandbox import Metastore, spark_jars
from support.services.deployments import NUMBERS, Deployment

PARQUET = SerDe(class_name="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", parameters={})
FORMATS = (
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
)
NUMBER = next(NUMBERS)
BANK, OTHER = f"d1x{NUMBER}", f"d2x{NUMBER}"
DEBITS, CREDITS, BALANCE = (TableName(BANK, name) for name in ("debits", "credits", "balance"))
ALL = tuple(map(str, (BALANCE, CREDITS, DEBITS)))
State = tuple[frozenset[int], frozenset[int], int]
"""The transfers that were taken from one account, those that were given to the other, and the newest balance."""


@dataclass
class Bank:
    """Makes transfers at the source, each of three calls; `states` are those that its tables were in, with the event
    at which each began."""

    deployment: Deployment
    states: list[tuple[int, State]] = field(default_factory=list)
    debits: set[int] = field(default_factory=set)
    credits: set[int] = field(default_factory=set)
    balance: int = 0

    def storage(self, location: str) -> Storage:
        columns = (Column("amount", "bigint"),)
        return Storage(columns, f"file:{self.deployment.root}/source/{location}", *FORMATS, serde=PARQUET)

    def file(self, location: str, amount: int) -> None:
        at = self.deployment.root / "source" / location
        at.mkdir(parents=True)
        pq.write_table(pa.table({"amount": pa.array([amount], pa.int64())}), at / ".draft")
        (at / ".draft").rename(at / "part-0.parquet")

    def table(self, name: TableName, *keys: Column, at: str = "") -> Table:
        storage = self.storage(at or name.table)
        external = {"EXTERNAL": "TRUE"}
        return Table(
            name.table,
            name.database,
            "me",
            storage=storage,
            partition_keys=keys,
            parameters=external,
            type="EXTERNAL_TABLE",
        )

    def begin(self) -> None:
        client = self.deployment.source.client
        client.create_database(Database(BANK))
        for name in (DEBITS, CREDITS):
            client.create_table(self.table(name, Column("n", "int")))
        self.file("balance/0", 0)
        client.create_table(self.table(BALANCE, at="balance/0"))
        self.note()

    def note(self) -> None:
        state = frozenset(self.debits), frozenset(self.credits), self.balance
        self.states.append((self.deployment.source.current(), state))

    def transfer(self, number: int) -> None:
        """Taken, given, and booked; every fifth undoes the oldest one."""
        client = self.deployment.source.client
        for name, those in ((DEBITS, self.debits), (CREDITS, self.credits)):
            location = f"{name.table}/{number}"
            self.file(location, number)
            client.add_partitions(
                name, [Partition((str(number),), *name, storage=self.storage(location), parameters={})]
            )
            those.add(number)
            self.note()
        self.balance += number
        self.file(f"balance/{number}", self.balance)
        client.alter_table(BALANCE, self.table(BALANCE, at=f"balance/{number}"))
        self.note()
        if number % 5 == 0:
            oldest = min(self.debits)
            for name, those in ((DEBITS, self.debits), (CREDITS, self.credits)):
                client.drop_partitions(name, [f"n={oldest}"], delete_data=False)
                those.discard(oldest)
                self.note()

    def work(self, transfers: int) -> None:
        """With pauses, in which all tables may be shown at one event."""
        for number in range(2, transfers):
            self.transfer(number)
            time.sleep(0.4)

    def at(self, event_id: int) -> State:
        return [state for since, state in self.states if since <= event_id][-1]


@pytest.fixture
def bank(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Bank]:
    """Two targets in one metastore, one of each consistency."""
    at = {"one": servers["target"], "two": servers["target"]}
    deployment = Deployment(tmp_path, NUMBER, servers["source"], at, 1)
    text = deployment.config.read_text().replace(f'{OTHER} = "{OTHER}_dr"', f'{BANK} = "bank_two"')
    text = text.replace(f', "{OTHER}.*"', "")
    text = text.replace("[targets.one]", '[targets.one]\ngrace = "4s"')
    text = text.replace("[targets.two]", '[targets.two]\ngrace = "4s"\nconsistency = "database"')
    deployment.config.write_text(text)
    yield Bank(deployment)
    deployment.close()


def read(epoch: calque.OpenEpoch) -> State:
    debits, given, balance = (epoch.arrow(str(name)).to_table() for name in (DEBITS, CREDITS, BALANCE))
    assert debits["amount"].to_pylist() == debits["n"].to_pylist()
    return frozenset(debits["n"].to_pylist()), frozenset(given["n"].to_pylist()), balance["amount"].to_pylist()[0]


def test_an_epoch_is_one_state_of_all_tables_while_the_source_changes_and_old_files_are_swept(bank: Bank) -> None:
    bank.begin()
    deployment = bank.deployment
    deployment.start()
    deployment.settle()
    bank.transfer(1)
    deployment.settle()  # as the stream, which begins after the bootstrap on a busy machine
    done, problems = threading.Event(), list[str]()
    wiring = APP.wiring(APP.load(deployment.config))

    def sweep() -> None:
        while not done.wait(1):
            for target in ("one", "two"):
                try:
                    sweep_one(wiring, target, APP)
                except Unavailable as error:
                    problems.append(str(error))

    with ThreadPoolExecutor(2) as pool:
        sweeping = pool.submit(sweep)
        writing = pool.submit(bank.work, 16)
        seen: dict[str, dict[int, State]] = {"one": {}, "two": {}}
        held = calque.open_epoch(deployment.config, "one", tables=ALL)
        was = read(held)
        deadline = time.monotonic() + 90
        try:
            while not writing.done() or any(bank.at(2**62) not in found.values() for found in seen.values()):
                assert time.monotonic() < deadline, deployment.tail()
                for target, found in seen.items():
                    try:
                        opened = calque.open_epoch(deployment.config, target, tables=ALL)
                    except Unavailable:
                        continue
                    with opened as epoch:
                        assert {*ALL} <= {*epoch.tables()}
                        found[epoch.event_id] = read(epoch)
        finally:
            done.set()
        writing.result(60)
        sweeping.result(60)
    for found in seen.values():
        assert {event_id: bank.at(event_id) for event_id in found} == found
        assert len(found) >= 3
    assert (read(held), was) == (was, bank.at(held.event_id))
    held.close()
    time.sleep(4.1)
    for _ in range(2):
        sweep_one(wiring, "one", APP)
    with pytest.raises(Refused, match="no epoch at or below event"):
        calque.open_epoch(deployment.config, "one", at=held.event_id)
    with pytest.raises(Unavailable, match="has not reached event"):
        calque.open_epoch(deployment.config, "one", at=10**9)
    spark = session("epochs", spark_jars(), deployment.root / "spark")
    with calque.open_epoch(deployment.config, "two", tables=ALL) as epoch:
        frames = [epoch.spark(spark, str(name)) for name in (DEBITS, CREDITS)]
        found = [sorted((row["amount"], row["n"]) for row in frame.collect()) for frame in frames]
        assert found == [[(number, number) for number in sorted(numbers)] for numbers in bank.at(epoch.event_id)[:2]]
        assert frames[0].dtypes == [("amount", "bigint"), ("n", "int")]
        spark.dataSource.register(calque.EpochSource)
        source = spark.read.format("calque").option("config", str(deployment.config)).option("target", "two")
        rows = source.option("event", epoch.event_id).load(str(DEBITS)).collect()
        assert sorted((row["amount"], row["n"]) for row in rows) == found[0]
        assert epoch.spark(spark, str(BALANCE)).collect()[0]["amount"] == bank.at(epoch.event_id)[2]
