"""The wiring of Delta replicas: the parts of a target whose tables may be Delta tables, and the format's value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calque.core.formats.deltalog import LOG
from calque.model.hive import Partition, Table
from calque.plugins.delta_replicas.core.replica_mark import DELTA
from calque.ports import TargetParts
from calque.wiring.kinds import TargetContext


@dataclass(frozen=True, slots=True)
class DeltaFormat:
    """The format `delta` of tables at a target (port `ports.formats.TableFormat`)."""

    name: str = DELTA
    log: str = LOG

    def misfit(self, table: Table, partitions: Iterable[Partition]) -> str:
        from calque.plugins.delta_replicas.core.fit import why_not_delta

        return why_not_delta(table, partitions)


def with_delta_tables(parts: TargetParts, context: TargetContext) -> TargetParts:
    from calque.plugins.delta_replicas.adapters.catalog import with_delta_replicas
    from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs

    logs = ReplicaLogs(context.storage, context.plug.keys.grace)
    return with_delta_replicas(parts, context.storage, logs, context.next_epoch)
