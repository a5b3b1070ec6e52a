"""IMPORT: the contents of an export become a table at a target, or partitions of an existing one.

The table is no replica: calque does not keep it equal to the source afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from calque.core.events.decode import Undecodable
from calque.core.events.kinds import PROJECTED, obstacle
from calque.core.formats.layout import join, natural_location
from calque.core.formats.pointers import relocated
from calque.core.formats.symlinks import is_symlinks
from calque.core.images.image import SOURCE
from calque.core.plan.limits import batches
from calque.errors import Refused, Unavailable
from calque.model.hive import Partition, Table, is_partitioned, location_of, projects_partitions
from calque.model.names import TableName, table_name
from calque.plugins.dumps.core.import_fit import chosen_partitions, difference, plain_parameters, unknown_key
from calque.plugins.dumps.core.layout import ExportDirectory
from calque.plugins.dumps.core.log_events import logged_partitions, logged_table, name_of
from calque.plugins.dumps.core.metadata import read_table
from calque.ports import Catalog, CopyTask, Storage


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The arguments of an IMPORT. `database` and `name` None mean those of the export. `partition` None or empty means
    all partitions. An empty `location` means the natural place below `warehouse`."""

    directory: str
    warehouse: str
    database: str | None = None
    name: str | None = None
    partition: Mapping[str, str] | None = None
    is_external: bool = False
    location: str = ""


@dataclass(frozen=True, slots=True)
class Exported:
    table: Table
    partitions: Mapping[str, Partition]


def import_table(catalog: Catalog, storage: Storage, request: ImportRequest) -> None:
    """Import the export: first copy its files, then make the table, then add its partitions. An import that died goes
    on when it is called again, as long as no partition was added. Raises `Refused` before anything is written, and
    `Unavailable` where a file can't be copied."""
    exported = read_export(storage, request)
    name = table_name(request.database or exported.table.database, request.name or exported.table.name)
    if catalog.database(name.database) is None:
        raise Refused(f"There is no database {name.database} at the target", "IMPORT makes none", "Create it first")
    existing = catalog.table(name)
    if existing is not None:
        require_fitting(catalog, storage, request, exported, existing, name)
    root = location_of(existing) if existing is not None else None
    root = root or request.location or natural_location(request.warehouse, *name)
    places = {partition: join(root, partition) for partition in partitions_of(exported)}
    copy_files(storage, request, places)
    if existing is None:
        catalog.create_table(imported_table(exported.table, name, root, is_external=request.is_external))
    moved = (relocated(partition, places[key]) for key, partition in exported.partitions.items())
    partitions = [
        replace(
            partition,
            database=name.database,
            table=name.table,
            parameters=plain_parameters(partition.parameters),
            catalog=None,
        )
        for partition in moved
    ]
    for batch in batches(partitions, catalog.abilities().limits.add_partitions):
        catalog.add_partitions(name, batch)


def read_export(storage: Storage, request: ImportRequest) -> Exported:
    path = ExportDirectory(request.directory).metadata
    content = storage.read(path)
    if content is None:
        raise Refused(f"{request.directory} is no export", f"{path} is not there", "Correct the path")
    try:
        metadata = read_table([content])
        table = logged_table(metadata.table)
        partitions = {name_of(table, each): each for each in logged_partitions(metadata.partitions)}
    except Undecodable as error:
        raise Refused(f"{path} can't be read", error.reason, "Export the table again") from error
    if why := reason_against_export(table, partitions.values()):
        raise Refused(f"The export of {table.database}.{table.name} can't be imported", why, "Copy it by other means")
    spec = request.partition or {}
    if key := unknown_key(table, spec):
        raise Refused(f"The export is not partitioned by {key}", "PARTITION names its keys", "Correct the key")
    names = chosen_partitions(table, sorted(partitions), spec)
    if spec and not names:
        raise Refused("The export has no such partition", f"It has {', '.join(partitions) or 'none'}", "Correct it")
    return Exported(table, {name: partitions[name] for name in names})


def reason_against_export(table: Table, partitions: Iterable[Partition]) -> str:
    """Return the reason why a copy of the export's files would not have the rows that readers of the table find; an
    empty text where it would have them."""
    if is_symlinks(table) or any(map(is_symlinks, partitions)):
        return "Its files name the files with the rows, which it does not have"
    if projects_partitions(table):
        return PROJECTED
    return obstacle(table)


def require_fitting(
    catalog: Catalog, storage: Storage, request: ImportRequest, exported: Exported, existing: Table, name: TableName
) -> None:
    """Raise `Refused` where the export can't become a part of the table `existing`, which is there under `name`."""
    if mark := (existing.parameters or {}).get(SOURCE):
        raise Refused(f"{name} is the replica of {mark}", "It is kept equal to that", "Import into another table")
    if why := difference(exported.table, existing):
        raise Refused(f"The export does not fit {name}", why[0].upper() + why[1:], "Import into another table")
    if request.location and request.location.rstrip("/") != (location_of(existing) or "").rstrip("/"):
        raise Refused(f"{name} lies at {location_of(existing)}", "LOCATION is for a new table", "Leave it out")
    if request.is_external and existing.type != "EXTERNAL_TABLE":
        raise Refused(f"{name} is there, and not external", "EXTERNAL is for a new table", "Leave it out")
    if is_partitioned(existing):
        if there := sorted(catalog.partitions(name, list(exported.partitions))):
            raise Refused(f"{name} has partition {there[0]}", "IMPORT replaces none", "Drop it, or choose others")
        return
    location = location_of(existing) or ""
    if storage.list([location])[location].files:
        raise Refused(f"{name} has data", "IMPORT adds to no data that is there", "Empty it, or name another table")


def partitions_of(exported: Exported) -> list[str]:
    return list(exported.partitions) if is_partitioned(exported.table) else [""]


def copy_files(storage: Storage, request: ImportRequest, places: Mapping[str, str]) -> None:
    """Copy the files of the export to `places`, the location of each partition by name. Raises `Refused` where other
    files lie there, and `Unavailable` where a file can't be copied."""
    directory = ExportDirectory(request.directory)
    data = {partition: directory.data(partition) for partition in places}
    listings = storage.list(sorted({*data.values(), *places.values()}))
    tasks = []
    for partition, location in places.items():
        files = listings[data[partition]].files
        names = {(file.path, file.size) for file in files}
        if any((file.path, file.size) not in names for file in listings[location].files):
            raise Refused(f"{location} has other files", "They would be taken for the import's", "Remove them first")
        tasks += [
            CopyTask(
                join(data[partition], file.path),
                join(location, file.path),
                file.size,
                file.modified_ns,
                within=data[partition],
            )
            for file in files
        ]
    storage.make_directories(sorted(places.values()))
    problem = next((result.problem for result in storage.copy(tasks) if result.problem), "") if tasks else ""
    if problem:
        raise Unavailable("A file of the export can't be copied", problem, "Say the statement again")


def imported_table(table: Table, name: TableName, location: str, *, is_external: bool) -> Table:
    table = relocated(table, location)
    parameters = plain_parameters(table.parameters) | ({"EXTERNAL": "TRUE"} if is_external else {})
    return replace(
        table,
        database=name.database,
        name=name.table,
        type="EXTERNAL_TABLE" if is_external else "MANAGED_TABLE",
        partition_keys=table.partition_keys or (),
        parameters=parameters,
        catalog=None,
        id=None,
    )
