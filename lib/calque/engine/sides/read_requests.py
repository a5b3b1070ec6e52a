"""Reads that operators asked for and that are not done yet: of which tables, and how.

Each stands in the ledger before the request that brought it is gone, and stays there until a read that began after it
has ended: neither a table that is just being copied or read nor a crash makes it forgotten.
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
    """What operators asked for, by mode and table. Safe from several threads."""

    requests: dict[RecordKey, ReadRequest] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, records: Iterable[Record]) -> None:
        """Take up what the ledger says."""
        with self.lock:
            self.requests = {record_key(request): request for request in all_of(records, ReadRequest)}

    def add(self, ledger: Ledger, mode: ReadMode, names: Collection[TableName], reason: str) -> None:
        """Make it durable."""
        with self.lock:
            news = [self.once_more(ReadRequest(name, mode, 1, reason)) for name in sorted(names)]
            if news:
                ledger.put_records(news)
            self.requests |= {record_key(request): request for request in news}

    def once_more(self, request: ReadRequest) -> ReadRequest:
        before = self.requests.get(record_key(request))
        return replace(request, requests=before.requests + 1) if before is not None else request

    def of(self, name: TableName) -> frozenset[ReadRequest]:
        """All that is asked for of a table now."""
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
        """The tables of which something is asked for, with why."""
        with self.lock:
            return {request.table: request.reason for request in self.requests.values()}

    def done(self, ledger: Ledger, requests: Collection[ReadRequest]) -> None:
        """Reads that began when these were asked for have ended."""
        with self.lock:
            removed_keys = [record_key(one) for one in requests if self.requests.get(record_key(one)) == one]
            if removed_keys:
                ledger.remove_records(removed_keys)
            for key in removed_keys:
                del self.requests[key]
