"""The external tables of an increment. A load copies their files as they are at the source now, because no event tells
of changes to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from calque.core.formats.layout import join
from calque.core.images.image import TYPE
from calque.engine.sides.sides import TargetSide
from calque.model.hive import is_partitioned, location_of
from calque.model.journal import TableShape
from calque.model.names import TableName, table_name
from calque.model.scan import Scan
from calque.plugins.dumps.core.partition_places import PartitionPlaces, places_after, unusual
from calque.plugins.dumps.wiring.dump_source import DumpSource

EXTERNAL = "EXTERNAL_TABLE"


def places_at_source(source: DumpSource, known: PartitionPlaces) -> PartitionPlaces:
    """Return the places of partitions of external tables at the source after the dump, as the dump says them, or as
    they were `known` before. Only places are returned that are not below their table's directory, under the partition's
    name."""
    dump, catalog = source.dump, source.side.catalog
    roots = external_roots(source)
    places = {} if dump.metadata.is_bootstrap else places_after(known, source.events.entries)
    whole = [name for name in source.whole() if name in roots]
    for name in whole:
        partitions = catalog.partitions(name, catalog.partition_names(name))
        places[name] = {key: place for key, one in partitions.items() if (place := location_of(one))}
    return {
        name: unusual_places
        for name, partitions in places.items()
        if name in roots and (unusual_places := unusual(roots[name], partitions))
    }


def external_roots(source: DumpSource) -> dict[TableName, str]:
    """Return the directory of each external table that the dump lists. A partition that lies elsewhere has a line of
    its own behind its table's, which is passed over."""
    roots: dict[TableName, str] = {}
    for directory in source.dump.external():
        roots.setdefault(table_name(source.dump.database, directory.table.rpartition(".")[2]), directory.source)
    return roots


def external_scans(source: DumpSource, side: TargetSide, before: PartitionPlaces = MappingProxyType({})) -> list[Scan]:
    """Return a scan of each external table that the target has and the dump lists; an empty list for a bootstrap. A
    partition is looked for where the dumps say that it lies; where none says it, below its table's directory, under its
    name. `before` are the places that the dumps before this one said."""
    if source.dump.metadata.is_bootstrap:
        return []
    after = places_at_source(source, before)
    places = {name: {**before.get(name, {}), **after.get(name, {})} for name in {*before, *after}}
    roots = external_roots(source).items()
    return [scan for name, root in roots for scan in scans_of(source, side, name, root, places.get(name, {}))]


def scans_of(
    source: DumpSource, side: TargetSide, name: TableName, root: str, unusual_places: Mapping[str, str]
) -> Iterator[Scan]:
    target_name = side.admission.name_at_target(name)
    table = side.catalog.table(target_name) if side.admission.takes(name) else None
    if table is None or (table.parameters or {}).get(TYPE) != EXTERNAL:
        return
    is_plain = not is_partitioned(table)
    partitions = [""] if is_plain else side.catalog.partition_names(target_name)
    places = {partition: unusual_places.get(partition, join(root, partition)) for partition in partitions}
    listings = source.opened.storage.list(sorted({*places.values()})) if places else {}
    found = {partition: listings[place] for partition, place in places.items() if not listings[place].missing}
    if found:
        shape = TableShape.PLAIN if is_plain else TableShape.PARTITIONED
        yield Scan(source.dump.end, int(time.time()), name, shape, found)
