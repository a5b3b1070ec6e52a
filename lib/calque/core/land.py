"""An exact read as a chain of one step: from what the target shows to the table as it was read.

Objects that look the same already keep their definitions, so that a repair or a taken-over target costs what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.compare import same_place
from calque.core.fold import Chain, PartCell, Step
from calque.core.iceberg import is_displaced, is_iceberg
from calque.core.image import EVENT, INCARNATION, ImageBuilder, Marks, is_ours, same_definition
from calque.model.hive import Partition, Table, is_partitioned, is_view
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
) -> Chain:
    """The chain. `locations` are the source's directories by partition (`""`: a plain table's own); `target_table` is
    the target's table, `target_partitions` all of its partitions. Versions are (exact_at, index of the partition in
    `partitions`); the table's index is -1."""
    chain = Chain((name,), events=1)
    if table is None:
        if target_table is not None:
            chain.names[name] = OLD
            chain.heads[OLD] = Head(OLD, BASE, data=BASE_DATA)
            chain.steps.append(Step((exact_at,), names={name: None}))
        return chain
    same_table = target_table is not None and same_incarnation(target_table, table, imaging)
    lineage = OLD if same_table else NEW
    data = Data(exact_at, locations[""]) if "" in locations else None
    fresh_incarnation = f"r{exact_at}"
    has_ahead_incarnation = target_table is not None and is_ahead_incarnation(target_table.parameters, exact_at)
    head = Head(
        lineage,
        Version(exact_at, -1),
        "" if same_table and not has_ahead_incarnation else fresh_incarnation,
        data,
        exact_at,
    )
    names: dict[TableName, int | None] = {}
    heads: dict[int, Head] = {}
    parts: dict[PartCell, Part | None] = {}
    if target_table is None:
        chain.names[name] = None
    else:
        chain.names[name] = OLD
        chain.heads[OLD] = Head(OLD, BASE, data=BASE_DATA)
    if same_table and target_table is not None:
        expected = imaging.table(table, Marks(exact_at, ""), None)
        if stays(target_table, table, expected, imaging) and not is_ahead(target_table.parameters, exact_at):
            head = Head(OLD, BASE, "", data or BASE_DATA, exact_at)
        for dropped_partition in target_partitions.keys() - partitions.keys():
            chain.parts[OLD, dropped_partition] = Part(dropped_partition, BASE, BASE_DATA)
            parts[OLD, dropped_partition] = None
    else:
        names[name] = NEW
        chain.complete.add(NEW)
    heads[lineage] = head
    for index, (partition, definition) in enumerate(partitions.items()):
        old = target_partitions.get(partition) if same_table else None
        content = Data(exact_at, locations.get(partition, ""))
        chain.parts[lineage, partition] = Part(partition, BASE, BASE_DATA) if old is not None else None
        expected_part = imaging.partition(definition, name, Marks(exact_at, ""), None)
        same = old is not None and stays(old, definition, expected_part, imaging)
        if same and old is not None and not is_ahead(old.parameters, exact_at):
            parts[lineage, partition] = Part(partition, BASE, content, "", exact_at)
        else:
            keeps_incarnation = (
                old is not None and has_incarnation(old) and not is_ahead_incarnation(old.parameters, exact_at)
            )
            incarnation = "" if keeps_incarnation else fresh_incarnation
            part_lineage = partition if old is not None else f"{partition}@{exact_at}"
            parts[lineage, partition] = Part(part_lineage, Version(exact_at, index), content, incarnation, exact_at)
    chain.shapes[lineage] = shape_of(table)
    chain.steps.append(Step((exact_at,), names, heads, parts))
    return chain


def shape_of(table: Table) -> TableShape:
    if is_view(table):
        return TableShape.VIEW
    return TableShape.PARTITIONED if is_partitioned(table) else TableShape.PLAIN


def same_incarnation(target_table: Table, table: Table, imaging: ImageBuilder) -> bool:
    """Whether the target's table may go on as this one: ours, of the same name, shape and partition keys,
    its columns at most extended (in doubt it is another). An Iceberg table's metadata keeps track of its columns."""
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
    target: Table | Partition, source: Table | Partition, expected: Table | Partition, imaging: ImageBuilder
) -> bool:
    """Whether the definition at the target is the expected one, and in its place where files stay at the source."""
    if imaging.admission.policy.data == "none" and not (isinstance(source, Table) and is_view(source)):
        return unchanged(target, expected) and same_place(source, target)
    displaced = isinstance(target, Table) and imaging.admission.policy.data != "none" and is_displaced(target)
    return not displaced and unchanged(target, expected)


def unchanged(target: Table | Partition, expected: Table | Partition) -> bool:
    """Whether the definition at the target is the expected one, its incarnation and position aside."""
    return same_definition(without_incarnation(target), without_incarnation(expected))


def has_incarnation(thing: Table | Partition) -> bool:
    return bool((thing.parameters or {}).get(INCARNATION))


def is_ahead(parameters: Mapping[str, str] | None, event_id: EventId) -> bool:
    """Whether a mark of an object at the target names an event beyond `event_id`, which is current: it is of a log that
    went back, and another event will have its id."""
    text = (parameters or {}).get(EVENT, "")
    return (text.isdigit() and int(text) > event_id) or is_ahead_incarnation(parameters, event_id)


def is_ahead_incarnation(parameters: Mapping[str, str] | None, event_id: EventId) -> bool:
    """The same of the incarnation alone: the object needs another."""
    text = (parameters or {}).get(INCARNATION, "").removeprefix("r")
    return text.isdigit() and int(text) > event_id


def without_incarnation(thing: Table | Partition) -> object:
    parameters = {key: value for key, value in (thing.parameters or {}).items() if key != INCARNATION}
    return replace(thing, parameters=parameters)
