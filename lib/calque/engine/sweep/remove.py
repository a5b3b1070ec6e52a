"""Removes one directory, staging directory or hidden table, and says how much went."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from calque.core.layout import join
from calque.engine.sweep.directory_tree import OWNER, DirectoryEntry
from calque.model.names import TableName
from calque.ports import Catalog, Conflict, Storage


@dataclass(frozen=True, slots=True)
class RemovedItem:
    """`what` is "directory" (replaced, dropped, or never used), "staging" (copies that were never published), or
    "hidden table" (by its name: one that a death left half-built, or renamed away)."""

    location: str
    what: str
    files: int
    bytes: int


def drop_hidden(catalog: Catalog, name: TableName) -> RemovedItem:
    with suppress(Conflict):
        catalog.drop_table(name)
    return RemovedItem(str(name), "hidden table", 0, 0)


def remove_directory(storage: Storage, node: DirectoryEntry) -> RemovedItem:
    """The mark of its owner goes last, so that a sweep that dies is finished by the next one."""
    names = [*(file.name for file in node.files), *(child.name for child in node.directories)]
    storage.remove([join(node.location, name) for name in names if not name.startswith(OWNER)])
    storage.remove([node.location])
    return RemovedItem(node.location, "directory", *node.content())


def remove_staging(storage: Storage, node: DirectoryEntry) -> RemovedItem:
    storage.remove([node.location])
    return RemovedItem(node.location, "staging", *node.content())
