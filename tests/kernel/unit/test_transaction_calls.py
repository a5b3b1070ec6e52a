"""Transactions over Thrift: what is told in bits and texts, and servers that do not have the calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.transactions import (
    HiveReplicatedTransactions,
    HiveTransactionReader,
    open_and_aborted,
    snapshot_text,
)
from calque.errors import Refused
from calque.model.names import TableName
from calque.model.transactions import OpenTransactions
from support.memory.metastore import MemoryLog, MemoryMetastore
from support.services.logserver import log_server

NAME = TableName("sales", "orders")
CALLS: dict[str, Callable[[HiveTransactionReader, HiveReplicatedTransactions], object]] = {
    "open_transactions": lambda reader, _: reader.open_transactions(),
    "valid_write_ids": lambda reader, _: reader.valid_write_ids([NAME]),
    "open": lambda _, replicated: replicated.open(1),
    "allocate": lambda _, replicated: replicated.allocate(1, NAME, 1),
    "commit": lambda _, replicated: replicated.commit(1),
    "roll_back": lambda _, replicated: replicated.roll_back(1),
}


@pytest.mark.parametrize(
    ("ids", "bits", "aborted"),
    [
        ((), b"", set()),
        ((3, 5), b"", set()),
        ((3, 5), b"\x02", {5}),
        (tuple(range(1, 12)), b"\x81\x04", {1, 8, 11}),
    ],
)
def test_bits_tell_aborted_ids_from_open_ones(ids: tuple[int, ...], bits: bytes, aborted: set[int]) -> None:
    assert open_and_aborted(ids, bits) == (set(ids) - aborted, aborted)


def test_a_snapshot_has_the_lowest_open_transaction_and_all_that_are_not_committed() -> None:
    some = OpenTransactions(12, frozenset({11, 4, 9}), frozenset({10, 2}))
    assert snapshot_text(some) == "12:4:4,9,11:2,10"
    assert snapshot_text(OpenTransactions(7)) == "7:9223372036854775807::"


@pytest.mark.parametrize("call", CALLS)
def test_a_server_without_write_ids_is_refused(call: str) -> None:
    with log_server(MemoryLog(MemoryMetastore())) as server:
        client = Client(server.uri, connect_timeout=10, call_timeout=10)
        with pytest.raises(Refused, match="has no write ids"):
            CALLS[call](HiveTransactionReader(client), HiveReplicatedTransactions(client, "replica.*"))
        client.close()
