"""Statistics that no hop carried: written once, after a group's last hop (design §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.image import EVENT, STATISTICS
from calque.engine.apply.hand import Hand
from calque.engine.observe import event_of
from calque.model.names import EventId, TableName
from calque.model.plan import Version


def write_statistics(hand: Hand, table: TableName, versions: Mapping[str, Version]) -> None:
    """Statistics of the table (`""`) and of partitions as their newest events have them, where they differ."""
    shown = hand.shown.get(table)
    if shown is None:
        return
    if "" in versions:
        image = hand.images.table(versions[""])
        counted = with_statistics(shown.table.parameters, image.parameters, versions[""].event_id)
        if counted != shown.table.parameters:
            definition = replace(shown.table, parameters=counted)
            hand.call(hand.side.catalog.alter_table, hand.at(table), definition)
            shown.table = definition
    parts = {}
    for name, version in versions.items():
        if name and (there := shown.partitions.get(name)) is not None:
            counted = with_statistics(there.parameters, hand.images.partition(version).parameters, version.event_id)
            if counted != there.parameters:
                parts[name] = replace(there, parameters=counted)
    hand.alter_partitions(hand.at(table), parts.values())
    shown.partitions.update(parts)


def with_statistics(
    there: Mapping[str, str] | None, image: Mapping[str, str] | None, event_id: EventId
) -> dict[str, str]:
    """Parameters with the image's statistics in place of those that are there."""
    found = {key: value for key, value in (there or {}).items() if key not in STATISTICS}
    found |= {key: value for key, value in (image or {}).items() if key in STATISTICS}
    return found | {EVENT: str(max(event_id, event_of(there)))}
