"""The catalog of a target in which tables may be Delta tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calque.core.images.table_layout import DELTA
from calque.model.hive import Partition, Table
from calque.plugins.delta_replicas.adapters.catalog import DeltaReplicaCatalog
from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs
from calque.plugins.delta_replicas.core.fit import why_not_delta
from calque.ports import Catalog
from calque.wiring.kinds import CatalogContext


@dataclass(frozen=True, slots=True)
class DeltaFormat:
    """`ports.formats.TableFormat`."""

    name: str = DELTA

    def misfit(self, table: Table, partitions: Iterable[Partition]) -> str:
        return why_not_delta(table, partitions)


def with_delta_tables(catalog: Catalog, context: CatalogContext) -> Catalog:
    logs = ReplicaLogs(context.storage, context.plug.keys.grace)
    return DeltaReplicaCatalog(catalog, context.storage, logs, context.next_epoch)
