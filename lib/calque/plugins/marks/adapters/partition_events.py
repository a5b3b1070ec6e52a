"""The metastore's calls for single partitions that are done (port `PartitionEvents`), over Thrift.

Hive's servers, 3 and 4, keep a row for each call, for clients that ask (`isPartitionMarkedForEvent`), and tell their
listeners; the notification log has no event of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.messages import IS_PARTITION_MARKED, LOAD_DONE, MARK_PARTITION, Call, CallUnknown, Fault
from calque.errors import Refused
from calque.model.names import TableName
from calque.ports import Conflict


class HivePartitionEvents:
    def __init__(self, client: Client) -> None:
        self.client = client

    def mark_done(self, table: TableName, partition: Mapping[str, str]) -> None:
        self._call(MARK_PARTITION, table, partition)

    def is_done(self, table: TableName, partition: Mapping[str, str]) -> bool:
        return bool(self._call(IS_PARTITION_MARKED, table, partition))

    def _call(self, call: Call, table: TableName, partition: Mapping[str, str]) -> Any:
        try:
            return self.client.call(call, *table, dict(partition), LOAD_DONE)
        except CallUnknown as unknown:
            problem = f"The metastore at {self.client.uris} does not take {call.name}"
            raise Refused(problem, str(unknown), "Set metastore = false below [done]") from unknown
        except Fault as fault:
            error = settled(fault, call)
            if isinstance(error, Conflict) or fault.kind in ("UnknownTable", "UnknownDB", "InvalidPartition"):
                problem = f"The metastore at {self.client.uris} refused {call.name} of {table}"
                raise Refused(problem, fault.text or fault.kind, "Look whether the table is there") from fault
            raise error from fault
