"""The source's storage as a dump shows it: directories have the files that the dump holds or names."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from calque.core.formats.layout import Place, join, place
from calque.errors import Refused
from calque.model.files import Listing
from calque.plugins.dumps.adapters.directory import AGAIN
from calque.plugins.dumps.adapters.find_files import FileLocator, required
from calque.plugins.dumps.core.layout import FILES
from calque.ports import Storage
from calque.ports.forwarding import ForwardingStorage

LONG_AGO = 1
"""The time, in nanoseconds since the epoch, at which every dumped directory was last changed: the dump's listing of it
never changes, however new the directory is."""


class DumpedDirectories:
    """The directories of the source that a dump speaks of. `data` has, by location, the dump's directory with the data
    of a table or partition. `external` are the directories of external tables, whose files are those at the source now.
    `note` is safe from several threads."""

    def __init__(self, external: Sequence[str]) -> None:
        self.external = [place(location) for location in external]
        self.data: dict[str, str] = {}
        self.lock = threading.Lock()

    def note(self, location: str, data: str) -> None:
        with self.lock:
            self.data[location] = data

    def is_external(self, location: str) -> bool:
        directory: Place = place(location)
        return any(external.contains(directory) for external in self.external)


class DumpStorage(ForwardingStorage):
    """A `ports.Storage` that answers `list`, `modified` and `exists` for dumped locations as the dump says, and passes
    all else on to `storage`. The data of the dump's database lie below the directory `contents`."""

    def __init__(
        self, storage: Storage, directories: DumpedDirectories, locator: FileLocator, contents: str = ""
    ) -> None:
        super().__init__(storage)
        self._storage, self._directories, self._locator = storage, directories, locator
        self._contents = contents
        self._names_files: bool | None = None

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """Return the listing of each location. Raises `Refused` where a file, or a list of files, that the dump names
        does not exist any more."""
        at_source = [location for location in locations if not self.is_dumped(location)]
        listings = dict(self._storage.list(at_source)) if at_source else {}
        dumped = {location: self._directories.data[location] for location in locations if location not in listings}
        self.require_lists(dumped.values())
        return listings | required(self._locator.listings(dumped), self._locator.missing)

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        dumped = {location for location in directories if self.is_dumped(location)}
        return {**dict.fromkeys(dumped, LONG_AGO), **self._storage.modified(sorted({*directories} - dumped))}

    def require_lists(self, data: Iterable[str]) -> None:
        """Raise `Refused` where the list of files (`_files`) is gone from one of the directories `data`. A dump that
        names files has a list for each object that it has whole, even where the list is empty. Without this check an
        object whose list is gone would seem to have no files."""
        for directory in data:
            if not self._storage.exists(join(directory, FILES)) and self.names_files():
                path = join(directory, FILES)
                raise Refused(f"{path} is gone", "It would name the files of what the dump has", AGAIN)

    def names_files(self) -> bool:
        if self._names_files is None:
            self._names_files = bool(self._contents) and first_is_list(self._storage, self._contents) is True
        return self._names_files

    def is_dumped(self, location: str) -> bool:
        return location in self._directories.data and not self._directories.is_external(location)

    def exists(self, location: str) -> bool:
        """Tell whether `location` exists. The result is false for every path directly below a dumped directory, because
        the dump has nothing but the directory's data files."""
        parent = location.rstrip("/").rpartition("/")[0]
        return False if parent in self._directories.data else self._storage.exists(location)


def first_is_list(storage: Storage, folder: str) -> bool | None:
    """Tell whether the first file that is found below the folder is a list of files (`_files`) rather than data. Return
    None where there is neither."""
    for entry in storage.entries(folder):
        if entry.name == FILES:
            return True
        if entry.name.startswith(("_", ".")):
            continue
        found = first_is_list(storage, join(folder, entry.name)) if entry.directory else False
        if found is not None:
            return found
    return None
