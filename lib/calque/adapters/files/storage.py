"""The port `Storage` in this process: `FileStorage`."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from secrets import token_hex

from xxhash import xxh3_128, xxh3_128_hexdigest

from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.bucket import Bucket
from calque.adapters.files.copy import discard, same_content
from calque.adapters.files.local import LocalSystem
from calque.adapters.files.many import Pace, copy_all
from calque.adapters.files.noting import (
    announce,
    carry_over,
    forget,
    listed_together,
    note_times,
    write_object,
)
from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.slots import CopySlots
from calque.adapters.files.system import ChecksumSystem, PermissionSystem, System, TailSystem, trouble
from calque.adapters.files.systems import FileSystemSet
from calque.core.formats.deltalog import LOG as DELTA_LOG
from calque.core.formats.deltalog import commit_path, newest_commit
from calque.core.formats.layout import COPYING, join, place
from calque.errors import Refused, Unavailable
from calque.model.files import File, Listing, RowLayout
from calque.model.permissions import Permissions
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask, StorageEntry

LOG = logging.getLogger(__name__)
CORES = len(os.sched_getaffinity(0))
LOCAL = Pace(threads=max(2, min(8, CORES)), files=32, apart=4096 if CORES > 1 else 0)
REMOTE = Pace(threads=16, files=1)
TOGETHER = 32
"""The number of directories of one object store from which on they are listed in pages that they share."""


class FileStorage:
    """The port `Storage` over any file system that `FileSystemSet` opens. It can be pickled. `core.formats.layout` says
    how locations are spelled.

    In object stores a directory exists as long as it was made, or a file lies below it. Times of copies are noted
    beside them (`objects`).
    """

    def __init__(
        self, systems: FileSystemSet | None = None, local: Pace = LOCAL, terms: CopyTerms | None = None
    ) -> None:
        self.systems, self._local, self.terms = systems or FileSystemSet(), local, terms or CopyTerms()
        self.bucket = Bucket(self.terms.bandwidth) if self.terms.bandwidth else None
        self.slots = CopySlots(self.terms.parallel) if self.terms.parallel else None

    def __reduce__(self) -> tuple[type[FileStorage], tuple[FileSystemSet, Pace, CopyTerms]]:
        return FileStorage, (self.systems, self._local, self.terms)

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """Return the listing of each location, by location. Raises `Refused`, which names the first location that is a
        file or may not be read."""
        if len(locations) < 2 or is_local(locations):
            return {location: self._listing(location) for location in dict.fromkeys(locations)}
        if len(locations) >= TOGETHER:
            return listed_together(self.systems, locations, self.list)
        with ThreadPoolExecutor(min(REMOTE.threads, len(locations)), thread_name_prefix="list") as pool:
            return dict(zip(locations, pool.map(self._listing, locations), strict=True))

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        unique_paths = list(dict.fromkeys(paths))
        if len(unique_paths) < 2 or is_local(unique_paths):
            files = [self._file(path) for path in unique_paths]
        else:
            with ThreadPoolExecutor(min(REMOTE.threads, len(unique_paths)), thread_name_prefix="files") as pool:
                files = list(pool.map(self._file, unique_paths))
        return {file.path: file for file in files if file is not None}

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        if not tasks:
            return []
        self.announce(tasks)
        return self.copy_announced(tasks, progress)

    def announce(self, tasks: Sequence[CopyTask]) -> None:
        """Do what has to be done at the targets before any copy is made: check that no link leads out of the target's
        own places, and note the files' times in stores. Raises `Refused` for such a link."""
        self.systems.require_inside(task.target for task in tasks)
        announce(self.systems, tasks)

    def copy_announced(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        """Copy the files as `copy` does, after `announce` was called for them."""
        local = is_local([location for task in tasks for location in (task.source, task.target)])
        pace = self._local if local else REMOTE
        return copy_all(tasks, self.systems, pace, self.terms, self.bucket, self.slots, progress)

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        from calque.adapters.files.combine import Combining

        self.systems.require_inside(task.target for task in tasks)
        local = is_local([source.source for task in tasks for source in task.sources])
        combining = Combining(self, self.systems, self.terms, self.bucket, self.slots, local=local)
        return combining.all(tasks, progress)

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        from calque.adapters.files.combine import THREADS, digest_at

        with ThreadPoolExecutor(THREADS, thread_name_prefix="rows") as pool:
            return list(pool.map(lambda group: digest_at(self, group), groups))

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        """Rename staged files into place, in order. Raises `Unavailable` when neither the staged file nor its target is
        there: it must be staged again; and `Refused` when another file lies at a target."""
        self.systems.require_inside(location for rename in renames for location in rename)
        noted_directories = carry_over(self.systems, renames)
        for staged, target in renames:
            self._publish(staged, target)
        forget(noted_directories)

    def make_directories(self, locations: Sequence[str]) -> None:
        self.systems.require_inside(locations)
        for location in locations:
            system, path = self.systems.at(location)
            try:
                system.make_directory(path)
            except OSError as error:
                raise trouble("make", location, error) from error

    def exists(self, location: str) -> bool:
        system, path = self.systems.to_read(location)
        try:
            return system.facts(path) is not None
        except OSError as error:
            raise trouble("look at", location, error) from error

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Return the xxh3-128 of each file, by full path. A file that is replaced while it is read may get a checksum
        that neither content has."""
        unique_paths = list(dict.fromkeys(paths))
        threads = (self._local if is_local(unique_paths) else REMOTE).threads
        with ThreadPoolExecutor(threads, thread_name_prefix="checksum") as pool:
            checksums = dict(zip(unique_paths, pool.map(self._checksum, unique_paths), strict=True))
        return {path: checksum for path, checksum in checksums.items() if checksum}

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        digests = {path: self._digest(path) for path in dict.fromkeys(paths)}
        return {path: digest for path, digest in digests.items() if digest}

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        unique_paths = list(dict.fromkeys(paths))
        threads = (self._local if is_local(unique_paths) else REMOTE).threads
        with ThreadPoolExecutor(threads, thread_name_prefix="tail") as pool:
            tails = zip(unique_paths, pool.map(lambda path: self._tail(path, size), unique_paths), strict=True)
            return {path: tail for path, tail in tails if tail is not None}

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        unique_paths = list(dict.fromkeys(paths))
        if is_local(unique_paths):
            return {}
        with ThreadPoolExecutor(REMOTE.threads, thread_name_prefix="checksum") as pool:
            checksums = dict(zip(unique_paths, pool.map(self._system_checksum, unique_paths), strict=True))
        return {path: checksum for path, checksum in checksums.items() if checksum}

    def date(self, times: Mapping[str, int]) -> None:
        note_times(self.systems, times)
        for path, modified_ns in times.items():
            system, system_path = self.systems.at(path)
            try:
                system.date(system_path, modified_ns)
            except (FileNotFoundError, PermissionError):
                continue
            except OSError as error:
                raise trouble("date", path, error) from error

    def read(self, path: str) -> bytes | None:
        system, system_path = self.systems.to_read(path)
        try:
            facts = system.facts(system_path)
            if facts is None:
                return None
            most = self.systems.most_read
            chunks = in_time(system.chunks(system_path, facts.size), self.terms.limit(facts.size))
            return b"".join(map(bytes, of_at_most(chunks, facts.size, most, path)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise trouble("read", path, error) from error

    def write(self, path: str, content: bytes) -> None:
        self.systems.require_inside([path])
        system, system_path = self.systems.at(path)
        if isinstance(system, ObjectSystem):
            write_object(system, system_path, path, content)
            return
        temporary = f"{system_path.rsplit('/', 1)[0]}/{COPYING}{token_hex(8)}"
        try:
            system.create(temporary, [memoryview(content)])
            system.replace(temporary, system_path)
        except OSError as error:
            discard(system, temporary)
            raise trouble("write", path, error) from error

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        self.systems.require_inside(contents)
        if len(contents) < 2 or is_local(list(contents)):
            return frozenset(path for path, content in contents.items() if self._create(path, content))
        with ThreadPoolExecutor(min(REMOTE.threads, len(contents)), thread_name_prefix="create") as pool:
            created = pool.map(self._create, contents.keys(), contents.values())
            return frozenset(path for path, is_new in zip(contents, created, strict=True) if is_new)

    def _create(self, path: str, content: bytes) -> bool:
        system, system_path = self.systems.at(path)
        try:
            return system.create_new(system_path, content)
        except OSError as error:
            raise trouble("write", path, error) from error

    def set_aside(self, location: str, aside: str) -> str:
        self.systems.require_inside([location, aside])
        (system, path), (_, target) = self.systems.at(location), self.systems.at(aside)
        try:
            return aside if system.set_aside(path, target) else location
        except OSError as error:
            raise trouble("rename", location, error) from error

    def remove(self, locations: Sequence[str]) -> None:
        """Remove directories or files with all below. Links are removed, the files that they lead to are not. Raises
        `Refused` for a whole file system or bucket."""
        self.systems.require_inside(locations)
        for location in locations:
            if place(location).path == "/":
                raise Refused(
                    f"{location} is not removed", "It is a whole file system", "Look for the cause and report it"
                )
            system, path = self.systems.at(location)
            try:
                system.remove(path)
            except OSError as error:
                raise trouble("remove", location, error) from error

    def children(self, location: str) -> Sequence[str]:
        system, path = self.systems.to_read(location)
        try:
            return system.children(path)
        except OSError as error:
            raise trouble("list", location, error) from error

    def entries(self, location: str) -> Sequence[StorageEntry]:
        system, path = self.systems.to_read(location)
        try:
            return system.entries(path)
        except OSError as error:
            raise trouble("list", location, error) from error

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        unique_directories = list(dict.fromkeys(directories))
        if len(unique_directories) < 2 or is_local(unique_directories):
            times = [self._modified(directory) for directory in unique_directories]
        else:
            with ThreadPoolExecutor(
                min(REMOTE.threads, len(unique_directories)), thread_name_prefix="modified"
            ) as pool:
                times = list(pool.map(self._modified, unique_directories))
        return {directory: time for directory, time in zip(unique_directories, times, strict=True) if time is not None}

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        unique_locations = list(dict.fromkeys(locations))
        if len(unique_locations) < 2 or is_local(unique_locations):
            permissions = [self._permissions(location) for location in unique_locations]
        else:
            with ThreadPoolExecutor(
                min(REMOTE.threads, len(unique_locations)), thread_name_prefix="permissions"
            ) as pool:
                permissions = list(pool.map(self._permissions, unique_locations))
        return {
            location: each for location, each in zip(unique_locations, permissions, strict=True) if each is not None
        }

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        self.systems.require_inside(permissions)
        if len(permissions) < 2 or is_local(list(permissions)):
            problems = [self._set_permissions(*item) for item in permissions.items()]
        else:
            with ThreadPoolExecutor(min(REMOTE.threads, len(permissions)), thread_name_prefix="permissions") as pool:
                problems = list(pool.map(self._set_permissions, permissions.keys(), permissions.values()))
        return {location: problem for location, problem in zip(permissions, problems, strict=True) if problem}

    def _permissions(self, location: str) -> Permissions | None:
        system, path = self.systems.to_read(location)
        if not isinstance(system, PermissionSystem):
            return None
        try:
            return system.permissions(path)
        except OSError as error:
            raise trouble("look at the permissions of", location, error) from error

    def _set_permissions(self, location: str, permissions: Permissions) -> str:
        system, path = self.systems.at(location)
        if not isinstance(system, PermissionSystem):
            return ""
        try:
            return system.set_permissions(path, permissions)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise trouble("set the permissions of", location, error) from error

    def _modified(self, directory: str) -> int | None:
        system, path = self.systems.to_read(directory)
        try:
            facts = system.facts(path)
        except OSError as error:
            raise trouble("look at", directory, error) from error
        return facts.modified_ns if facts is not None and facts.directory else None

    def _file(self, location: str) -> File | None:
        system, path = self.systems.to_read(location)
        try:
            facts = system.facts(path)
        except OSError as error:
            raise trouble("look at", location, error) from error
        return None if facts is None or facts.directory else File(location, facts.size, facts.modified_ns)

    def _newest_commit(self, location: str) -> File | None:
        """Return the file of a Delta table's newest commit, with its checksum; None for other directories. The commit
        is read, because on storages without times only its content tells one log from another."""
        version = newest_commit(self.children(join(location, DELTA_LOG)))
        if version is None:
            return None
        path = join(location, commit_path(version))
        file, content = self._file(path), self.read(path)
        if file is None or content is None:
            return None
        return File(commit_path(version), len(content), file.modified_ns, xxh3_128_hexdigest(content))

    def _listing(self, location: str) -> Listing:
        system, path = self.systems.to_read(location)
        try:
            if isinstance(system, LocalSystem) and (plain_files := system.below_plain(path)) is not None:
                return Listing(location, tuple(plain_files))
            commit = self._newest_commit(location)
            if commit is not None:
                return Listing(location, (commit,))
            files = system.below(path)
        except OSError as error:
            raise trouble("list", location, error) from error
        return Listing(location, tuple(files or ()), missing=files is None)

    def _checksum(self, location: str) -> str:
        """Return the file's xxh3-128; empty when there is no such file."""
        system, path = self.systems.to_read(location)
        try:
            facts = system.facts(path)
            if facts is None or facts.directory:
                return ""
            digest = xxh3_128()
            for chunk in in_time(system.chunks(path, facts.size), self.terms.limit(facts.size)):
                digest.update(chunk)
            return digest.hexdigest()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise trouble("read", location, error) from error

    def _digest(self, location: str) -> str:
        """Return the file's SHA-256; empty when there is no such file."""
        system, path = self.systems.to_read(location)
        digest = sha256()
        try:
            facts = system.facts(path)
            if facts is None or facts.directory:
                return ""
            for chunk in system.chunks(path, facts.size):
                digest.update(chunk)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise trouble("read", location, error) from error
        return digest.hexdigest()

    def _tail(self, location: str, size: int) -> bytes | None:
        """Return the file's last `size` bytes; None when there is no such file."""
        system, path = self.systems.to_read(location)
        if not isinstance(system, TailSystem):
            content = self.read(location)
            return None if content is None else content[-size:]
        try:
            return system.tail(path, size)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise trouble("read", location, error) from error

    def _system_checksum(self, location: str) -> str:
        """Return the file system's own checksum of the file; empty where there is none, or it is not told."""
        system, path = self.systems.to_read(location)
        if not isinstance(system, ChecksumSystem):
            return ""
        try:
            return system.system_checksum(path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            LOG.debug("no checksum of %s: %s", location, error)
            return ""

    def _publish(self, staged: str, target: str) -> None:
        system, staged_path = self.systems.at(staged)
        _, target_path = self.systems.at(target)
        if not self.systems.share_system(staged, target):
            raise Refused(
                f"{staged} can't be published as {target}", "They are on two file systems", "Stage it beside its target"
            )
        try:
            self._rename(system, staged_path, target_path)
        except FileNotFoundError as error:
            raise Unavailable(
                f"{staged} can't be published", "It is not there, nor is its target", "It is staged again"
            ) from error
        except FileExistsError as error:
            raise Refused(
                f"{staged} can't be published",
                f"Another file lies at {target}",
                "Find out who wrote it, and remove it if nothing uses it",
            ) from error
        except OSError as error:
            raise trouble("rename a staged file to", target, error) from error

    def _rename(self, system: System, staged: str, target: str) -> None:
        staged_facts, target_facts = system.facts(staged), system.facts(target)
        if target_facts is None:
            if staged_facts is None:
                raise FileNotFoundError(staged)
            system.rename(staged, target)
        elif staged_facts is not None:
            # A rename died between its two halves, or a file was staged again after it was published.
            size = target_facts.size
            if staged_facts.size != size or not same_content((system, staged), (system, target), size):
                raise FileExistsError(target)
            system.remove(staged)


def in_time(chunks: Iterator[memoryview], seconds: float) -> Iterator[memoryview]:
    """Pass the chunks of a content on. Raises `TimeoutError` when all of them together take longer than `seconds`. The
    time is compared behind each chunk, so that one chunk that hangs is not interrupted here."""
    deadline = time.monotonic() + seconds
    for chunk in chunks:
        yield chunk
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"It takes longer than {seconds:.0f} s")


def of_at_most(chunks: Iterator[memoryview], size: int, most: int, location: str) -> Iterator[memoryview]:
    """Pass the chunks of a file's content on. Raises `Refused` where its expected `size`, or what really comes, is more
    than `most` bytes."""
    length = 0
    if size > most:
        raise too_large(location, size, most)
    for chunk in chunks:
        length += len(chunk)
        if length > most:
            raise too_large(location, length, most)
        yield chunk


def too_large(location: str, size: int, most: int) -> Refused:
    return Refused(
        f"{location} has {size} bytes, and is to be read whole",
        f"[source] max_message takes {most} at most",
        "Raise that, or leave the table out",
    )


def is_local(locations: Sequence[str]) -> bool:
    """Return whether all locations are on file systems of this machine, mounted ones included."""
    return all(location.startswith(("/", "file:")) for location in locations)
