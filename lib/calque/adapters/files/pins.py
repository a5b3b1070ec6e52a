"""Files of the source that are kept as they were at an event, below one directory (port `Pins`):
`<root>/<event id>/<hash of the location>/<path>`.

Links cost nothing, but a file that is written over in place changes under its kept name too. Its size or time tells
that, and it is not taken for the listed file any more. Where no link can be made (another file system) files are copied
or, with `pin = "auto"`, not kept. A copy has its source's time where the storage can give it; without that time a copy
is never taken for the listed file.
"""

# ruff: noqa: PTH103, PTH107, PTH114, PTH116, PTH120

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from calque.core.formats.layout import join, place
from calque.model.files import File, Listing
from calque.model.names import EventId
from calque.ports import CopyTask, Storage


class StoredPins:
    """The pins below `root`, on any storage. With `links` files of this machine are linked where that is possible, with
    `copies` other files are copied."""

    def __init__(self, storage: Storage, root: str, *, links: bool = False, copies: bool = True) -> None:
        self._storage, self._root, self._links, self._copies = storage, root, links, copies

    def keep(self, event_id: EventId, location: str, listing: Listing) -> bool:
        pin = self._pin(event_id, location)
        if self._storage.exists(pin):
            self._storage.remove([pin])
        if any(is_led_to(listing.location, file) for file in listing.files):
            return False
        is_kept = False
        try:
            unlinked_files = [
                file for file in listing.files if not (self._links and linked(listing.location, pin, file))
            ]
            tasks = [
                CopyTask(join(listing.location, file.path), join(pin, file.path), file.size, file.modified_ns)
                for file in unlinked_files
            ]
            is_kept = not tasks or (self._copies and not any(copy.problem for copy in self._storage.copy(tasks)))
        finally:
            if not is_kept:
                self._storage.remove([pin])
        return is_kept

    def at(self, event_id: EventId, location: str) -> str:
        pin = self._pin(event_id, location)
        return pin if self._storage.exists(pin) else ""

    def events(self) -> Sequence[EventId]:
        return sorted(int(name) for name in self._storage.children(self._root) if name.isdecimal())

    def usage(self, event_id: EventId) -> tuple[int, int]:
        directory = join(self._root, str(event_id))
        return self._storage.list([directory])[directory].size, self._storage.modified([directory]).get(directory, 0)

    def release(self, events: Sequence[EventId]) -> None:
        self._storage.remove([join(self._root, str(event_id)) for event_id in events])

    def _pin(self, event_id: EventId, location: str) -> str:
        name = hashlib.blake2b(str(place(location)).encode(), digest_size=12).hexdigest()
        return join(self._root, f"{event_id}/{name}")


def why_not_linked(location: str, root: str) -> str:
    """Return why files in `location`, a directory, can't have hard links below `root`, a directory that may not exist
    yet; empty where they can. Nothing is written at `location`, therefore it is not tried whether the system permits
    links to other users' files."""
    source, target = place(location), place(root)
    for each, where in ((location, source), (root, target)):
        if where.scheme != "file":
            return f"{each} is on no file system of this machine"
    parent = Path(target.path)
    while not parent.exists():
        parent = parent.parent
    try:
        if os.stat(source.path).st_dev != os.stat(parent).st_dev:
            return f"{location} is on another file system than {root}"
        with TemporaryDirectory(dir=parent, prefix="_calque_probe_") as probe:
            Path(probe, "file").touch()
            os.link(f"{probe}/file", f"{probe}/link")
    except OSError as error:
        return f"{error.strerror or error}: {error.filename or location}"
    return ""


def is_led_to(location: str, file: File) -> bool:
    """Return whether a symbolic link below the directory leads to the file. Such a file is not kept. A copy must give
    no right that the file at the link's end does not give, and a kept file does not tell that a link led to it."""
    directory = place(location)
    if directory.scheme != "file":
        return False
    path = f"{directory.path}/{file.path}"
    while len(path) > len(directory.path):
        if os.path.islink(path):
            return True
        path = os.path.dirname(path)
    return False


def linked(location: str, pin: str, file: File) -> bool:
    """Make a hard link in `pin` to the listed file, and return True. Return False where none can be made, or where the
    linked file is not the listed one by size and time; then no link is left."""
    source, target = place(join(location, file.path)), place(join(pin, file.path))
    if source.scheme != "file" or target.scheme != "file":
        return False
    try:
        link(source.path, target.path)
        status = os.stat(target.path)
    except OSError:
        return False
    if (status.st_size, status.st_mtime_ns) == (file.size, file.modified_ns):
        return True
    os.remove(target.path)
    return False


def link(source: str, target: str) -> None:
    """Make a hard link in place of any file at `target`. Its directory is made where it is missing."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(source, target)
    except FileExistsError:
        os.remove(target)
        os.link(source, target)
