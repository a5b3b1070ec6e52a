"""File systems behind fsspec: object stores and HDFS.

Object stores have no directories and no rename: a directory is there as long as a file below it is, and a rename is a
copy inside the store followed by a delete, whole at its target at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from calque.adapters.files.system import Facts, System
from calque.core.layout import OBJECT_STORES, is_data
from calque.errors import Refused
from calque.model.files import File

CHUNK = 8 << 20
_PROTOCOLS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_VERSIONS = ("ETag", "etag", "versionId", "generation", "ino")
_UNCACHED = {"use_listings_cache": False}


def open_remote(scheme: str, authority: str, options: Mapping[str, Any]) -> tuple[System, Callable[[str, str], str]]:
    """The file system of a scheme and authority, and how an (authority, path) is called there."""
    protocol = _PROTOCOLS.get(scheme, scheme)
    if scheme in OBJECT_STORES:
        found = _filesystem(protocol, {**_UNCACHED, **options})
        return RemoteSystem(found, directories=False), lambda container, path: f"{container}{path}".rstrip("/")
    host, _, port = authority.partition(":")
    server = {"host": host, **({"port": int(port)} if port.isdigit() else {})} if host else {}
    return RemoteSystem(_filesystem(protocol, {**server, **options}), directories=True), lambda _, path: path


class RemoteSystem:
    """`System` over an fsspec file system; `directories` says whether it has them, and renames."""

    def __init__(self, filesystem: AbstractFileSystem, *, directories: bool) -> None:
        self._files, self._directories = filesystem, directories

    def facts(self, path: str) -> Facts | None:
        with _as_os_errors():
            try:
                return _facts(self._files.info(path))
            except FileNotFoundError:
                return None

    def below(self, path: str) -> Sequence[File] | None:
        with _as_os_errors():
            facts = self.facts(path)
            if facts is None:
                return None
            if not facts.directory:
                raise NotADirectoryError(20, "a file", path)
            found = self._walk(path) if self._directories else self._files.find(path, detail=True).values()
            files = [_file(path, info) for info in found if info["type"] == "file"]
        return sorted((file for file in files if is_data(file.path)), key=lambda file: file.path)

    def children(self, path: str) -> Sequence[str]:
        with _as_os_errors():
            try:
                names = self._files.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        own = path.rstrip("/") + "/"
        return sorted({name.rstrip("/").rsplit("/", 1)[1] for name in names if name not in (path, own)})

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        with _as_os_errors(), self._files.open(path, "rb") as file:
            while chunk := file.read(min(CHUNK, size + 1)):
                yield memoryview(chunk)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        if self._directories:
            self.make_directory(path.rsplit("/", 1)[0])
        with _as_os_errors(), self._files.open(path, "wb") as file:
            for chunk in chunks:
                file.write(chunk)

    def date(self, path: str, modified_ns: int) -> None:
        """No file system behind fsspec but the local one takes times."""

    def rename(self, path: str, target: str) -> None:
        with _as_os_errors():
            if self._directories:
                self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
                self._files.mv(path, target)
            else:
                self._files.cp_file(path, target)
                self._files.rm_file(path)

    def make_directory(self, path: str) -> None:
        if self._directories:
            with _as_os_errors():
                self._files.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        with _as_os_errors():
            facts = self.facts(path)
            if facts is None:
                return
            if self._directories:
                self._files.rm(path, recursive=facts.directory)
            elif facts.directory:
                # `rm` would take `*` and `[` in names for patterns.
                with ThreadPoolExecutor(16) as pool:
                    list(pool.map(self._files.rm_file, self._files.find(path)))
            else:
                self._files.rm_file(path)

    def _walk(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Everything below, but for what is below a hidden directory."""
        try:
            entries = self._files.ls(path, detail=True)
        except FileNotFoundError:
            return
        for info in entries:
            if info["type"] != "directory":
                yield info
            elif is_data(info["name"].rstrip("/").rsplit("/", 1)[1]):
                yield from self._walk(info["name"])


def _filesystem(protocol: str, options: Mapping[str, Any]) -> AbstractFileSystem:
    try:
        return fsspec.filesystem(protocol, **options)
    except (ValueError, ImportError) as error:
        raise Refused(
            f"Locations of the scheme {protocol} can't be opened",
            str(error),
            "Install what fsspec needs for it, or correct the location",
        ) from error


def _file(above: str, info: Mapping[str, Any]) -> File:
    facts = _facts(info)
    # Some file systems spell their own names with a leading slash, some without.
    relative = info["name"].lstrip("/").removeprefix(above.strip("/") + "/")
    return File(relative, facts.size, facts.modified_ns)


def _facts(info: Mapping[str, Any]) -> Facts:
    time = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    version = next((str(info[key]) for key in _VERSIONS if info.get(key) is not None), "")
    return Facts(int(info.get("size") or 0), _nanoseconds(time), version, info["type"] == "directory")


def _nanoseconds(time: datetime | float | None) -> int:
    match time:
        case None:
            return 0
        case datetime():
            aware = time if time.tzinfo else time.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
        case _:
            return round(time * 1e6) * 1000


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Errors of client libraries (botocore's, pyarrow's …), which have no base in common, as `ConnectionError`.
    What Python itself raises is left: `OSError` is meant, the rest are faults of the program."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if type(error).__module__ == "builtins":
            raise
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
