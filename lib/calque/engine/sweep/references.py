"""Which locations do the tables and partitions at a target refer to?"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from calque.core.image import INCARNATION, is_ours
from calque.core.layout import place
from calque.engine.sides.sides import TargetSide
from calque.errors import Unavailable
from calque.model.hive import Table, is_partitioned, is_view, location_of
from calque.model.names import OURS, TableName, table_name

TRIES = 10


@dataclass(slots=True)
class ReferencedLocations:
    """Locations of tables and partitions. In a leaf (a plain table or a partition) everything belongs to it; below the
    root of a partitioned table other directories may lie. `roots` are the places of single tables."""

    leaves: set[str] = field(default_factory=set)
    roots: dict[TableName, tuple[str, str]] = field(default_factory=dict)
    """Location and incarnation of each table of ours, by its name at the target."""
    sorted_locations: list[str] = field(default_factory=list)

    def within(self, key: str) -> bool:
        """Whether anything refers to the directory or to something below it."""
        return any(
            index < len(self.sorted_locations)
            and (self.sorted_locations[index] == key or self.sorted_locations[index].startswith(f"{key}/"))
            for index in (bisect_left(self.sorted_locations, key), bisect_left(self.sorted_locations, f"{key}/"))
        )

    def above(self, key: str) -> bool:
        """Whether the directory lies in a leaf."""
        parts = key.split("/")
        return any("/".join(parts[:end]) in self.leaves for end in range(1, len(parts)))


def references_of(side: TargetSide) -> ReferencedLocations:
    """Every table at the target, whosever it is, and every partition of ours and of hidden builds.

    Each database by itself, as it was between two equal lists of its tables: what goes from one database to another
    meanwhile may be missed, once. Raises `Unavailable` when the tables of one come and go too fast for several looks.
    """
    references, locations = ReferencedLocations(), set[str]()
    for database in sorted(side.catalog.databases()):
        places: Places = {}
        for _ in range(TRIES):
            names = sorted(side.catalog.tables(database))
            tables = side.catalog.headers(database, names)
            database_references = ReferencedLocations()
            for name, table in tables.items():
                add_references(side, table_name(database, name), table, database_references, locations, places)
            if len(tables) == len(names) and sorted(side.catalog.tables(database)) == names:
                references.leaves |= database_references.leaves
                references.roots |= database_references.roots
                break
        else:
            raise Unavailable(
                f"The tables of {database} at {side.policy.target} can't be listed",
                "They are made, renamed and dropped faster than they can be read",
                "Sweep again when less is going on",
            )
    references.sorted_locations = sorted(locations)
    return references


Places = dict[tuple[TableName, str, str], set[str]]
"""Of the partitions of a table, by its name, location and incarnation. Read once: later ones belong to later events."""


def add_references(
    side: TargetSide,
    name: TableName,
    table: Table,
    references: ReferencedLocations,
    locations: set[str],
    places: Places,
) -> None:
    location = location_of(table)
    if is_view(table) or not location:
        return
    root, incarnation = key_of(location), (table.parameters or {}).get(INCARNATION, "")
    locations.add(root)
    if not is_partitioned(table):
        references.leaves.add(root)
    is_own = is_ours(table.parameters, side.policy.source)
    if is_own:
        references.roots[name] = root, incarnation
    if is_partitioned(table) and (is_own or name.database == OURS):
        key = name, root, incarnation
        if key not in places:
            partitions = side.catalog.partitions(name, side.catalog.partition_names(name))
            places[key] = {
                key_of(partition_location)
                for partition in partitions.values()
                if (partition_location := location_of(partition))
            }
        references.leaves |= places[key]
        locations |= places[key]


def key_of(location: str) -> str:
    """One spelling for one place."""
    return str(place(location))
