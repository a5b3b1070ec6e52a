"""Directories of data in an object store.

A store has neither directories nor renames nor times that could be set, but an object appears whole or not at all. So
an empty hidden object stands for a directory that was made, a rename is a copy inside the store and a delete, copies
are written straight to their names, and the times of their sources are noted beside them (`times`).
"""

from __future__ import annotations

import errno
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from calque.adapters.files.stores import Store, StoredObject
from calque.adapters.files.system import FileFacts
from calque.adapters.files.times import MANY, MARKER, NOTE, Times, is_internal, merged, note_name, read, written
from calque.core.formats.deltalog import LOG
from calque.core.formats.layout import is_data
from calque.model.files import File
from calque.ports import StorageEntry

THREADS = 16
REMEMBERED = 4_096
"""The number of notes that are kept in memory; a note never changes."""
ATTEMPTS = 5


class ObjectSystem:
    """A `System` over a `Store`. With `noted`, for directories that calque writes, copies get notes of times, and a
    listed file has its source's time where a note says it. `facts` gives the store's own times."""

    def __init__(self, store: Store, *, noted: bool = False) -> None:
        self.store, self.noted = store, noted
        self._lock = threading.Lock()
        self._notes: OrderedDict[str, Times] = OrderedDict()

    def facts(self, path: str) -> FileFacts | None:
        stored = self.store.find(path)
        if stored is not None:
            return FileFacts(stored.size, stored.modified_ns, stored.version)
        return FileFacts(0, 0, directory=True) if self.store.holds(path) else None

    def below(self, path: str) -> Sequence[File] | None:
        objects = self._settled(lambda: {path: list(self.store.below(path))})[path]
        if not objects and self.store.find(path) is not None:
            raise NotADirectoryError(errno.ENOTDIR, "A file", path)
        return self._listed(path, objects)

    def below_each(self, paths: Sequence[str]) -> Mapping[str, Sequence[File] | None]:
        """Return `below` of many directories of one container, by path, with fewer requests. A Delta table or a file is
        None."""
        objects = self._settled(lambda: self.store.below_each(paths))
        plain = {path for path in paths if not any(each.name.startswith(f"{path}/{LOG}/") for each in objects[path])}
        return {path: self._listed(path, objects[path]) if path in plain else None for path in paths}

    def children(self, path: str) -> Sequence[str]:
        directories, objects = self.store.level(path)
        names = {each.name.rsplit("/", 1)[1] for each in objects}
        return sorted({*directories, *(name for name in names if name and not is_internal(name))})

    def entries(self, path: str) -> Sequence[StorageEntry]:
        """Return the entries that `children` names, with sizes and times, from the same requests. An object that has
        the name of a directory is left out."""
        directories, objects = self.store.level(path)
        entries = {
            name: StorageEntry(name, each.size, each.modified_ns)
            for each in objects
            if (name := each.name.rsplit("/", 1)[1]) and not is_internal(name)
        }
        entries |= {name: StorageEntry(name, 0, 0, directory=True) for name in directories}
        return [entries[name] for name in sorted(entries)]

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        return self.store.chunks(path, size)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        content = b"".join(bytes(chunk) for chunk in chunks)
        self.store.put(path, [memoryview(content)], len(content), new=False)

    def create_new(self, path: str, content: bytes) -> bool:
        try:
            self.store.put(path, [memoryview(content)], len(content), new=True)
        except FileExistsError:
            return False
        return True

    def set_aside(self, path: str, target: str) -> bool:  # noqa: ARG002 - a store has no directories
        return False

    def create_whole(self, path: str, chunks: Iterable[memoryview], size: int) -> bool:
        """Write a new file of `size` bytes. An exception that `chunks` raises leaves nothing. Raises `FileExistsError`
        when there is one. Returns True where the store proved that it has the bytes of `chunks`; otherwise the caller
        has to read the file back."""
        return self.store.put(path, chunks, size, new=True)

    def copy_from(self, source: object, path: str, facts: FileFacts, target: str) -> bool | None:
        """Copy a file of the system `source` by the store itself; return None where the store can't. Otherwise it
        returns and raises as `create_whole` does, and raises `FileNotFoundError` when the file is not the one of
        `facts` any more."""
        if not isinstance(source, ObjectSystem) or source.store.identity != self.store.identity:
            return None
        if self.store.find(target) is not None:
            raise FileExistsError(errno.EEXIST, "There is an object already", target)
        return self.store.copy(StoredObject(path, facts.size, facts.modified_ns, facts.version), target)

    def date(self, path: str, modified_ns: int) -> None:
        """Do nothing: the times of copies are noted before they are made (`note`)."""

    def rename(self, path: str, target: str) -> None:
        stored = self.store.find(path)
        if stored is None:
            raise FileNotFoundError(errno.ENOENT, "There is no such object", path)
        self.store.copy(stored, target)
        self.store.delete([path])

    replace = rename

    def make_directory(self, path: str) -> None:
        self.store.put(f"{path}/{MARKER}", [], 0, new=False)

    def remove(self, path: str) -> None:
        self.store.delete([path, *(each.name for each in self.store.below(path))])

    def note(self, directory: str, times: Times) -> None:
        """Note the times of files that are about to be written in a directory."""
        notes = self._notes_in(directory)
        noted_times = merged(notes.items())
        if all(noted_times.get(file) == modified_ns for file, modified_ns in times.items()):
            return
        merge = len(notes) >= MANY
        name = f"{directory}/{note_name(time.time_ns())}"
        content = written({**noted_times, **times} if merge else times)
        self.store.put(name, [memoryview(content)], len(content), new=False)
        if merge:
            self.store.delete(list(notes))

    def noted_in(self, directory: str) -> Times:
        """Return the times that the notes of a directory have."""
        return merged(self._notes_in(directory).items())

    def forget_notes(self, directory: str) -> None:
        """Remove a directory's notes and marker, if nothing else is below it."""
        names = [each.name for each in self.store.below(directory)]
        if names and all(is_internal(name.removeprefix(f"{directory}/")) for name in names):
            self.store.delete(names)

    def _notes_in(self, directory: str) -> dict[str, Times]:
        objects = self._settled(lambda: {directory: self.store.level(directory)[1]})[directory]
        return {each.name: self._note(each) for each in objects if is_note(each)}

    def _listed(self, path: str, objects: Sequence[StoredObject]) -> Sequence[File] | None:
        if not objects:
            return None
        start = len(path) + 1
        files = [each for each in objects if is_data(each.name[start:]) and not each.name.endswith("/")]
        times: dict[str, Times] = {}
        if self.noted:
            notes: dict[str, dict[str, Times]] = {}
            for each in objects:
                directory, _, name = each.name.rpartition("/")
                if name.startswith(NOTE):
                    notes.setdefault(directory, {})[name] = self._note(each)
            times = {directory: merged(directory_notes.items()) for directory, directory_notes in notes.items()}
        return sorted(
            (
                File(each.name[start:], each.size, time_of(each, times.get(each.name.rpartition("/")[0], {})))
                for each in files
            ),
            key=lambda file: file.path,
        )

    def _settled(
        self, list_objects: Callable[[], Mapping[str, Sequence[StoredObject]]]
    ) -> Mapping[str, Sequence[StoredObject]]:
        """Return the result of `list_objects` after all notes in it were read, so that `_note` has them. `list_objects`
        is called again when a note was merged away meanwhile. Raises `BlockingIOError` where that goes on."""
        for _ in range(ATTEMPTS):
            listings = list_objects()
            notes = [each for objects in listings.values() for each in objects if is_note(each)] if self.noted else []
            try:
                if len(notes) > 1:
                    with ThreadPoolExecutor(min(THREADS, len(notes)), thread_name_prefix="note") as pool:
                        list(pool.map(self._note, notes))
                elif notes:
                    self._note(notes[0])
            except FileNotFoundError:
                continue
            return listings
        raise BlockingIOError(errno.EAGAIN, "Its notes of times changed while they were read")

    def _note(self, note: StoredObject) -> Times:
        with self._lock:
            times = self._notes.get(note.name)
        if times is None:
            times = read(b"".join(bytes(chunk) for chunk in self.store.chunks(note.name, note.size)))
            with self._lock:
                self._notes[note.name] = times
                while len(self._notes) > REMEMBERED:
                    self._notes.popitem(last=False)
        return times


def time_of(stored: StoredObject, times: Times) -> int:
    return times.get((stored.name.rsplit("/", 1)[1], stored.size), stored.modified_ns)


def is_note(stored: StoredObject) -> bool:
    return stored.name.rsplit("/", 1)[-1].startswith(NOTE)
