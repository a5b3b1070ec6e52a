"""Directories of data in a dictionary: the port `Storage` for tests that need no disk, and their writer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from threading import RLock

from xxhash import xxh3_128_hexdigest

from calque.core.formats.deltalog import LOG, commit_path, newest_commit
from calque.core.formats.layout import is_data, place
from calque.core.small_files.combine_rows import combine, digest_of_rows
from calque.core.small_files.grouping import Unfit
from calque.errors import Broken, Refused, Unavailable
from calque.model.files import File, Listing, RowLayout
from calque.model.permissions import Permissions
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask, StorageEntry

FIRST_NS = 1_700_000_000_000_000_000
NOBODYS = Permissions("nobody", "nobody", 0o755)
"""What is given to whatever is made."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    content: bytes
    modified_ns: int


class MemoryStorage:
    """Every location of every scheme, in one store. Times of files never repeat and never go back.

    `before` is called with a call's name and what it is about before each call that a real storage would make on its
    own: ("list", location), ("copy", source), ("combine", target), ("publish", target), ("make", location), ("exists",
    location), ("checksum", path), ("system checksum", path), ("files", path), ("date", path), ("remove", location),
    ("children", location), ("entries", location), ("create", path), ("set aside", location), ("permissions", location),
    ("set permissions", location). It may
    raise what the port allows, and may change files.
    """

    def __init__(self, now_ns: Callable[[], int] | None = None) -> None:
        self.before: Callable[[str, str], None] = lambda _call, _about: None
        self._now_ns = now_ns or (lambda: FIRST_NS)
        self.changes = 0
        """How often files were written, renamed or removed."""
        self._latest = 0
        self._lock = RLock()
        self._files: dict[str, StoredFile] = {}
        self._directories: dict[str, int] = {}
        """When something was last made, renamed or removed in each."""
        self._permissions: dict[str, Permissions] = {}
        """Of files and directories that have others than `NOBODYS`."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        return {location: self._listing(location) for location in locations}

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        files = {}
        for path in paths:
            self.before("files", path)
            with self._lock:
                if (stored := self._files.get(_key(path))) is not None:
                    files[path] = File(path, len(stored.content), stored.modified_ns)
        return files

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        if len({task.target for task in tasks}) != len(set(tasks)):
            raise Broken("Different files are to be copied to one target", "Each object has a directory of its own")
        results = []
        for task in tasks:
            self.before("copy", task.source)
            results.append(self._copied(task))
            if progress:
                progress(results[-1])
        return results

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        results = []
        for task in tasks:
            self.before("combine", task.target)
            results.append(self._combined(task))
            if progress:
                progress(results[-1])
        return results

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        digests = []
        for layout, paths in groups:
            contents = [self.read(path) for path in paths]
            try:
                present = [content for content in contents if content is not None]
                digests.append(digest_of_rows(layout, present) if len(present) == len(paths) else "")
            except Unfit:
                digests.append("")
        return digests

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for staged, target in renames:
            self.before("publish", target)
            with self._lock:
                self._publish(staged, _key(staged), target, _key(target))

    def make_directories(self, locations: Sequence[str]) -> None:
        for location in locations:
            self.before("make", location)
            with self._lock:
                if _key(location) in self._files:
                    raise Refused(f"Can't make {location}", "A file lies there", "Remove it if nothing uses it")
                self._add_directory(_key(location))

    def exists(self, location: str) -> bool:
        self.before("exists", location)
        with self._lock:
            return _key(location) in self._files or _key(location) in self._directories

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        checksums = {}
        for path in paths:
            self.before("checksum", path)
            with self._lock:
                if (stored := self._files.get(_key(path))) is not None:
                    checksums[path] = xxh3_128_hexdigest(stored.content)
        return checksums

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        digests = {}
        for path in paths:
            self.before("checksum", path)
            if (content := self.read(path)) is not None:
                digests[path] = hashlib.sha256(content).hexdigest()
        return digests

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        return {path: content[-size:] for path in paths if (content := self.read(path)) is not None}

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        checksums = {}
        for path in paths:
            self.before("system checksum", path)
            if (content := self.read(path)) is not None:
                checksums[path] = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return checksums

    def date(self, times: Mapping[str, int]) -> None:
        for path, modified_ns in times.items():
            self.before("date", path)
            with self._lock:
                if (stored := self._files.get(_key(path))) is not None:
                    self._files[_key(path)] = StoredFile(stored.content, modified_ns)

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        created = set()
        for path, content in contents.items():
            self.before("create", path)
            with self._lock:
                if _key(path) not in self._files and _key(path) not in self._directories:
                    self._put(_key(path), content)
                    created.add(path)
        return frozenset(created)

    def set_aside(self, location: str, aside: str) -> str:
        self.before("set aside", location)
        with self._lock:
            if _key(location) not in self._directories:
                return location
            self.move(location, aside)
        return aside

    def remove(self, locations: Sequence[str]) -> None:
        for location in locations:
            self.before("remove", location)
            if place(location).path == "/":
                raise Refused(f"{location} is not removed", "It is a whole file system")
            with self._lock:
                key = _key(location)
                for path in [path for path in self._files if path == key or path.startswith(key + "/")]:
                    del self._files[path]
                for path in [path for path in self._directories if path == key or path.startswith(key + "/")]:
                    del self._directories[path]
                self._forget_permissions(key)
                self.changes += 1
                self._changed(_above(key))

    def children(self, location: str) -> Sequence[str]:
        self.before("children", location)
        above = _key(location).rstrip("/") + "/"
        with self._lock:
            below = [path for path in (*self._files, *self._directories) if path.startswith(above)]
        return sorted({path.removeprefix(above).split("/", 1)[0] for path in below})

    def entries(self, location: str) -> Sequence[StorageEntry]:
        self.before("entries", location)
        above = _key(location).rstrip("/") + "/"
        with self._lock:
            files = [
                StorageEntry(path.removeprefix(above), len(stored.content), stored.modified_ns)
                for path, stored in self._files.items()
                if path.startswith(above) and "/" not in path.removeprefix(above)
            ]
            directories = [
                StorageEntry(path.removeprefix(above), 0, changed_ns, directory=True)
                for path, changed_ns in self._directories.items()
                if path.startswith(above) and "/" not in path.removeprefix(above)
            ]
        return sorted(files + directories, key=lambda entry: entry.name)

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        with self._lock:
            return {each: self._directories[_key(each)] for each in directories if _key(each) in self._directories}

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        permissions = {}
        for location in locations:
            self.before("permissions", location)
            with self._lock:
                if _key(location) in self._files or _key(location) in self._directories:
                    permissions[location] = self._permissions.get(_key(location), NOBODYS)
        return permissions

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        for location, each in permissions.items():
            self.before("set permissions", location)
            with self._lock:
                if _key(location) in self._files or _key(location) in self._directories:
                    self._permissions[_key(location)] = each
        return {}

    def read(self, location: str) -> bytes | None:
        with self._lock:
            stored = self._files.get(_key(location))
        return stored.content if stored is not None else None

    def write(self, location: str, content: bytes) -> None:
        """Also for those who write at the source, so `before` is not called."""
        with self._lock:
            self._put(_key(location), content)

    def append(self, location: str, content: bytes) -> None:
        with self._lock:
            self._put(_key(location), self._files[_key(location)].content + content)

    def delete(self, location: str) -> None:
        """Delete one file; its directory stays."""
        with self._lock:
            del self._files[_key(location)]
            self._forget_permissions(_key(location))
            self.changes += 1
            self._changed(_above(_key(location)))

    def touch(self, location: str) -> None:
        """A new time for the same content."""
        with self._lock:
            self._put(_key(location), self._files[_key(location)].content)

    def make(self, location: str) -> None:
        """A directory, as a metastore makes that of a table."""
        with self._lock:
            self._add_directory(_key(location))

    def move(self, source: str, target: str) -> None:
        """A directory with all that is in it, as a metastore moves a renamed table's."""
        old_key, new_key = _key(source), _key(target)
        with self._lock:
            for path in [path for path in self._directories if path == old_key or path.startswith(old_key + "/")]:
                del self._directories[path]
                self._add_directory(new_key + path[len(old_key) :])
            for path in [path for path in self._files if path.startswith(old_key + "/")]:
                self._files[new_key + path[len(old_key) :]] = self._files.pop(path)
            self._move_permissions(old_key, new_key)
            self.changes += 1
            self._changed(_above(old_key))

    def paths(self) -> Sequence[str]:
        """Every file, hidden ones too, sorted."""
        with self._lock:
            return sorted(self._files)

    def tree(self, location: str) -> Mapping[str, tuple[int, int]]:
        """Every file and directory below, hidden ones too: its size, and when it was written or last changed."""
        above = _key(location).rstrip("/") + "/"
        with self._lock:
            directories = {path: (0, changed_ns) for path, changed_ns in self._directories.items()}
            files = {path: (len(stored.content), stored.modified_ns) for path, stored in self._files.items()}
        return {path: row for path, row in (directories | files).items() if path.startswith(above)}

    def contents(self, location: str) -> Sequence[tuple[str, bytes]]:
        """Path and content of every data file below, as a reader of the directory finds them."""
        above = _key(location).rstrip("/") + "/"
        with self._lock:
            return [(path, stored.content) for path, stored in self._data(above)]

    def _data(self, above: str) -> Sequence[tuple[str, StoredFile]]:
        """Data files below, by their paths from there, sorted."""
        files = [(path[len(above) :], stored) for path, stored in self._files.items() if path.startswith(above)]
        return sorted((item for item in files if is_data(item[0])), key=itemgetter(0))

    def _listing(self, location: str) -> Listing:
        self.before("list", location)
        key = _key(location)
        above = key.rstrip("/") + "/"
        with self._lock:
            if key in self._files:
                raise Refused(f"Can't list {location}", "It is a file", "Put right what lies there")
            if (commit := self._newest_commit(above)) is not None:
                return Listing(location, (commit,))
            files = tuple(File(path, len(stored.content), stored.modified_ns) for path, stored in self._data(above))
            return Listing(location, files, missing=key not in self._directories)

    def _newest_commit(self, above: str) -> File | None:
        log = f"{above}{LOG}/"
        version = newest_commit(path.removeprefix(log) for path in self._files if path.startswith(log))
        if version is None:
            return None
        stored = self._files[above + commit_path(version)]
        checksum = xxh3_128_hexdigest(stored.content)
        return File(commit_path(version), len(stored.content), stored.modified_ns, checksum)

    def _copied(self, task: CopyTask) -> CopiedFile:
        with self._lock:
            source, target = self._files.get(_key(task.source)), self._files.get(_key(task.target))
            if source is None:
                return CopiedFile(task, problem=f"{task.source} is not there any more.")
            if (len(source.content), source.modified_ns) != (task.size, task.expected_ns):
                return CopiedFile(task, problem=f"{task.source} is not the file that was listed.")
            if task.ours and target and (len(target.content), target.modified_ns) == (task.size, task.modified_ns):
                return CopiedFile(task)
            checksum = xxh3_128_hexdigest(source.content)
            if _key(task.target) in self._directories or (target and target.content != source.content):
                return CopiedFile(task, problem=f"{task.target} is there already with other content.")
            copied = StoredFile(source.content, task.modified_ns)
            if task.permissions:
                self._permissions[_key(task.target)] = self._permissions.get(_key(task.source), NOBODYS)
            if target:
                self._files[_key(task.target)] = copied
                return CopiedFile(task, checksum)
            self._put(_key(task.target), source.content)
            self._files[_key(task.target)] = copied
            return CopiedFile(task, checksum, bytes_moved=task.size)

    def _combined(self, task: CombineTask) -> CombinedRows:
        with self._lock:
            contents = []
            for source in task.sources:
                stored = self._files.get(_key(source.source))
                if stored is None or (len(stored.content), stored.modified_ns) != (source.size, source.expected_ns):
                    problem = f"{source.source} is not the file that was listed."
                    return CombinedRows(task, problem=problem, lost=(source,))
                contents.append(stored.content)
            try:
                content, digest = combine(task.layout, contents)
                if digest_of_rows(task.layout, [content]) != digest:
                    return CombinedRows(task, unfit="a file made of them has other rows")
            except Unfit as unfit:
                return CombinedRows(task, unfit=str(unfit))
            self._put(_key(task.target), content)
            if task.sources[0].permissions:
                self._permissions[_key(task.target)] = self._permissions.get(_key(task.sources[0].source), NOBODYS)
            made = self._files[_key(task.target)]
            file = File(task.target, len(content), made.modified_ns, xxh3_128_hexdigest(content))
            return CombinedRows(task, file, digest)

    def _publish(self, staged: str, staged_key: str, target: str, target_key: str) -> None:
        staged_file, target_file = self._files.get(staged_key), self._files.get(target_key)
        if staged_file is None:
            if target_file is None:
                raise Unavailable(f"{staged} can't be published", "It is not there, nor is its target")
            return
        if target_file is not None and target_file.content != staged_file.content:
            raise Refused(f"{staged} can't be published", f"Another file lies at {target}")
        if target_file is None:
            self._add_directory(_above(target_key))
            self._files[target_key] = staged_file
            self._changed(_above(target_key))
            self._move_permissions(staged_key, target_key)
        del self._files[staged_key]
        self._forget_permissions(staged_key)
        self.changes += 1
        self._changed(_above(staged_key))

    def _forget_permissions(self, key: str) -> None:
        """Of what lay there, and below."""
        for path in [path for path in self._permissions if path == key or path.startswith(key + "/")]:
            del self._permissions[path]

    def _move_permissions(self, key: str, new_key: str) -> None:
        for path in [path for path in self._permissions if path == key or path.startswith(key + "/")]:
            self._permissions[new_key + path[len(key) :]] = self._permissions.pop(path)

    def _put(self, key: str, content: bytes) -> None:
        self._latest = max(self._latest + 1, self._now_ns())
        self.changes += 1
        self._add_directory(_above(key))
        self._files[key] = StoredFile(content, self._latest)
        self._changed(_above(key))

    def _add_directory(self, key: str) -> None:
        is_added = False
        while key and key not in self._directories:
            self._directories[key] = self._now_ns()
            is_added, key = True, _above(key)
        if is_added:
            self._changed(key)

    def _changed(self, directory: str) -> None:
        """Something was made, renamed or removed in it."""
        if directory in self._directories:
            self._directories[directory] = max(self._latest, self._now_ns())


@lru_cache(4096)
def _key(location: str) -> str:
    return str(place(location))


@lru_cache(4096)
def _above(key: str) -> str:
    """The directory that a file or directory is in; empty above a root."""
    return str(place(key.rpartition("/")[0])) if place(key).path.count("/") > 1 else ""
