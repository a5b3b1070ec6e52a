"""Files of this machine and of what is mounted on it, by system calls.

fsspec's local file system gives times as floating-point seconds, too coarse for nanoseconds, and costs several times as
much for each file; pathlib costs twice as much as `os`.
"""

# ruff: noqa: PTH103, PTH105, PTH108, PTH112, PTH114, PTH116, PTH120, PTH208

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from calque.adapters.files import posix_permissions
from calque.adapters.files.system import Durability, FileFacts, entry
from calque.model.files import DELTA_LOG, File
from calque.model.permissions import Permissions
from calque.ports import StorageEntry

CHUNK = 1 << 20
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe that lies in the place of a file would be waited for otherwise; files know no blocking."""


class LocalSystem:
    """`System` over `os`."""

    def __init__(self, durability: Durability = Durability.VERIFIED) -> None:
        self._durability = durability

    def facts(self, path: str) -> FileFacts | None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _facts(status)

    def below(self, path: str) -> Sequence[File] | None:
        files: list[File] = []
        try:
            pending = _scan(path, "", files, ())
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            if os.path.lexists(path):
                raise
            return None
        return _all_below(pending, files)

    def below_plain(self, path: str) -> Sequence[File] | None:
        """`below` of a directory in which nothing has the name of a Delta table's log; None where something has, and
        where `below` gives or raises something else than files."""
        files: list[File] = []
        try:
            with os.scandir(path) as scanned:
                entries = list(scanned)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if any(each.name == DELTA_LOG for each in entries):
            return None
        return _all_below(_sorted_out(entries, path, "", files, ()), files)

    def children(self, path: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def entries(self, path: str) -> Sequence[StorageEntry]:
        facts_by_name = ((name, self.facts(f"{path}/{name}")) for name in self.children(path))
        return [entry(name, facts) for name, facts in facts_by_name if facts is not None]

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        # One byte more than expected, so that a file that grew shows it, and a small one takes a small buffer.
        buffer = memoryview(bytearray(min(CHUNK, size + 1)))
        descriptor = os.open(path, READING)
        try:
            while count := os.readv(descriptor, (buffer,)):
                yield buffer[:count]
                if count < len(buffer):
                    # A short read of a regular file is its end.
                    break
        finally:
            os.close(descriptor)

    def read_whole(self, path: str, size: int) -> tuple[FileFacts, bytes]:
        """A small file, expected to be `size` bytes, from one opening. More than that shows in its length."""
        descriptor = os.open(path, READING)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "No regular file", path)
            return _facts(status), os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)

    def tail(self, path: str, size: int) -> bytes:
        descriptor = os.open(path, READING)
        try:
            return os.pread(descriptor, size, max(0, os.fstat(descriptor).st_size - size))
        finally:
            os.close(descriptor)

    def write_whole(self, path: str, content: bytes, modified_ns: int) -> bytes:
        """Write a new small file with this time; what is read back. A part may be left by an exception."""
        descriptor = self._opened(path)
        try:
            written_bytes = os.write(descriptor, content)
            while written_bytes < len(content):
                written_bytes += os.write(descriptor, content[written_bytes:])
            if self._durability is Durability.SYNCED:
                os.fsync(descriptor)
            stored = os.pread(descriptor, len(content) + 1, 0)
            os.utime(descriptor, ns=(modified_ns, modified_ns))
            return stored
        finally:
            os.close(descriptor)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        descriptor = self._opened(path)
        try:
            for chunk in chunks:
                written_bytes = os.write(descriptor, chunk)
                while written_bytes < len(chunk):
                    written_bytes += os.write(descriptor, chunk[written_bytes:])
            if self._durability is Durability.SYNCED:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

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

    def _opened(self, path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return os.open(path, flags, 0o666)


def _facts(status: os.stat_result) -> FileFacts:
    return FileFacts(
        status.st_size, status.st_mtime_ns, f"{status.st_dev}:{status.st_ino}", stat.S_ISDIR(status.st_mode)
    )


_Pending = tuple[str, str, tuple[tuple[int, int], ...]]


def _all_below(pending: list[_Pending], files: list[File]) -> Sequence[File]:
    """`files`, and those in the pending directories and below, sorted."""
    while pending:
        directory, relative, above = pending.pop()
        try:
            pending += _scan(directory, relative, files, above)
        except (FileNotFoundError, NotADirectoryError):
            continue
    files.sort(key=lambda file: file.path)
    return files


def _scan(directory: str, relative: str, files: list[File], above: tuple[tuple[int, int], ...]) -> list[_Pending]:
    with os.scandir(directory) as entries:
        return _sorted_out(entries, directory, relative, files, above)


def _sorted_out(
    entries: Iterable[os.DirEntry[str]],
    directory: str,
    relative: str,
    files: list[File],
    above: tuple[tuple[int, int], ...],
) -> list[_Pending]:
    """Add the data files among the entries of `directory` to `files`; give its directories, each with the linked
    directories above it, by which a circle is known."""
    pending: list[_Pending] = []
    for each in entries:
        name = each.name
        if name.startswith(("_", ".")):
            continue
        if not name.isascii() and not _is_text(name):
            raise OSError(errno.EILSEQ, f"A name that is not UTF-8, {os.fsencode(name)!r}", directory)
        try:
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
