"""The directories of tables, kept up to date by the journal. The source's catalog is asked once, and again only where
events do not say where a table's directories are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from calque.core.events.effects import KEEPS_COLUMNS_AND_LOCATIONS, OF_PARTITIONS
from calque.core.events.kinds import kind_of
from calque.core.formats.iceberg import is_iceberg
from calque.engine.sides.sides import SourceSide
from calque.model.hive import is_partitioned, is_view, location_of
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.scan import ObjectKey


@dataclass(slots=True)
class TableDirectory:
    """A table's own directory (`root`) and those with its data, by partition (`""`: a table without partitions)."""

    root: str
    shape: TableShape
    locations: dict[str, str] = field(default_factory=dict)


class TableDirectories:
    """The directories of the tables that `takes` admits in databases that `databases` names. `touched` has the newest
    event that named each object, with the directory that it named, until a caller removes it."""

    def __init__(
        self, source: SourceSide, takes: Callable[[TableName], bool], databases: Callable[[str], bool]
    ) -> None:
        self.source, self.takes, self.databases = source, takes, databases
        self.tables: dict[TableName, TableDirectory] = {}
        self.stale: set[TableName] = set()
        self.touched: dict[ObjectKey, tuple[EventId, str]] = {}

    def begin(self) -> None:
        """Mark all admitted tables as to be read."""
        for database in self.source.catalog.databases():
            if self.databases(database):
                names = (TableName(database, table.lower()) for table in self.source.catalog.tables(database))
                self.stale |= {name for name in names if self.takes(name)}

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take up the journal's next entries."""
        for entry in entries:
            keys = entry.keys
            if keys.table is None or keys.kind is EventKind.SCAN:
                continue
            if keys.other is not None:
                self.forget(keys.other)
            if self.takes(keys.table):
                self.follow(keys.table, keys)
                locations = dict(zip(keys.partitions or ("",), keys.locations, strict=False))
                named = {(keys.table, partition): location for partition, location in locations.items() if location}
                self.touched |= {key: (entry.event_id, location) for key, location in named.items()}

    def follow(self, name: TableName, keys: Keys) -> None:
        """Change the table's directories as an event says; a table of which it does not say enough becomes stale."""
        placed = self.tables.get(name)
        if keys.kind in KEEPS_COLUMNS_AND_LOCATIONS:
            return
        if keys.kind is EventKind.DROP_TABLE:
            self.forget(name)
        elif placed is None or keys.kind not in OF_PARTITIONS or len(keys.locations) != located(keys):
            if keys.kind is not EventKind.ALTER_TABLE or placed is None or placed.shape is not TableShape.PARTITIONED:
                self.stale.add(name)
        else:
            for partition in keys.others or (keys.partitions if keys.kind is EventKind.DROP_PARTITIONS else ()):
                placed.locations.pop(partition, None)
            placed.locations |= dict(zip(keys.partitions, keys.locations, strict=False))

    def forget(self, name: TableName) -> None:
        self.tables.pop(name, None)
        self.stale.discard(name)
        self.touched = {key: value for key, value in self.touched.items() if key[0] != name}

    def read(self, names: Iterable[TableName]) -> None:
        """Read those of `names` that are stale. A change that comes meanwhile is in later entries."""
        for name in sorted(self.stale.intersection(names)):
            self.stale.discard(name)
            directory = self.read_one(name)
            if directory is None:
                self.tables.pop(name, None)
            else:
                self.tables[name] = directory

    def read_one(self, name: TableName) -> TableDirectory | None:
        """Return the directories of a table. None for a table that does not exist or is not replicated, and for one
        without files of its own or whose definition names its files."""
        catalog = self.source.catalog
        table = catalog.table(name)
        if table is None or is_view(table) or is_iceberg(table) or kind_of(table):
            return None
        location = location_of(table) or ""
        root = location.rstrip("/")
        if not is_partitioned(table):
            return TableDirectory(root, TableShape.PLAIN, {"": location}) if location else None
        partitions = catalog.partitions(name, catalog.partition_names(name))
        locations = {partition: location_of(value) for partition, value in partitions.items()}
        known_locations = {partition: place for partition, place in locations.items() if place}
        return TableDirectory(root, TableShape.PARTITIONED, known_locations)

    def keys(self, names: Iterable[TableName]) -> Sequence[tuple[ObjectKey, str]]:
        """Return all directories of the tables `names`, each with its object."""
        directories = [(name, directory) for name in names if (directory := self.tables.get(name)) is not None]
        return [
            ((name, partition), location)
            for name, directory in directories
            for partition, location in directory.locations.items()
        ]


def located(keys: Keys) -> int:
    """Return the number of locations that an event must name so that its partitions can be followed."""
    return 0 if keys.kind is EventKind.DROP_PARTITIONS else len(keys.partitions)
