"""The locations that the tables and partitions at a target refer to."""

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
    """Locations of tables and partitions, each in one spelling. All that lies in a leaf (a table without partitions, or
    a partition) belongs to it. Below the root of a partitioned table other directories may lie."""

    leaves: set[str] = field(default_factory=set)
    roots: dict[TableName, tuple[str, str]] = field(default_factory=dict)
    """The location and incarnation of each of calque's tables, by the table's name at the target."""
    sorted_locations: list[str] = field(default_factory=list)

    def within(self, key: str) -> bool:
        """Tell whether a table or partition lies in the directory `key` or below it."""
        return any(
            index < len(self.sorted_locations)
            and (self.sorted_locations[index] == key or self.sorted_locations[index].startswith(f"{key}/"))
            for index in (bisect_left(self.sorted_locations, key), bisect_left(self.sorted_locations, f"{key}/"))
        )

    def above(self, key: str) -> bool:
        """Tell whether the directory `key` lies below a leaf, that is in the directory of a table without partitions or
        of a partition. The leaf itself does not."""
        parts = key.split("/")
        return any("/".join(parts[:end]) in self.leaves for end in range(1, len(parts)))


def references_of(
    side: TargetSide,
    key: Callable[[str], str],
    around: Collection[str] | None = None,
    names: Collection[TableName] = (),
) -> ReferencedLocations:
    """Return the locations of all tables at the target, including those that are not calque's, and of all partitions of
    calque's tables and of hidden builds. With `around`, partitions are read only of tables that lie at these places,
    around or below them, or have one of the `names`. `key` gives one spelling for each place.

    A database counts as it was between two equal lists of its tables. So a table that goes from one database to another
    meanwhile may be missed, once. Raises `Unavailable` when the tables of a database come and go too fast for `TRIES`
    looks, and `Refused` for a location that can't be understood.
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
    """The state of one look at the catalog, for the arguments of `references_of`: `key` gives one spelling for each
    place; partitions are read only of tables that lie at the places `around`, around or below them, or have one of the
    `names`. `partition_places` are the locations of a table's partitions, by its name, location and incarnation. They
    are read once, because later partitions belong to later events."""

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
        """Return the one spelling for the location. Raises `Refused`, with the table, for a location that can't be
        understood: nothing is known then of what lies there."""
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
    """Tell whether a table or partition that readers of the target see lies at `location` or below it, or may lie
    there because its own location can't be read. This reads the header of every table at the target, and the partitions
    of tables that lie at the place or above it."""
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
