"""The search for files that a dump only names: at their places, or where Hive's change manager keeps removed files."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from calque.core.events.decode import LoggedFile
from calque.core.formats.layout import is_data, join, place
from calque.core.states.kept_files import NamedFile
from calque.errors import Refused
from calque.model.files import File, KeptFile, Listing
from calque.plugins.dumps.adapters.directory import text_of
from calque.plugins.dumps.core.file_lists import read_files
from calque.plugins.dumps.core.layout import FILES
from calque.ports import Storage

MD5_DIGITS = 32
LARGEST_DIGESTED = 64 << 20
"""Bytes of the largest file that is read to compute a checksum that the file system does not tell."""


@dataclass(slots=True)
class FileLocator:
    """A reader of lists of files that finds each named file. `change_root` is the directory of the change manager where
    a list names none. `missing` has each file that was not found when it was last looked for."""

    storage: Storage
    change_root: str | None = None
    missing: dict[str, str] = field(default_factory=dict)
    """The missing files, by path: for each the path at which the change manager would keep it, empty where that is not
    known."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def listings(self, places: Mapping[str, str]) -> dict[str, Listing | None]:
        """Return the listing of each location, where `places` has the data directory in the dump of each location. The
        directory holds the files itself or has a list (`_files`) that names them. A listing is None where one of the
        named files is missing. A location whose data directory does not exist has no files."""
        named: dict[str, Mapping[str, LoggedFile]] = {}
        held: dict[str, Listing] = {}
        for location, data in places.items():
            content = self.storage.read(join(data, FILES))
            if content is None:
                held[location] = self.held(location, data)
            else:
                named[location] = paths_of(location, read_files(text_of(content)))
        files = self.located({file for files in named.values() for file in files.values()})
        listings: dict[str, Listing | None] = dict(held)
        for location, by_path in named.items():
            if any(file not in files for file in by_path.values()):
                listings[location] = None
            else:
                listings[location] = listing_of(location, {path: files[file] for path, file in by_path.items()})
        return listings

    def held(self, location: str, data: str) -> Listing:
        """Return the listing of `location` with the files that lie in the directory `data` of the dump."""
        files = self.storage.list([data])[data].files
        return listing_of(
            location, {file.path: File(join(data, file.path), file.size, file.modified_ns) for file in files}
        )

    def located(self, files: Iterable[LoggedFile]) -> dict[LoggedFile, File]:
        """Return for each file the path, size and time at which it lies now: at its own place, else where the change
        manager keeps it. Files that are at neither place are left out of the result and noted in `missing`."""
        wanted = sorted(set(files), key=lambda file: file.uri)
        at_place = self.equal({file: file.uri for file in wanted}, is_named_by_content=False)
        others = {
            file: kept.kept_path for file in wanted if file not in at_place and (kept := self.kept(file)) is not None
        }
        found = at_place | self.equal(others, is_named_by_content=True)
        with self.lock:
            for file in wanted:
                self.missing.pop(file.uri, None)
                if file not in found:
                    self.missing[file.uri] = others.get(file, "")
        return found

    def note_missing(self, path: str) -> None:
        """Note in `missing` that the file `path` of the dump itself does not exist."""
        with self.lock:
            self.missing[path] = ""

    def kept(self, file: LoggedFile) -> NamedFile | None:
        root = file.change_root or self.change_root
        return NamedFile(file.uri, file.checksum, root) if file.checksum and root else None

    def equal(self, paths: Mapping[LoggedFile, str], *, is_named_by_content: bool) -> dict[LoggedFile, File]:
        """Return those of the files that lie at these paths with the checksums that the dump says. Where the file
        system tells no checksum, the content is read and compared, except with `is_named_by_content`: then the checksum
        is part of the file's name, and the name is proof enough."""
        present = self.storage.files(sorted(set(paths.values()))) if paths else {}
        checked = sorted({path for file, path in paths.items() if file.checksum and path in present})
        checksums = self.storage.system_checksums(checked) if checked else {}
        found = {}
        for file, path in paths.items():
            if path not in present:
                continue
            if file.checksum and path in checksums:
                is_equal = checksums[path] == file.checksum
            else:
                is_equal = is_named_by_content or not file.checksum or self.digests_to(present[path], file.checksum)
            if is_equal:
                found[file] = present[path]
        return found

    def digests_to(self, file: File, checksum: str) -> bool:
        """Tell whether the content of `file` has the MD5 `checksum`. The result is true also where this can't be told,
        because Hive takes such a file: the checksum is no MD5, or the file is larger than `LARGEST_DIGESTED`."""
        if len(checksum) != MD5_DIGITS or file.size > LARGEST_DIGESTED:
            return True
        content = self.storage.read(file.path)
        return content is not None and hashlib.md5(content, usedforsecurity=False).hexdigest() == checksum.lower()


def paths_of(location: str, files: Iterable[LoggedFile]) -> dict[str, LoggedFile]:
    """Return the data files by their paths below `location`. Raises `Refused` for a file whose path would leave this
    directory."""
    root = place(location)
    by_path: dict[str, LoggedFile] = {}
    for file in files:
        path = place(file.uri)
        name = path.path.removeprefix(root.path).lstrip("/") if root.contains(path) else path.path.rpartition("/")[2]
        relative = join(file.directory, name) if file.directory and not root.contains(path) else name
        if ".." in relative.split("/"):
            raise Refused(
                f"The dump names {file.uri} in {file.directory}", "It leaves the table", "Make the dump again"
            )
        if relative and is_data(relative):
            by_path[relative] = file
    return by_path


def listing_of(location: str, files: Mapping[str, File]) -> Listing:
    """Return the listing of `location` whose files lie elsewhere: `files` has the real file by its path below the
    location, and `kept` of the listing names the real paths."""
    paths = sorted(files)
    return Listing(
        location,
        tuple(File(path, files[path].size, files[path].modified_ns) for path in paths),
        kept=tuple(KeptFile(path, files[path].path, files[path].modified_ns) for path in paths),
    )


def required(listings: Mapping[str, Listing | None], missing: Mapping[str, str]) -> dict[str, Listing]:
    """Return the listings. Raises `Refused` where one of them is None, because a file of it is missing."""
    whole = {location: listing for location, listing in listings.items() if listing is not None}
    if len(whole) < len(listings):
        raise lost(missing)
    return whole


def lost(missing: Mapping[str, str]) -> Refused:
    path, elsewhere = next(iter(sorted(missing.items())), ("a file of the dump", ""))
    others = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    why = "It is not at its place as the dump names it"
    why += f", nor kept as {elsewhere}" if elsewhere else ", and the dump does not say where else it is kept"
    return Refused(f"{path}{others} is nowhere to be had", why, "Make a newer dump, and load that")
