"""The basic statistics that no hop carried: they are written once, after a group's last hop (docs/glossary.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from calque.core.formats.bounded import parse_json
from calque.core.images.image import EVENT, STATISTICS
from calque.engine.apply.context import HopContext
from calque.engine.target.observe import event_of
from calque.model.hive import Partition, Table
from calque.model.names import EventId, TableName
from calque.model.plan import Version

ACCURATE = "COLUMN_STATS_ACCURATE"
Parameters = Mapping[str, str]


def write_statistics(
    context: HopContext,
    table: TableName,
    versions: Mapping[str, Version],
    parameters: Mapping[str, Parameters],
    analyzed: Mapping[str, Collection[str]],
) -> None:
    """Write basic statistics of the table (`""`) and of partitions, where they differ: those of their newest events
    (`versions`), or of `parameters`, which are newer. Where columns were `analyzed`, the server has changed the
    parameter that says which statistics are accurate, so it may have to be written again."""
    shown = context.shown.get(table)
    if shown is None:
        return
    parts = {}
    for name in versions.keys() | parameters.keys() | analyzed.keys():
        target_object: Table | Partition | None = shown.partitions.get(name) if name else shown.table
        if target_object is None:
            continue
        newest, event_id = parameters.get(name), 0
        if newest is None and name in versions:
            version = versions[name]
            newest = (context.images.partition(version) if name else context.images.table(version)).parameters
            event_id = version.event_id
        updated_parameters = with_statistics(
            target_object.parameters, target_object.parameters if newest is None else newest, event_id
        )
        if updated_parameters == target_object.parameters and calls_accurate(
            updated_parameters, analyzed.get(name, ())
        ):
            continue
        if isinstance(target_object, Partition):
            parts[name] = replace(target_object, parameters=updated_parameters)
        else:
            shown.table = replace(target_object, parameters=updated_parameters)
            context.call(context.side.catalog.alter_table, context.name_at_target(table), shown.table)
    context.parts_announcement = None
    context.alter_partitions(context.name_at_target(table), parts.values())
    shown.partitions.update(parts)


def calls_accurate(parameters: Parameters, columns: Collection[str]) -> bool:
    """Tell whether the parameters call the statistics of all `columns` accurate, as a server has them say when it gets
    these."""
    if not columns:
        return True
    try:
        said = parse_json(parameters.get(ACCURATE, "{}"))
    except ValueError:
        return False
    match said:
        case {"COLUMN_STATS": dict() as accurate_columns}:
            return accurate_columns.keys() >= set(columns)
    return False


def with_statistics(
    target_parameters: Parameters | None, image: Parameters | None, event_id: EventId
) -> dict[str, str]:
    """Return the parameters with the image's statistics in place of those that are there, marked with event `event_id`
    or the later one that they have."""
    updated_parameters = {key: value for key, value in (target_parameters or {}).items() if key not in STATISTICS}
    updated_parameters |= {key: value for key, value in (image or {}).items() if key in STATISTICS}
    return updated_parameters | {EVENT: str(max(event_id, event_of(target_parameters)))}
