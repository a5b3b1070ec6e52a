"""The places of partitions of external tables at the source, as far as dumps have said them. Only partitions are kept
that do not lie below their table's directory, under their own names.

A list of external directories does not name partitions, and an increment has only the partitions that its events are
on. So a loader keeps the places that it learned from the dumps before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calque.core.events.effects import MAKES_OR_ENDS_TABLE
from calque.core.formats.layout import join
from calque.model.journal import Entry, EventKind, TableShape
from calque.model.names import TableName

PartitionPlaces = Mapping[TableName, Mapping[str, str]]
"""Locations by table and partition."""


def unusual(table_location: str, locations: Mapping[str, str]) -> dict[str, str]:
    """Return the locations of those partitions that do not lie below the table's location, under their own names."""
    return {name: place for name, place in locations.items() if place.rstrip("/") != join(table_location, name)}


def places_after(places: PartitionPlaces, entries: Iterable[Entry]) -> dict[TableName, dict[str, str]]:
    """Return the places as the events of `entries` leave them. The result also has partitions that lie below their
    table's location under their own names, because an event does not say the table's location."""
    after = {name: dict(partitions) for name, partitions in places.items()}
    for entry in entries:
        keys = entry.keys
        if keys.table is None:
            continue
        if keys.kind is EventKind.RENAME_TABLE and keys.other is not None:
            if keys.other in after:
                after[keys.table] = after.pop(keys.other)
        elif keys.kind in MAKES_OR_ENDS_TABLE:
            after.pop(keys.table, None)
        elif keys.shape is TableShape.PARTITIONED and keys.partitions:
            partitions = after.setdefault(keys.table, {})
            for partition in keys.others or (keys.partitions if keys.kind is EventKind.DROP_PARTITIONS else ()):
                partitions.pop(partition, None)
            if len(keys.locations) == len(keys.partitions) and keys.kind is not EventKind.DROP_PARTITIONS:
                partitions |= dict(zip(keys.partitions, keys.locations, strict=True))
    return {name: partitions for name, partitions in after.items() if partitions}
