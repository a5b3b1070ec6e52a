"""Metastores with ACID tables, for the contract suite of transactions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace

from calque.adapters.metastore.transactions import HiveReplicatedTransactions, HiveTransactionReader
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.formats.layout import place
from calque.model.hive import Column, Database, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.ports.transactions import ReplicatedTransactions, TransactionReader
from calque.sandbox.writer import HiveClient
from support.memory.metastore import MemoryMetastore, MemoryReplicatedTransactions, MemoryTransactionReader
from support.sources.plain_transactions import HiveTransactions, PlainTransactions
from support.worlds.metastore_worlds import World

WORLDS = ("memory-3", "memory-4", "hive-3.1.3", "hive-4.2.0")
ORC_PACKAGE = "org.apache.hadoop.hive.ql.io.orc"
ORC = Storage(
    columns=(Column("id", "int"), Column("v", "string")),
    input_format=f"{ORC_PACKAGE}.OrcInputFormat",
    output_format=f"{ORC_PACKAGE}.OrcOutputFormat",
    buckets=-1,
    serde=SerDe(None, f"{ORC_PACKAGE}.OrcSerde", {}),
)
INSERT_ONLY: Mapping[str, str] = {"transactional": "true", "transactional_properties": "insert_only"}
FULL_ACID: Mapping[str, str] = {"transactional": "true", "transactional_properties": "default"}


@dataclass(frozen=True, slots=True)
class TransactionWorld:
    """`base` is the metastore; `replicated` has a policy of its own. The sandbox's 3.1.3 lacks the classes without
    which it takes no full ACID tables: the tables of tests that are about transactions alone are insert-only there."""

    base: World
    reader: TransactionReader
    replicated: ReplicatedTransactions
    plain: PlainTransactions

    @property
    def takes_full_acid(self) -> bool:
        return self.base.name != "hive-3.1.3"

    def replicated_under(self, policy: str) -> ReplicatedTransactions:
        return replicated_of(self.base, policy)

    def table(self, name: str, database: str = "sales", parameters: Mapping[str, str] | None = None) -> Table:
        if parameters is None:
            parameters = FULL_ACID if self.takes_full_acid else INSERT_ONLY
        return Table(
            name,
            self.base.database(database),
            "owner",
            storage=ORC,
            partition_keys=(),
            parameters=parameters,
            type="MANAGED_TABLE",
        )

    def created(self, *names: str, parameters: Mapping[str, str] | None = None) -> list[TableName]:
        """Tables in `sales`, at places that the metastore chooses. The database is made with the first of them."""
        catalog, database = self.base.catalog, self.base.database()
        if catalog.database(database) is None:
            catalog.create_database(Database(database))
        return [self.base.created(self.table(name, parameters=parameters)) for name in names]

    def rename(self, name: TableName, to: TableName) -> TableName:
        self.base.catalog.alter_table(name, replace(self.the_table(name), database=to.database, name=to.table))
        return to

    def set_parameters(self, name: TableName, parameters: Mapping[str, str]) -> None:
        table = self.the_table(name)
        self.base.catalog.alter_table(name, replace(table, parameters={**(table.parameters or {}), **parameters}))

    def the_table(self, name: TableName) -> Table:
        table = self.base.catalog.table(name)
        assert table is not None
        return table

    def valid(self, name: TableName) -> ValidWriteIds:
        return self.reader.valid_write_ids([name])[name]

    def written(self, *names: TableName) -> dict[TableName, int]:
        """The write ids of a committed transaction that wrote to these tables."""
        [transaction] = self.plain.open()
        write_ids = {name: self.plain.allocate(name, [transaction])[transaction] for name in names}
        self.plain.commit(transaction)
        return write_ids

    def drop(self, name: TableName, *, delete_data: bool) -> None:
        """The directory goes in any case: it would be in the way of a rename to the name."""
        location = location_of(self.the_table(name)) or ""
        self.base.writer.drop_table(name, delete_data=delete_data)
        shutil.rmtree(place(location).path, ignore_errors=True)


def replicated_of(world: World, policy: str) -> ReplicatedTransactions:
    if isinstance(world.writer, HiveClient):
        return HiveReplicatedTransactions(world.writer.client, policy)
    return MemoryReplicatedTransactions(world.writer, policy)


def transaction_world(world: World) -> TransactionWorld:
    replicated = replicated_of(world, f"replica_{world.number}.*")
    writer = world.writer
    if isinstance(writer, MemoryMetastore):
        return TransactionWorld(world, MemoryTransactionReader(writer), replicated, writer.transactions)
    client = writer.client
    return TransactionWorld(world, HiveTransactionReader(client), replicated, HiveTransactions(client))
