"""Event-time files kept below one directory (port `Pins`): `<root>/<event id>/<hash of the location>/<path>`.

Links cost nothing, and share what they name: whoever writes over a file in place changes the kept one too. Its size or
time tells that, and it is not taken for the listed one any more. Where no link can be made (another file system) files
are copied, with their times where the storage can: without it they are never taken for the listed ones.
"""

# ruff: noqa: PTH103, PTH107, PTH116, PTH120

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress

from calque.core.layout import join, place
from calque.model.files import File, Listing
from calque.model.names import EventId
from calque.ports import CopyTask, Storage


class StoredPins:
    """Below `root`, on any storage. With `links` files of this machine are linked where that can be."""

    def __init__(self, storage: Storage, root: str, *, links: bool = False) -> None:
        self._storage, self._root, self._links = storage, root, links

    def keep(self, event_id: EventId, listing: Listing) -> bool:
        pin = self._pin(event_id, listing.location)
        if self._storage.exists(pin):
            self._storage.remove([pin])
        is_kept = False
        try:
            unlinked_files = [
                file for file in listing.files if not (self._links and linked(listing.location, pin, file))
            ]
            tasks = [
                CopyTask(join(listing.location, file.path), join(pin, file.path), file.size, file.modified_ns)
                for file in unlinked_files
            ]
            is_kept = not any(copy.problem for copy in self._storage.copy(tasks)) if tasks else True
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


def linked(location: str, pin: str, file: File) -> bool:
    """Whether a link in `pin` names the listed file; False where none can be made, or another file was linked."""
    source, target = place(join(location, file.path)), place(join(pin, file.path))
    if source.scheme != "file" or target.scheme != "file":
        return False
    try:
        os.makedirs(os.path.dirname(target.path), exist_ok=True)
        with suppress(FileNotFoundError):
            os.remove(target.path)
        os.link(os.path.realpath(source.path), target.path)
        status = os.stat(target.path)
    except OSError:
        return False
    if (status.st_size, status.st_mtime_ns) == (file.size, file.modified_ns):
        return True
    os.remove(target.path)
    return False
