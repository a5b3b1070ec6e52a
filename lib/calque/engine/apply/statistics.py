"""Basic statistics that no hop carried: written once, after a group's last hop (design §2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from calque.core.image import EVENT, STATISTICS
from calque.engine.apply.context import HopContext
from calque.engine.target.observe import event_of
from calque.model.hive import Partition, Table
from calque.model.names import EventId, TableName
from calque.model.plan import Version

ACCURATE = "COLUMN_STATS_ACCURATE"
Parameters = Mapping[str, str]


def write_statistics(
    hand: HopContext,
    table: TableName,
    versions: Mapping[str, Version],
    parameters: Mapping[str, Parameters],
    analyzed: Mapping[str, Collection[str]],
) -> None:
    """Statistics of the table (`""`) and of partitions, where they differ: those of their newest events, or of
    `parameters`, which are newer. Of `analyzed` columns the server has changed what it calls accurate."""
    shown = hand.shown.get(table)
    if shown is None:
        return
    parts = {}
    for name in versions.keys() | parameters.keys() | analyzed.keys():
        there: Table | Partition | None = shown.partitions.get(name) if name else shown.table
        if there is None:
            continue
        newest, event_id = parameters.get(name), 0
        if newest is None and name in versions:
            version = versions[name]
            newest = (hand.images.partition(version) if name else hand.images.table(version)).parameters
            event_id = version.event_id
        counted = with_statistics(there.parameters, there.parameters if newest is None else newest, event_id)
        if counted == there.parameters and calls_accurate(counted, analyzed.get(name, ())):
            continue
        if isinstance(there, Partition):
            parts[name] = replace(there, parameters=counted)
        else:
            shown.table = replace(there, parameters=counted)
            hand.call(hand.side.catalog.alter_table, hand.at(table), shown.table)
    hand.parts = None
    hand.alter_partitions(hand.at(table), parts.values())
    shown.partitions.update(parts)


def calls_accurate(parameters: Parameters, columns: Collection[str]) -> bool:
    """Whether the parameters say of all the columns what a server adds when it gets their statistics."""
    if not columns:
        return True
    try:
        said = json.loads(parameters.get(ACCURATE, "{}")).get("COLUMN_STATS", {})
    except (ValueError, AttributeError):
        return False
    return set(columns) <= set(said)


def with_statistics(there: Parameters | None, image: Parameters | None, event_id: EventId) -> dict[str, str]:
    """Parameters with the image's statistics in place of those that are there."""
    found = {key: value for key, value in (there or {}).items() if key not in STATISTICS}
    found |= {key: value for key, value in (image or {}).items() if key in STATISTICS}
    return found | {EVENT: str(max(event_id, event_of(there)))}
