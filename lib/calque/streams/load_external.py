"""External tables of an increment: their files are copied as they are at the source now, as no event tells of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from calque.core.image import TYPE
from calque.core.layout import join
from calque.engine.sides.sides import TargetSide
from calque.model.hive import is_partitioned
from calque.model.journal import TableShape
from calque.model.names import TableName, table_name
from calque.model.scan import Scan
from calque.wiring.dump import DumpSource

EXTERNAL = "EXTERNAL_TABLE"


def external_scans(source: DumpSource, side: TargetSide) -> list[Scan]:
    """One of each external table that the target has and the dump lists. A partition is looked for below its table's
    directory, under its name."""
    dump = source.dump
    if dump.metadata.is_bootstrap:
        return []
    directories: dict[TableName, str] = {}
    for directory in dump.external():
        directories.setdefault(table_name(dump.database, directory.table.rpartition(".")[2]), directory.source)
    return [scan for name, location in directories.items() for scan in scans_of(source, side, name, location)]


def scans_of(source: DumpSource, side: TargetSide, name: TableName, location: str) -> Iterator[Scan]:
    target_name = side.admission.name_at_target(name)
    table = side.catalog.table(target_name) if side.admission.takes(name) else None
    if table is None or (table.parameters or {}).get(TYPE) != EXTERNAL:
        return
    is_plain = not is_partitioned(table)
    partitions = [""] if is_plain else side.catalog.partition_names(target_name)
    places = {partition: join(location, partition) for partition in partitions}
    listings = source.opened.storage.list(sorted(places.values())) if places else {}
    found = {partition: listings[place] for partition, place in places.items() if not listings[place].missing}
    if found:
        shape = TableShape.PLAIN if is_plain else TableShape.PARTITIONED
        yield Scan(source.dump.end, int(time.time()), name, shape, found)
