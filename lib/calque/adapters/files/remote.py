"""File systems behind fsspec that have directories, and the opening of the system of any remote scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.options import filesystem_options
from calque.adapters.files.stores import CHUNK, FsspecStore, as_os_errors, time_of, version_of
from calque.adapters.files.system import FileFacts, FileSystemKind, System, entry
from calque.core.formats.layout import OBJECT_STORES, is_data
from calque.errors import Refused
from calque.model.files import File
from calque.model.secrets import Options
from calque.ports import StorageEntry

_PROTOCOLS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}


def open_remote(
    kind: FileSystemKind, scheme: str, authority: str, options: Options, *, noted: bool = False
) -> tuple[System, Callable[[str, str], str]]:
    """Open the file system of a scheme and authority. Returns it with a function that makes its path of (authority,
    path). `options` are those of the configuration; `noted` is for object stores (`ObjectSystem`)."""
    if kind.system is not None:
        return kind.system(authority, options)
    files = open_fsspec(kind, scheme, authority, options)
    if scheme in OBJECT_STORES:
        store = (kind.store or FsspecStore)(files)
        return ObjectSystem(store, noted=noted), lambda container, path: f"{container}{path}".rstrip("/")
    return RemoteSystem(files), lambda _, path: path


def open_fsspec(kind: FileSystemKind, scheme: str, authority: str, options: Options) -> AbstractFileSystem:
    """Return fsspec's file system of a scheme and authority. Raises `Refused` where it can't be opened."""
    if kind.readers is not None:
        return kind.readers(authority, options)
    protocol = _PROTOCOLS.get(scheme, scheme)
    if scheme in OBJECT_STORES:
        return _filesystem(protocol, filesystem_options(protocol, options))
    host, _, port = authority.partition(":")
    server = {"host": host, **({"port": int(port)} if port.isdigit() else {})} if host else {}
    return _filesystem(protocol, {**server, **filesystem_options(protocol, options)})


class RemoteSystem:
    """A `System` over an fsspec file system with directories and renames."""

    def __init__(self, filesystem: AbstractFileSystem) -> None:
        self._files = filesystem

    def facts(self, path: str) -> FileFacts | None:
        with as_os_errors():
            try:
                return _facts(self._files.info(path))
            except FileNotFoundError:
                return None

    def below(self, path: str) -> Sequence[File] | None:
        with as_os_errors():
            facts = self.facts(path)
            if facts is None:
                return None
            if not facts.directory:
                raise NotADirectoryError(20, "A file", path)
            files = [_file(path, info) for info in self._walk(path) if info["type"] == "file"]
        return sorted((file for file in files if is_data(file.path)), key=lambda file: file.path)

    def children(self, path: str) -> Sequence[str]:
        return [entry.name for entry in self.entries(path)]

    def entries(self, path: str) -> Sequence[StorageEntry]:
        with as_os_errors():
            try:
                infos = self._files.ls(path, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        below = [info for info in infos if info["name"].strip("/") != path.strip("/")]
        entries = (entry(info["name"].rstrip("/").rsplit("/", 1)[1], _facts(info)) for info in below)
        return sorted(entries, key=lambda each: each.name)

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        with as_os_errors(), self._files.open(path, "rb") as file:
            while chunk := file.read(min(CHUNK, size + 1)):
                yield memoryview(chunk)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        self.make_directory(path.rsplit("/", 1)[0])
        with as_os_errors(), self._files.open(path, "wb") as file:
            for chunk in chunks:
                file.write(chunk)

    def create_new(self, path: str, content: bytes) -> bool:
        """Write a small new file, and return True; False where the name is taken. The call is as exclusive as the
        server's own opening of new files is."""
        self.make_directory(path.rsplit("/", 1)[0])
        with as_os_errors():
            try:
                with self._files.open(path, "xb") as file:
                    file.write(content)
            except FileExistsError:
                return False
        return True

    def set_aside(self, path: str, target: str) -> bool:
        with as_os_errors():
            if not self._files.exists(path):
                return False
            self._files.mv(path, target, recursive=True)
        return True

    def date(self, path: str, modified_ns: int) -> None:
        """Do nothing: no file system behind fsspec but the local one takes times."""

    def rename(self, path: str, target: str) -> None:
        with as_os_errors():
            self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            self._files.mv(path, target)

    replace = rename

    def make_directory(self, path: str) -> None:
        with as_os_errors():
            self._files.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        with as_os_errors():
            facts = self.facts(path)
            if facts is not None:
                self._files.rm(path, recursive=facts.directory)

    def _walk(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Give fsspec's facts of everything below that is no directory, without what lies in hidden directories."""
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


def _facts(info: Mapping[str, Any]) -> FileFacts:
    return FileFacts(int(info.get("size") or 0), time_of(info), version_of(info), info["type"] == "directory")
