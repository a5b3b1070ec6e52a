"""The trial whether a target's metastore can have native replicas of ACID tables (docs/acid.md)."""

from __future__ import annotations

from dataclasses import replace
from secrets import randbits, token_hex

from calque.core.formats.layout import join
from calque.core.images.image import COMMIT_MARK
from calque.engine.sides.calque_database import SHAPE, ensure_managed_place
from calque.engine.sides.sides import TargetTransactions
from calque.errors import Refused
from calque.model.hive import INSERT_ONLY, Table
from calque.model.names import OURS, TableName
from calque.model.transactions import CommitMark
from calque.ports import Catalog, Conflict, Storage

AHEAD = 3
"""The write id that the trial gives. It is not the next one, as that of a state whose past was passed over."""


def why_not_native(catalog: Catalog, storage: Storage, transactions: TargetTransactions, warehouse: str) -> str:
    """Return why the target can't have native replicas; empty where it can. A scratch table in calque's own database is
    made, written to in a transaction by a write id ahead, and dropped. Raises `Unavailable`."""
    name = TableName(OURS, f"{OURS}_trial_{token_hex(6)}")
    location = join(warehouse, f"{OURS}/{name.table}")
    try:
        ensure_managed_place(catalog, warehouse, OURS)
        catalog.create_table(scratch(name, location))
        try:
            return why_not_written(catalog, transactions, name)
        finally:
            catalog.drop_table(name)
    except (Conflict, Refused) as error:
        return str(error)
    finally:
        storage.remove([location])


def why_not_written(catalog: Catalog, transactions: TargetTransactions, name: TableName) -> str:
    table = catalog.table(name)
    if table is None or table.id is None:
        return "It gives tables no ids, so commits can't mark what they show"
    number, mark = randbits(62), str(AHEAD)
    transactions.writer.open(number)
    try:
        transactions.writer.allocate(number, name, AHEAD)
    finally:
        transactions.writer.commit(number, CommitMark(table.id, COMMIT_MARK, mark))
    marked = catalog.table(name)
    if marked is None or (marked.parameters or {}).get(COMMIT_MARK) != mark:
        return "Its commits set no parameters of tables"
    if not transactions.reader.valid_write_ids([name])[name].holds(AHEAD):
        return f"It did not give write id {AHEAD} before those below"
    return ""


def scratch(name: TableName, location: str) -> Table:
    parameters = {"transactional": "true", "transactional_properties": INSERT_ONLY, COMMIT_MARK: "0"}
    return Table(
        name.table,
        name.database,
        storage=replace(SHAPE, location=location),
        partition_keys=(),
        parameters=parameters,
        type="MANAGED_TABLE",
    )
