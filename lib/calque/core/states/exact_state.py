"""Chains of exact reads: one step leads from the state that the target shows to the table as it was read.

Objects that look the same already keep their definitions, so that a repair, or a target that was taken over, costs only
what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.formats.bounded import number_of
from calque.core.formats.iceberg import is_displaced, is_iceberg
from calque.core.images.compare import same_place
from calque.core.images.image import EVENT, INCARNATION, ImageBuilder, Marks, is_ours, same_definition
from calque.core.states.fold import Chain, PartCell, Step
from calque.model.hive import Partition, Table, is_partitioned, is_transactional, is_view
from calque.model.journal import TableShape
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, BASE_DATA, Data, Head, Part, Version

OLD, NEW = 1, 2


def landing(
    name: TableName,
    exact_at: EventId,
    table: Table | None,
    partitions: Mapping[str, Partition],
    locations: Mapping[str, str],
    imaging: ImageBuilder,
    target_table: Table | None,
    target_partitions: Mapping[str, Partition],
    absent_at: EventId | None = None,
) -> Chain:
    """Return the chain of an exact read of the table `name` at event `exact_at`.

    `table` and `partitions` are the source's (None: there is no table), `locations` the source's directories by
    partition (`""`: a plain table's own). `target_table` is the target's table, `target_partitions` are all of its
    partitions. Versions are (exact_at, index of the partition in `partitions`); the table's index is -1. With
    `absent_at` the table is another one than the target's, because at that event the source had none of its name: a
    step before drops the target's.
    """
    chain = Chain((name,), events=1)
    if target_table is not None:
        chain.names[name] = OLD
        chain.heads[OLD] = Head(OLD, BASE, data=BASE_DATA)
    if table is None:
        if target_table is not None:
            chain.steps.append(Step((exact_at,), names={name: None}))
        return chain
    goes_on = target_table is not None and absent_at is None and same_incarnation(target_table, table, imaging)
    same_table = target_table if goes_on else None
    lineage = OLD if same_table else NEW
    chain.shapes[lineage] = shape_of(table)
    files_stay = not imaging.admission.copies(name)
    data = Data(exact_at, locations[""], stays=files_stay) if "" in locations else None
    names: dict[TableName, int | None] = {}
    parts: dict[PartCell, Part | None] = {}
    if same_table is None:
        chain.names.setdefault(name, None)
        names[name] = NEW
        if is_transactional(table):
            chain.transactional.add(NEW)
        if target_table is not None and absent_at is not None:
            chain.steps.append(Step((absent_at,), names={name: None}))
        chain.complete.add(NEW)
    else:
        for dropped_partition in target_partitions.keys() - partitions.keys():
            chain.parts[OLD, dropped_partition] = Part(dropped_partition, BASE, BASE_DATA)
            parts[OLD, dropped_partition] = None
    for index, (partition, definition) in enumerate(partitions.items()):
        old = target_partitions.get(partition) if same_table else None
        chain.parts[lineage, partition] = Part(partition, BASE, BASE_DATA) if old is not None else None
        content, version = Data(exact_at, locations.get(partition, ""), stays=files_stay), Version(exact_at, index)
        parts[lineage, partition] = landed_part(name, partition, definition, old, version, content, imaging)
    heads = {lineage: landed_head(name, table, same_table, exact_at, data, imaging)}
    chain.steps.append(Step((exact_at,), names, heads, parts))
    return chain


def landed_head(
    name: TableName, table: Table, same_table: Table | None, exact_at: EventId, data: Data | None, imaging: ImageBuilder
) -> Head:
    """Return the head of the table that was read. `same_table` is the target's table where it is the same
    incarnation."""
    version, fresh_incarnation = Version(exact_at, -1), f"r{exact_at}"
    if same_table is None:
        return Head(NEW, version, fresh_incarnation, data, exact_at)
    expected = imaging.table(table, Marks(exact_at, ""), None)
    if stays(name, same_table, table, expected, imaging) and not is_ahead(same_table.parameters, exact_at):
        return Head(OLD, BASE, "", data or BASE_DATA, exact_at)
    incarnation = fresh_incarnation if is_ahead_incarnation(same_table.parameters, exact_at) else ""
    return Head(OLD, version, incarnation, data, exact_at)


def landed_part(
    table: TableName,
    partition: str,
    definition: Partition,
    old: Partition | None,
    version: Version,
    content: Data,
    imaging: ImageBuilder,
) -> Part:
    """Return the partition that was read. `old` is the target's, of the same table; `version` is that of
    `definition`."""
    exact_at = version.event_id
    if old is None:
        return Part(f"{partition}@{exact_at}", version, content, f"r{exact_at}", exact_at)
    expected = imaging.partition(definition, table, Marks(exact_at, ""), None)
    if stays(table, old, definition, expected, imaging) and not is_ahead(old.parameters, exact_at):
        return Part(partition, BASE, content, "", exact_at)
    keeps_incarnation = has_incarnation(old) and not is_ahead_incarnation(old.parameters, exact_at)
    return Part(partition, version, content, "" if keeps_incarnation else f"r{exact_at}", exact_at)


def shape_of(table: Table) -> TableShape:
    if is_view(table):
        return TableShape.VIEW
    return TableShape.PARTITIONED if is_partitioned(table) else TableShape.PLAIN


def same_incarnation(target_table: Table, table: Table, imaging: ImageBuilder) -> bool:
    """Tell whether the target's table may go on as `table`: it is calque's, and has the same shape and partition keys,
    and the types of its columns are those that the source's begin with. In doubt it is another table. An Iceberg table
    may always go on as an Iceberg table, because its metadata keep track of its columns."""
    if is_iceberg(target_table) or is_iceberg(table):
        return is_ours(target_table.parameters, imaging.source) and is_iceberg(target_table) and is_iceberg(table)
    old, new = column_types(target_table), column_types(table)
    return (
        is_ours(target_table.parameters, imaging.source)
        and old == new[: len(old)]
        and shape_of(target_table) == shape_of(table)
        and partition_keys(target_table) == partition_keys(table)
    )


def column_types(table: Table) -> list[str]:
    columns = table.storage.columns if table.storage else None
    return [column.type for column in columns or ()]


def partition_keys(table: Table) -> list[tuple[str, str]]:
    return [(key.name.lower(), key.type) for key in table.partition_keys or ()]


def stays(
    table: TableName,
    target: Table | Partition,
    source: Table | Partition,
    expected: Table | Partition,
    imaging: ImageBuilder,
) -> bool:
    """Tell whether the definition at the target, of the table or one of its partitions, is the expected one and in its
    place. Where files stay at the source the place is the source's; an Iceberg table that is copied must have its
    metadata in its own directory."""
    if not unchanged(target, expected, facets=imaging.admission.acid(table) != "native"):
        return False
    if imaging.admission.copies(table):
        return not (isinstance(target, Table) and is_displaced(target))
    return (isinstance(source, Table) and is_view(source)) or same_place(source, target)


def unchanged(target: Table | Partition, expected: Table | Partition, *, facets: bool = True) -> bool:
    """Tell whether the definition at the target is the expected one, its incarnation and position aside; without
    `facets`, basic statistics, too."""
    return same_definition(without_incarnation(target), without_incarnation(expected), facets=facets)


def has_incarnation(thing: Table | Partition) -> bool:
    return bool((thing.parameters or {}).get(INCARNATION))


def is_ahead(parameters: Mapping[str, str] | None, event_id: EventId) -> bool:
    """Tell whether a mark of an object at the target names an event beyond `event_id`, the source's current one. Such a
    mark is of a log that went back, and another event will have its id: at event 80, a mark 95 would look newer than
    all of 81..95."""
    text = (parameters or {}).get(EVENT, "")
    return number_of(text) > event_id or is_ahead_incarnation(parameters, event_id)


def is_ahead_incarnation(parameters: Mapping[str, str] | None, event_id: EventId) -> bool:
    """Tell whether the object's incarnation names an event beyond `event_id`, so that the object needs another
    incarnation."""
    text = (parameters or {}).get(INCARNATION, "").removeprefix("r")
    return number_of(text) > event_id


def without_incarnation(thing: Table | Partition) -> object:
    parameters = {key: value for key, value in (thing.parameters or {}).items() if key != INCARNATION}
    return replace(thing, parameters=parameters)
