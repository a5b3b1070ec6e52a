"""Hive with ACID tables: its driver with transactions, and the compactions that it makes of tables.

The compactor's worker runs in Hive's own process, its cleaner in the metastore, without an initiator: only what a test
asks for is compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from getpass import getuser
from pathlib import Path
from typing import TypeVar

from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.hive_driver import HIVE_4_0, Hive, hive

T = TypeVar("T")
SOURCE = replace(
    HIVE_4_0,
    extra={
        **HIVE_4_0.extra,
        "metastore.housekeeping.leader.hostname": "",
        "metastore.compactor.initiator.on": "false",
        "metastore.compactor.cleaner.on": "true",
        "hive.compactor.cleaner.run.interval": "200ms",
    },
)
"""A server with a cleaner."""
TRANSACTIONS: Mapping[str, str] = {
    "hive.support.concurrency": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.exec.dynamic.partition.mode": "nonstrict",
    "hive.stats.autogather": "true",
    # The server's listener lacks a class for a transaction's second write to one table.
    "hive.metastore.dml.events": "false",
    # A join in a process of its own wants a program of Hadoop's.
    "hive.auto.convert.join": "false",
    "mapreduce.client.progressmonitor.pollinterval": "50",
    "mapreduce.client.completion.pollinterval": "50",
}
COMPACTOR = "org.apache.hadoop.hive.ql.txn.compactor"
API = "org.apache.hadoop.hive.metastore.api"


@dataclass(frozen=True, slots=True)
class AcidHive:
    """A session of Hive in a thread of its own, which takes calls of all threads, one after the other."""

    hive: Hive
    thread: ThreadPoolExecutor

    def run(self, statement: str) -> list[str]:
        """The rows, with tabs between columns."""
        return self.thread.submit(self.hive.run, statement).result()

    def begin(self, work: Callable[[Hive], T]) -> Future[T]:
        """Work with the session, in its thread."""
        return self.thread.submit(work, self.hive)

    def compact(self, name: TableName, partition: str = "", *, is_major: bool) -> None:
        """Have the worker compact a table without partitions, or a partition. The cleaner comes by itself."""
        self.begin(lambda session: compact(session, name, partition, is_major=is_major)).result()


@contextmanager
def acid_hive(folder: Path, metastore: Metastore) -> Iterator[AcidHive]:
    with ThreadPoolExecutor(1) as thread:
        folder.mkdir(exist_ok=True)
        session = hive(folder, metastore, **TRANSACTIONS)
        try:
            yield AcidHive(thread.submit(session.__enter__).result(), thread)
        finally:
            thread.submit(session.__exit__, None, None, None).result()


def compact(session: Hive, name: TableName, partition: str, *, is_major: bool) -> None:
    """Ask for a compaction, and be the worker that takes it."""
    jvm = session.jvm
    java = {each: getattr(jvm, f"{API}.{each}") for each in ("CompactionRequest", "CompactionType")}
    kind = java["CompactionType"].MAJOR if is_major else java["CompactionType"].MINOR
    request = java["CompactionRequest"](*name, kind)
    request.setRunas(getuser())
    if partition:
        request.setPartitionname(partition)
    client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(session.configuration)
    try:
        assert client.compact2(request).isAccepted(), name
        worker = getattr(jvm, f"{COMPACTOR}.Worker")()
        worker.setConf(session.configuration)
        worker.init(jvm.java.util.concurrent.atomic.AtomicBoolean(True))
        worker.run()
        failed = [one for one in client.showCompactions().getCompacts() if one.getState() == "failed"]
        assert not failed, failed[0].getErrorMessage()
    finally:
        client.close()
