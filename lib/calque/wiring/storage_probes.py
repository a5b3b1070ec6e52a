"""Probes that try whether a storage can do what calque needs. They write small files, and remove them again."""

from __future__ import annotations

from secrets import token_hex

from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.stores import ConditionalStore
from calque.adapters.files.system import FileSystemKind, trouble
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.config.keys import State
from calque.core.formats.layout import join
from calque.errors import Refused
from calque.model.names import OURS


def write_probe(systems: FileSystemSet, location: str) -> None:
    """Write a file below `location`, and remove it. Raises `Refused` where the storage does not permit that, and
    `Unavailable` where it does not answer; both name the place."""
    file = join(location, f"{OURS}_probe_{token_hex(6)}")
    system, path = systems.at(file)
    try:
        system.create(path, [memoryview(b"calque check")])
        system.remove(path)
    except OSError as error:
        raise trouble("write below", location, error) from error


def state_probe(state: State, kinds: tuple[FileSystemKind, ...]) -> None:
    """Try whether the state's tables can be written, and safely. A commit is a file that is made only if no file has
    its name, so an object store has to keep that condition. Does nothing for tables on a local path. Raises `Refused`
    where the storage does not permit writing or ignores the condition, and `Unavailable`."""
    tables = state.tables
    if not tables or tables.startswith("file:"):
        return
    systems = FileSystemSet(own=OwnLocations((tables,), state.storage), kinds=kinds)
    write_probe(systems, tables)
    system, path = systems.at(tables)
    if not isinstance(system, ObjectSystem) or not isinstance(system.store, ConditionalStore):
        return
    try:
        keeps_conditions = system.store.keeps_conditions(path)
    except OSError as error:
        raise trouble("write on condition below", tables, error) from error
    if not keeps_conditions:
        raise Refused(
            f"The store of {tables} ignores the condition that an object must be new",
            "Of two processes that commit at the same moment both would succeed, and one commit would be lost",
            "Keep the tables elsewhere ([state] tables), or use a store that knows If-None-Match on PUT",
        )
