"""Files of this machine and of what is mounted on it, by system calls.

fsspec's local file system gives times as floating-point seconds, too coarse for nanoseconds, and costs several times as
much for each file; pathlib costs twice as much as `os`.
"""

# ruff: noqa: PTH103, PTH104, PTH105, PTH108, PTH112, PTH114, PTH116, PTH120, PTH208

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from secrets import token_hex
from types import TracebackType

from calque.adapters.files import posix_permissions
from calque.adapters.files.admitted import AdmittedPlaces
from calque.adapters.files.system import Durability, FileFacts, entry
from calque.core.formats.layout import COPYING
from calque.model.files import DELTA_LOG, File
from calque.model.permissions import Permissions
from calque.ports import StorageEntry

CHUNK = 1 << 20
ANYBODY = 0o666
"""The greatest rights of a new file; the process's umask takes from them."""
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""The flags for opening a file to read. Without `O_NONBLOCK` a pipe that lies in the place of a file would be waited
for; regular files know no blocking."""


FICLONE = 0x40049409
"""The number of the call of the kernel's that clones a file (`ioctl_ficlone(2)`)."""
NO_CLONES = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV})
NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LocalSystem:
    """A `System` over `os`. With `admitted` only the places that these admit are listed and read."""

    def __init__(self, durability: Durability = Durability.VERIFIED, admitted: AdmittedPlaces | None = None) -> None:
        self._durability, self._admitted = durability, admitted

    def facts(self, path: str) -> FileFacts | None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _facts(status)

    def below(self, path: str) -> Sequence[File] | None:
        files: list[File] = []
        self._require(path)
        try:
            pending = _scan(path, "", files, (), self._admitted)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            if os.path.lexists(path):
                raise
            return None
        return _all_below(pending, files, self._admitted)

    def below_plain(self, path: str) -> Sequence[File] | None:
        """Return `below` of a directory in which no entry has the name of a Delta table's log. None where there is such
        an entry, and where the path is missing or a file."""
        files: list[File] = []
        if self._admitted is not None:
            self._admitted.require(path)
        try:
            pending = _scan(path, "", files, (), self._admitted, log=DELTA_LOG)
        except (FileNotFoundError, NotADirectoryError, _LogFound):
            return None
        return _all_below(pending, files, self._admitted) if pending or len(files) > 1 else files

    def children(self, path: str) -> Sequence[str]:
        self._require(path)
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def entries(self, path: str) -> Sequence[StorageEntry]:
        facts_by_name = ((name, self.facts(f"{path}/{name}")) for name in self.children(path))
        return [entry(name, _unfollowed(f"{path}/{name}", facts)) for name, facts in facts_by_name if facts is not None]

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        # The buffer has one byte more than expected: a file that grew shows it, and a small file takes a small buffer.
        buffer = memoryview(bytearray(min(CHUNK, size + 1)))
        descriptor, _ = self._opened_to_read(path)
        try:
            while count := os.readv(descriptor, (buffer,)):
                yield buffer[:count]
                if count < len(buffer):
                    # A short read of a regular file is its end.
                    break
        finally:
            os.close(descriptor)

    def read_whole(self, path: str, size: int) -> tuple[FileFacts, bytes, bool]:
        """Return the facts and content of a small file, expected to be `size` bytes, from one opening, and whether its
        name is a symbolic link. At most one byte more is read, so that the length shows a file that grew."""
        before = os.lstat(path)
        linked = not stat.S_ISREG(before.st_mode)
        descriptor, status = self._opened_to_read(path, None if linked else before)
        try:
            return _facts(status), os.read(descriptor, size + 1), linked or not os.path.samestat(before, status)
        finally:
            os.close(descriptor)

    def tail(self, path: str, size: int) -> bytes:
        descriptor, status = self._opened_to_read(path)
        try:
            return os.pread(descriptor, size, max(0, status.st_size - size))
        finally:
            os.close(descriptor)

    def write_whole(
        self, path: str, content: bytes, modified_ns: int, mode: int = ANYBODY, *, back: bool = True
    ) -> bool:
        """Write a new small file with this time, and with at most the rights `mode`. Return whether the content is read
        back as it was written; with `back` False whether the file has its size. An exception may leave a part of the
        file."""
        descriptor = self._opened(path, mode)
        try:
            written_bytes = os.write(descriptor, content)
            while written_bytes < len(content):
                written_bytes += os.write(descriptor, content[written_bytes:])
            if self._durability is Durability.SYNCED:
                os.fsync(descriptor)
            if back:
                is_stored = os.pread(descriptor, len(content) + 1, 0) == content
            else:
                is_stored = os.fstat(descriptor).st_size == len(content)
            os.utime(descriptor, ns=(modified_ns, modified_ns))
            return is_stored
        finally:
            os.close(descriptor)

    def create(self, path: str, chunks: Iterable[memoryview], mode: int = ANYBODY) -> None:
        """Write a new file with at most the rights `mode`, and make its parents."""
        descriptor = self._opened(path, mode)
        try:
            for chunk in chunks:
                written_bytes = os.write(descriptor, chunk)
                while written_bytes < len(chunk):
                    written_bytes += os.write(descriptor, chunk[written_bytes:])
            if self._durability is Durability.SYNCED:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def clone(self, path: str, source: LocalSystem, source_path: str, mode: int) -> bool:
        """Make a new file, with at most the rights `mode`, that shares the blocks of another one until one of the two
        is written to, and return True. Return False, and leave nothing, where the file systems can't do that, or the
        other file can't be opened."""
        try:
            reading, _ = source._opened_to_read(source_path)
        except OSError:
            return False
        try:
            descriptor = self._opened(path, mode)
            try:
                fcntl.ioctl(descriptor, FICLONE, reading)
                if self._durability is Durability.SYNCED:
                    os.fsync(descriptor)
            except OSError as error:
                os.unlink(path)
                if error.errno not in NO_CLONES:
                    raise
                return False
            finally:
                os.close(descriptor)
        finally:
            os.close(reading)
        return True

    def create_new(self, path: str, content: bytes) -> bool:
        """Write a small new file, and return True; False where the name is taken. A draft is written and then
        hard-linked, so that readers never see a part of the file. Where there are no hard links, a death in the middle
        leaves a part."""
        draft = f"{os.path.dirname(path)}/{COPYING}{token_hex(8)}"
        try:
            self.create(draft, [memoryview(content)])
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            return self._create_directly(path, content)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        return True

    def _create_directly(self, path: str, content: bytes) -> bool:
        try:
            self.create(path, [memoryview(content)])
        except FileExistsError:
            return False
        return True

    def set_aside(self, path: str, target: str) -> bool:
        try:
            os.rename(path, target)
        except FileNotFoundError:
            return False
        return True

    def date(self, path: str, modified_ns: int) -> None:
        os.utime(path, ns=(modified_ns, modified_ns))

    def rename(self, path: str, target: str) -> None:
        try:
            os.replace(path, target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(path, target)
        if self._durability is Durability.SYNCED:
            _sync(os.path.dirname(target))

    replace = rename

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (IsADirectoryError, PermissionError):
            if os.path.islink(path) or not os.path.isdir(path):
                raise
            shutil.rmtree(path, onerror=_missing_is_fine)

    def permissions(self, path: str) -> Permissions | None:
        return posix_permissions.read(path)

    def set_permissions(self, path: str, permissions: Permissions) -> str:
        return posix_permissions.write(path, permissions)

    def rights(self, path: str) -> int:
        """Return the bits of the mode that say which rights owner, group and others have. Links are followed."""
        return os.stat(path).st_mode & 0o777

    def is_linked(self, path: str, above: int) -> bool:
        """Return whether the file, or one of the `above` directories next to it on the way to it, is a symbolic
        link."""
        return os.path.islink(path) or self.is_below_link(path, above)

    def is_below_link(self, path: str, above: int) -> bool:
        """Return whether one of the `above` directories next to the file on the way to it is a symbolic link."""
        return above > 0 and self.is_linked(os.path.dirname(path), above - 1)

    def _require(self, path: str) -> None:
        if self._admitted is not None:
            self._admitted.require(path)

    def _opened_to_read(self, path: str, before: os.stat_result | None = None) -> tuple[int, os.stat_result]:
        """Open a regular file to read, and return its descriptor and status. The path is looked at before (`before`),
        because opening a device may have effects, and the open file after that, because another file may be there by
        then."""
        _require_regular(before or os.stat(path), path)
        descriptor = os.open(path, READING)
        try:
            status = os.fstat(descriptor)
            _require_regular(status, path)
            if self._admitted is not None:
                self._admitted.require_open(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status

    def _opened(self, path: str, mode: int) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, mode)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return os.open(path, flags, mode)


def _unfollowed(path: str, facts: FileFacts) -> FileFacts:
    """Return the facts with a link to a directory counted as no directory. A walk must not go into it: it may lead to a
    directory above itself, and what lies behind it has a place of its own."""
    return replace(facts, size=0, directory=False) if facts.directory and os.path.islink(path) else facts


def _require_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "No regular file", path)


def _facts(status: os.stat_result) -> FileFacts:
    return FileFacts(
        status.st_size, status.st_mtime_ns, f"{status.st_dev}:{status.st_ino}", stat.S_ISDIR(status.st_mode)
    )


class _LogFound(Exception):
    """A directory has a Delta table's log."""


HIDDEN = ("_", ".")
PATH = attrgetter("path")
_Pending = tuple[str, str, tuple[tuple[int, int], ...]]


def _all_below(pending: list[_Pending], files: list[File], admitted: AdmittedPlaces | None) -> Sequence[File]:
    """Return `files`, and those in the pending directories and below, sorted by path."""
    while pending:
        directory, relative, above = pending.pop()
        try:
            pending += _scan(directory, relative, files, above, admitted)
        except (FileNotFoundError, NotADirectoryError):
            continue
    files.sort(key=PATH)
    return files


def _scan(
    directory: str,
    relative: str,
    files: list[File],
    above: tuple[tuple[int, int], ...],
    admitted: AdmittedPlaces | None,
    log: str = "",
) -> list[_Pending]:
    """Add the data files directly in `directory` to `files`, and return its directories. Each comes with the linked
    directories above it, by which a circle of links is known. A link is followed where it leads to an admitted place;
    another raises `Misplaced`. Raises `_LogFound` for an entry with the name `log`, and looks at no other then."""
    pending: list[_Pending] = []
    with os.scandir(directory) as scanned:
        entries: Iterable[os.DirEntry[str]] = scanned
        if log:
            entries = list(scanned)
            if log in [each.name for each in entries]:
                raise _LogFound
        for each in entries:
            name = each.name
            if name.startswith(HIDDEN):
                continue
            if not name.isascii() and not _is_text(name):
                raise OSError(errno.EILSEQ, f"A name that is not UTF-8, {os.fsencode(name)!r}", directory)
            try:
                if admitted is not None and each.is_symlink():
                    admitted.require(each.path)
                if each.is_dir():
                    linked = _linked(each, above) if each.is_symlink() else above
                    pending.append((each.path, f"{relative}{name}/", linked))
                    continue
                status = each.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                files.append(File(relative + name, status.st_size, status.st_mtime_ns))
    return pending


def _linked(entry: os.DirEntry[str], above: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    status = entry.stat()
    identity = status.st_dev, status.st_ino
    if identity in above:
        raise OSError(errno.ELOOP, "A link to a directory above itself", entry.path)
    return *above, identity


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _missing_is_fine(
    _call: object, _path: str, error: tuple[type[BaseException], BaseException, TracebackType]
) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
