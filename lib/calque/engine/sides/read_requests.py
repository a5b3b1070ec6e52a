"""The reads that operators asked for and that are not done yet: the tables, and the mode of each read.

The ledger has a request before the message that brought it is gone, and keeps it until a read that began after the
request has ended. So a request survives a crash, and a request that comes while the table is being copied or read is
not taken for done by that:

    A read of `t` begins for its request, which counts 1. An operator asks again, and the request counts 2. When the
    read ends, it is done for the request with count 1 only. So the request stays, and `t` is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from calque.model.names import TableName
from calque.model.records import ReadMode, ReadRequest, Record, RecordKey, all_of, record_key, request_key
from calque.ports import Ledger

LOOKING = frozenset({ReadMode.LOOK, ReadMode.ADOPT})


@dataclass(slots=True)
class ReadRequests:
    """The requests, by mode and table. Safe from several threads."""

    requests: dict[RecordKey, ReadRequest] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, records: Iterable[Record]) -> None:
        """Take over the requests that the ledger has."""
        with self.lock:
            self.requests = {record_key(request): request for request in all_of(records, ReadRequest)}

    def add(self, ledger: Ledger, mode: ReadMode, names: Collection[TableName], reason: str) -> None:
        """Record a request of `mode` for each of the tables in the ledger. A request for the same mode and table
        replaces the earlier one with a higher count, so that a read which began before does not end it."""
        with self.lock:
            news = [self.once_more(ReadRequest(name, mode, 1, reason)) for name in sorted(names)]
            if news:
                ledger.put_records(news)
            self.requests |= {record_key(request): request for request in news}

    def once_more(self, request: ReadRequest) -> ReadRequest:
        before = self.requests.get(record_key(request))
        return replace(request, requests=before.requests + 1) if before is not None else request

    def of(self, name: TableName) -> frozenset[ReadRequest]:
        """Return all requests for a table."""
        with self.lock:
            keys = [request_key(mode, name) for mode in ReadMode] if self.requests else ()
            return frozenset(request for key in keys if (request := self.requests.get(key)) is not None)

    def looks(self, name: TableName) -> bool:
        return any(request.mode in LOOKING for request in self.of(name))

    def adopts(self, name: TableName) -> bool:
        return any(request.mode is ReadMode.ADOPT for request in self.of(name))

    def counts(self, name: TableName) -> bool:
        return any(request.mode is ReadMode.COUNT for request in self.of(name))

    def copies(self, name: TableName) -> bool:
        return any(request.mode is ReadMode.COPY for request in self.of(name))

    def reasons(self) -> dict[TableName, str]:
        """Return the tables that have requests, each with the reason of one."""
        with self.lock:
            return {request.table: request.reason for request in self.requests.values()}

    def done(self, ledger: Ledger, requests: Collection[ReadRequest]) -> None:
        """Remove requests: reads that began when these were there have ended. A request that was repeated since
        stays."""
        with self.lock:
            removed_keys = [record_key(one) for one in requests if self.requests.get(record_key(one)) == one]
            if removed_keys:
                ledger.remove_records(removed_keys)
            for key in removed_keys:
                del self.requests[key]
