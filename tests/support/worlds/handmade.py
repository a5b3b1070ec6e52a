"""Copies of a source's tables that somebody else made at a target: faithful ones, others, and such as only look it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calque.core.formats.layout import join, natural_location
from calque.core.formats.pointers import moved
from calque.core.images.image import SOURCE
from calque.model.hive import Column, Database, Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import TableName
from support.worlds.worlds import World

REPL = {"repl.last.id": "7", "hive.repl.ckpt.key": "file:/dump", "repl.scope": "all"}
"""What Hive's own replication leaves on tables and partitions."""

FOREIGN = {"calque.event": "999999", "calque.incarnation": "999"}
"""Marks of another stream's replica."""

FAULTS = (
    *("faithful",) * 4,
    "other content",
    "other size",
    "a file less",
    "a file more",
    "another comment",
    "a column more",
    "a partition less",
    "a partition more",
    "of another source",
    "in the source's directory",
)


def copy_by_hand(
    world: World,
    name: TableName,
    fault: str = "faithful",
    rng: random.Random | None = None,
    root: str = "",
    parameters: dict[str, str] | None = None,
    kind: str = "MANAGED_TABLE",
) -> None:
    """The table at the target as somebody copied it, who writes no marks and gives files times of their own."""
    rng = rng or random.Random(0)
    stored = world.source.the_table(name)
    at = world.side.admission.name_at_target(name)
    make_database(world, at.database)
    if at.table in world.target_store.tables(at.database):
        return
    here = location_of(stored.table)
    there = root or natural_location(world.policy.warehouse, at.database, at.table)
    if fault == "in the source's directory" and here:
        there = here
    image = replace(stored.table, database=at.database, name=at.table, storage=moved(stored.table.storage, there))
    own = {**(stored.table.parameters or {}), **(parameters or {})}
    if fault == "another comment":
        own["comment"] = "by hand"
    if fault == "of another source":
        own |= {SOURCE: f"elsewhere:{name}", **FOREIGN}
    if not is_view(image):
        image = replace(image, type=kind)
    if fault == "a column more" and image.storage is not None:
        image = replace(
            image, storage=replace(image.storage, columns=(*(image.storage.columns or ()), Column("byhand", "int")))
        )
    world.target_store.create_table(replace(image, parameters=own))
    if is_view(image) or not here:
        return
    spoil = Spoiling(world, fault, rng)
    if not is_partitioned(image):
        if there != here:
            spoil.copy(here, there)
        return
    parts = sorted(stored.partitions.values(), key=lambda part: part.values)
    if fault == "a partition less" and parts:
        parts.pop(rng.randrange(len(parts)))
    made = [spoil.partition(image, part, there, parameters or {}, same=there == here) for part in parts]
    if fault == "a partition more" and made:
        more = replace(made[0], values=("by hand",), storage=moved(made[0].storage, join(there, "byhand")))
        made.append(more)
    if made:
        world.target_store.add_partitions(at, made)


def make_database(world: World, at: str, description: str = "by hand") -> None:
    if at not in world.target_store.databases():
        world.target_store.create_database(Database(at, description, f"file:/handmade/{at}.db", {}))


class Spoiling:
    """Copies directories, and puts the fault into the first one that can have it."""

    def __init__(self, world: World, fault: str, rng: random.Random) -> None:
        self.storage: Any = world.storage
        self.fault, self.rng, self.foreign = fault, rng, fault == "of another source"

    def copy(self, here: str, there: str) -> None:
        files = dict(self.storage.contents(here))
        self.storage.make_directories([there])
        if files and (spoil := SPOILING.get(self.fault)) is not None:
            spoil(files, self.rng.choice(sorted(files)))
            self.fault = ""
        for path, content in files.items():
            self.storage.write(join(there, path), content)

    def partition(
        self, table: Table, part: Partition, root: str, parameters: dict[str, str], *, same: bool
    ) -> Partition:
        here = location_of(part) or ""
        there = here if same else join(root, "=".join(("p", *part.values)))
        if not same:
            self.copy(here, there)
        own = {**(part.parameters or {}), **parameters}
        if self.foreign:
            own |= FOREIGN
        return replace(
            part, database=table.database, table=table.name, parameters=own, storage=moved(part.storage, there)
        )


def other_content(files: dict[str, bytes], path: str) -> None:
    files[path] = bytes(255 - byte for byte in files[path])


def other_size(files: dict[str, bytes], path: str) -> None:
    files[path] += b"more"


def a_file_less(files: dict[str, bytes], path: str) -> None:
    del files[path]


def a_file_more(files: dict[str, bytes], path: str) -> None:
    files[f"{path}-byhand"] = b"more"


SPOILING: dict[str, Callable[[dict[str, bytes], str], None]] = {
    "other content": other_content,
    "other size": other_size,
    "a file less": a_file_less,
    "a file more": a_file_more,
}
