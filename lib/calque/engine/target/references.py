"""Which locations do the tables and partitions at a target refer to?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from calque.core.formats.layout import place
from calque.core.formats.pointers import place_or_none
from calque.core.images.image import INCARNATION, is_ours
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused, Unavailable
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


def references_of(
    side: TargetSide,
    key: Callable[[str], str],
    around: Collection[str] | None = None,
    names: Collection[TableName] = (),
) -> ReferencedLocations:
    """Every table at the target, whosever it is, and every partition of ours and of hidden builds; with `around`
    partitions only of tables that lie at these places, around or below them, or have one of the `names`. `key` gives
    one spelling for one place.

    Each database by itself, as it was between two equal lists of its tables: what goes from one database to another
    meanwhile may be missed, once. Raises `Unavailable` when the tables of one come and go too fast for several looks.
    """
    reading = ReferenceReading(side, key, around, names)
    for database in sorted(side.catalog.databases()):
        for _ in range(TRIES):
            listed = sorted(side.catalog.tables(database))
            tables = side.catalog.headers(database, listed)
            database_references = ReferencedLocations()
            for name, table in tables.items():
                reading.add(table_name(database, name), table, database_references)
            if len(tables) == len(listed) and sorted(side.catalog.tables(database)) == listed:
                reading.references.leaves |= database_references.leaves
                reading.references.roots |= database_references.roots
                break
        else:
            raise Unavailable(
                f"The tables of {database} at {side.policy.target} can't be listed",
                "They are made, renamed and dropped faster than they can be read",
                "Sweep again when less is going on",
            )
    reading.references.sorted_locations = sorted(reading.locations)
    return reading.references


@dataclass(slots=True)
class ReferenceReading:
    """What was read for one look at the catalog. `partition_places` are those of the partitions of a table, by its
    name, location and incarnation: read once, later ones belong to later events."""

    side: TargetSide
    key: Callable[[str], str]
    around: Collection[str] | None
    names: Collection[TableName]
    references: ReferencedLocations = field(default_factory=ReferencedLocations)
    locations: set[str] = field(default_factory=set)
    partition_places: dict[tuple[TableName, str, str], set[str]] = field(default_factory=dict)

    def add(self, name: TableName, table: Table, references: ReferencedLocations) -> None:
        location = location_of(table)
        if is_view(table) or not location:
            return
        root, incarnation = self.key_of(name, location), (table.parameters or {}).get(INCARNATION, "")
        self.locations.add(root)
        if not is_partitioned(table):
            references.leaves.add(root)
        is_own = is_ours(table.parameters, self.side.policy.source)
        if is_own:
            references.roots[name] = root, incarnation
        if is_partitioned(table) and (is_own or name.database == OURS) and self.is_meant(name, root):
            cell = name, root, incarnation
            if cell not in self.partition_places:
                partitions = self.side.catalog.partitions(name, self.side.catalog.partition_names(name))
                self.partition_places[cell] = {
                    self.key_of(name, partition_location)
                    for partition in partitions.values()
                    if (partition_location := location_of(partition))
                }
            references.leaves |= self.partition_places[cell]
            self.locations |= self.partition_places[cell]

    def key_of(self, name: TableName, location: str) -> str:
        """Raises `Refused`, with the table, for a location of which it is not known what lies there."""
        try:
            return self.key(location)
        except Refused as error:
            raise Refused(
                f"{self.side.policy.target} has a table {name} at {location!r}, and nothing is removed meanwhile",
                f"What lies there is not known: {error.what}",
                "Give the table another location, or drop it",
            ) from error

    def is_meant(self, name: TableName, root: str) -> bool:
        if self.around is None or name in self.names or name.database == OURS:
            return True
        return any(lies_in(own, root) or lies_in(root, own) for own in self.around)


def lies_in(key: str, above: str) -> bool:
    return key == above or key.startswith(f"{above}/")


def is_referenced(side: TargetSide, location: str) -> bool:
    """Whether a table or partition of the target that readers see lies at the place, or below it, or may, as one whose
    location can't be read. Asks for every header of the target, and for the partitions of tables that lie at the place,
    above it or below."""
    own = place(location)
    for database in side.catalog.databases():
        if database == OURS:
            continue
        for name, table in side.catalog.headers(database, side.catalog.tables(database)).items():
            root = location_of(table)
            if is_view(table) or not root:
                continue
            root_place = place_or_none(root)
            if root_place is None or own.contains(root_place):
                return True
            if is_partitioned(table) and root_place.contains(own):
                target_name = table_name(database, name)
                partitions = side.catalog.partitions(target_name, side.catalog.partition_names(target_name))
                places = [place_or_none(at) for part in partitions.values() if (at := location_of(part))]
                if any(one is None or own.contains(one) for one in places):
                    return True
    return False
