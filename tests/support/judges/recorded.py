"""What a world's ledger says of its target, compared with the target itself."""

from __future__ import annotations

from calque.core.formats.definition import text_of_partition, text_of_table
from calque.core.records.contents import contents, line_of
from calque.model.hive import is_partitioned, is_view, location_of
from calque.model.ledger import ObjectRow
from calque.model.names import TableName, partition_name
from support.worlds.worlds import World

UNKNOWN = "it is not known as a whole"


def unlike_target(world: World) -> list[str]:
    """Where the rows of the ledger's newest epoch are not what the target has, of tables that the epoch covers."""
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    aside = {*epoch.set_aside, *epoch.quarantined}
    rows = world.ledger.headers(epoch.epoch)
    said = set(contents(line_of(index, row) for index, row in enumerate(rows)))
    there = {name for at, _ in world.stored_at_target() if (name := world.side.admission.source_of(at)) is not None}
    names = [name for name in sorted(said | there) if str(name) not in aside]
    problems = {name: unlike(world, name, epoch.epoch) for name in names}
    return [f"{name} at epoch {epoch.epoch}: {problem}" for name, problem in problems.items() if problem]


def unlike(world: World, name: TableName, epoch: int) -> str:
    rows = world.ledger.rows_of({name, *renamed(world, epoch)}, epoch)
    content = contents(line_of(index, row) for index, row in enumerate(rows)).get(name)
    at = world.side.admission.name_at_target(name)
    stored = dict(world.stored_at_target()).get(at)
    if content is None or stored is None:
        return "" if content is stored else f"said {content}, there {stored}"
    if not content.is_complete:
        return UNKNOWN
    if said_of(content.table.definition, rows) != text_of_table(stored.table):
        return f"it is not {content.table.definition}"
    if is_view(stored.table):
        return ""
    keys = [key.name for key in stored.table.partition_keys or ()]
    partitions = {partition_name(keys, part.values): part for part in stored.partitions.values()}
    if partitions.keys() != content.partitions.keys():
        return f"partitions {sorted(content.partitions)} are {sorted(partitions)}"
    things = [(content.partitions[key], part, text_of_partition(part)) for key, part in partitions.items()]
    if not is_partitioned(stored.table):
        things = [(content.table, stored.table, text_of_table(stored.table))]
    for part, thing, text in things:
        files = rows[part.files.index] if part.files is not None else None
        location = location_of(thing) or ""
        if files is None or files.location != location:
            return f"{files} lies at {location}"
        found = world.storage.list([location])[location].files if location else ()
        if {(file.path, file.size) for file in files.files} != {(file.path, file.size) for file in found}:
            return f"{files} has {found}"
        if said_of(part.definition, rows) != text:
            return f"{part.definition} is not {text}"
    return ""


def renamed(world: World, epoch: int) -> set[TableName]:
    return {TableName(row.database, row.table) for row in world.ledger.headers(epoch) if row.change == "rename_away"}


def said_of(line: object, rows: list[ObjectRow]) -> str:
    return rows[line.index].definition if line is not None else ""  # type: ignore[attr-defined]
