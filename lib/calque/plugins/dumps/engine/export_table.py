"""EXPORT: a table, or some of its partitions, into a directory as Hive's EXPORT lays it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.events.kinds import PROJECTED
from calque.core.formats.layout import join
from calque.core.formats.symlinks import IN_NO_DUMP, is_symlinks
from calque.engine.files.copies import copy_tasks
from calque.engine.sides.sides import SourceSide
from calque.engine.source.exact_read import ExactTable, TableIsTooBusy, read_exact
from calque.errors import Refused, Unavailable
from calque.model.hive import Table, is_partitioned, is_view, projects_partitions
from calque.model.names import TableName
from calque.plugins.dumps.core.event_contents import reason_against
from calque.plugins.dumps.core.import_fit import chosen_partitions, unknown_key
from calque.plugins.dumps.core.layout import ExportDirectory
from calque.plugins.dumps.core.metadata import ReplicationSpec, dumped_partition, dumped_table, table_metadata
from calque.ports import Storage

ROUNDS = 5


def export_table(
    source: SourceSide, storage: Storage, name: TableName, partition: Mapping[str, str], location: str
) -> None:
    """Export the table `name` of the source, or those of its partitions that have the values of `partition`, as it was
    at one event, into the directory `location` of `storage`. The definition is written last: a directory without it is
    no export. Raises `Refused` where the directory is not empty, and for a table that is missing or of a kind that is
    not exported; `Unavailable` where the table changes faster than it is copied."""
    if storage.children(location):
        raise Refused(
            f"{location} is not empty", "An export has a directory of its own", "Name another one, or empty it"
        )
    directory = ExportDirectory(location)
    problem = ""
    for _ in range(ROUNDS):
        exact = chosen(read(source, name), name, partition)
        problem = copied(storage, directory, exact)
        if not problem:
            write_definition(storage, directory, exact)
            return
        storage.remove([location])
    raise Unavailable(f"{name} changes while it is exported", problem, "Try again when less is written")


def read(source: SourceSide, name: TableName) -> ExactTable:
    require_exportable(name, source.catalog.table(name))
    try:
        exact = read_exact(source, name)
    except TableIsTooBusy as error:
        raise Unavailable(str(error), "It is read at one event", "Try again when less is written") from error
    require_exportable(name, exact.table)
    if any(map(is_symlinks, exact.partitions.values())):
        raise Refused(f"{name} can't be exported", IN_NO_DUMP, "Export the tables below it, or another one")
    return exact


def require_exportable(name: TableName, table: Table | None) -> None:
    """Raise `Refused` where there is no table, or one that no export has."""
    if table is None:
        raise Refused(f"There is no table {name}", "The source does not have it", "Correct the name")
    why = "A view has no data" if is_view(table) else reason_against(table)
    if projects_partitions(table):
        why = f"{PROJECTED}, and an export has files by partition"
    if why:
        raise Refused(f"{name} can't be exported", why, "Export the tables below it, or another one")


def chosen(exact: ExactTable, name: TableName, partition: Mapping[str, str]) -> ExactTable:
    if not partition:
        return exact
    assert exact.table is not None
    if key := unknown_key(exact.table, partition):
        raise Refused(f"{name} is not partitioned by {key}", "PARTITION names its keys", "Correct the key")
    names = chosen_partitions(exact.table, sorted(exact.partitions), partition)
    if not names:
        raise Refused(f"{name} has no such partition", "PARTITION chooses none", "Correct the values")
    return replace(exact, partitions={each: exact.partitions[each] for each in names})


def copied(storage: Storage, directory: ExportDirectory, exact: ExactTable) -> str:
    """Copy the files of the table into the directory, each as it was listed. Return why the first of them could not be
    copied; an empty text where all were."""
    assert exact.table is not None
    partitions = list(exact.partitions) if is_partitioned(exact.table) else [""]
    tasks = []
    for partition in partitions:
        data = directory.data(partition)
        listing = exact.listings[partition]
        tasks += copy_tasks(listing, ((file, join(data, file.path)) for file in listing.files))
        if not listing.files:
            storage.make_directories([data])
    return next((result.problem for result in storage.copy(tasks) if result.problem), "") if tasks else ""


def write_definition(storage: Storage, directory: ExportDirectory, exact: ExactTable) -> None:
    assert exact.table is not None
    partitions = (dumped_partition(exact.partitions[name]) for name in sorted(exact.partitions))
    text = "".join(table_metadata(ReplicationSpec(), dumped_table(exact.table), partitions))
    storage.write(directory.metadata, text.encode())
