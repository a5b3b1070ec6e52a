"""The interface of one object store, and its implementation over any store behind fsspec.

Objects are called `container/key`. Every method raises `OSError` and nothing else.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

CHUNK = 8 << 20
CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "TokenRetrievalError"})
"""The errors of botocore that waiting does not mend."""
CLIENTS = frozenset({"aiohttp", "botocore", "requests", "urllib3"})
"""The libraries of which some errors are an `OSError` too."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
_VERSIONS = ("ETag", "etag", "versionId", "generation", "ino")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object. `version` differs between two objects that followed each other under one name, as far as the store
    tells."""

    name: str
    size: int
    modified_ns: int
    version: str = ""


class Store(Protocol):
    """An object store."""

    @property
    def identity(self) -> object:
        """A value that is equal for two stores that can copy objects between them by themselves."""

    def find(self, name: str) -> StoredObject | None:
        """Return the object of exactly this name; None without one."""

    def holds(self, directory: str) -> bool:
        """Return whether any object's name begins with `directory` and a slash."""

    def below(self, directory: str) -> Iterator[StoredObject]:
        """Give all objects whose names begin with `directory` and a slash."""

    def below_each(self, directories: Sequence[str]) -> Mapping[str, Sequence[StoredObject]]:
        """Return the objects `below` each of several directories of one container, by directory."""

    def level(self, directory: str) -> tuple[Sequence[str], Sequence[StoredObject]]:
        """Return what is directly below a directory: the names of directories, without the path above them, and the
        objects."""

    def chunks(self, name: str, size: int) -> Iterator[memoryview]:
        """Give an object's content, expected to be `size` bytes."""

    def put(self, name: str, chunks: Iterable[memoryview], size: int, *, new: bool) -> bool:
        """Write an object of about `size` bytes, whole or not at all: an exception that `chunks` raises comes through
        and leaves nothing. With `new` it raises `FileExistsError` when there is an object of the name. Returns whether
        the store proved, by a checksum of its own, that it has the bytes of `chunks`."""

    def copy(self, source: StoredObject, target: str) -> bool:
        """Copy an object inside the store, whole or not at all. Raises `FileNotFoundError` when `source` is not the
        object there any more. Returns whether the store proved that both are equal."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete the objects. Missing ones are fine."""


@runtime_checkable
class ConditionalStore(Protocol):
    """A store that may ignore the condition that an object must be new."""

    def keeps_conditions(self, directory: str) -> bool:
        """Return whether the store keeps the condition for objects in `directory`. Raises `OSError`."""


class FsspecStore:
    """A `Store` over any fsspec file system of objects."""

    def __init__(self, filesystem: AbstractFileSystem) -> None:
        self.files = filesystem

    @property
    def identity(self) -> object:
        return self.files

    def find(self, name: str) -> StoredObject | None:
        with as_os_errors():
            try:
                info = self.files.info(name)
            except FileNotFoundError:
                return None
        return stored(info) if info["type"] == "file" else None

    def holds(self, directory: str) -> bool:
        return next(self.below(directory), None) is not None

    def below(self, directory: str) -> Iterator[StoredObject]:
        with as_os_errors():
            above = directory + "/"
            objects = [stored(info) for info in self.files.find(directory, detail=True).values()]
            yield from (each for each in objects if each.name.startswith(above))

    def below_each(self, directories: Sequence[str]) -> Mapping[str, Sequence[StoredObject]]:
        return each_below(self, directories)

    def level(self, directory: str) -> tuple[Sequence[str], Sequence[StoredObject]]:
        with as_os_errors():
            try:
                infos = [info for info in self.files.ls(directory, detail=True) if plain(info["name"]) != directory]
            except (FileNotFoundError, NotADirectoryError):
                return (), ()
        directories = [last(info["name"]) for info in infos if info["type"] == "directory"]
        return directories, [stored(info) for info in infos if info["type"] != "directory"]

    def chunks(self, name: str, size: int) -> Iterator[memoryview]:
        with as_os_errors(), self.files.open(name, "rb") as file:
            while chunk := file.read(min(CHUNK, size + 1)):
                yield memoryview(chunk)

    def put(self, name: str, chunks: Iterable[memoryview], size: int, *, new: bool) -> bool:
        if new and self.find(name) is not None:
            raise FileExistsError(17, "There is an object already", name)
        with as_os_errors():
            if size <= CHUNK:
                self.files.pipe_file(name, joined(chunks))
            else:
                file = self.files.open(name, "wb", autocommit=False)
                try:
                    for chunk in chunks:
                        file.write(chunk)
                    file.close()
                except BaseException:
                    file.discard()
                    raise
                file.commit()
        return False

    def copy(self, source: StoredObject, target: str) -> bool:
        with as_os_errors():
            self.files.cp_file(source.name, target)
            target_object, source_object = self.find(target), self.find(source.name)
        if source_object is None or (source_object.size, source_object.version) != (source.size, source.version):
            raise FileNotFoundError(2, "It was replaced", source.name)
        return (
            target_object is not None
            and target_object.version == source.version != ""
            and target_object.size == source.size
        )

    def delete(self, names: Sequence[str]) -> None:
        def one(name: str) -> None:
            with as_os_errors():
                try:
                    # `rm` would take `*` and `[` in names for patterns.
                    self.files.rm_file(name)
                except FileNotFoundError:
                    return

        with ThreadPoolExecutor(16, thread_name_prefix="delete") as pool:
            list(pool.map(one, names))


def each_below(store: Store, directories: Sequence[str]) -> dict[str, Sequence[StoredObject]]:
    """Return the result of `Store.below_each` by a request for each directory, in threads."""
    if not directories:
        return {}
    with ThreadPoolExecutor(16, thread_name_prefix="list") as pool:
        objects = pool.map(lambda directory: list(store.below(directory)), directories)
        return dict(zip(directories, objects, strict=True))


def joined(chunks: Iterable[memoryview]) -> bytes:
    content = bytearray()
    for chunk in chunks:
        content += chunk
    return bytes(content)


def stored(info: Mapping[str, Any]) -> StoredObject:
    return StoredObject(plain(info["name"]), int(info.get("size") or 0), time_of(info), version_of(info))


def plain(name: str) -> str:
    """Return the name without slashes at its ends: some file systems spell their names with a leading slash, some
    without."""
    return name.lstrip("/").rstrip("/")


def last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]


def version_of(info: Mapping[str, Any]) -> str:
    return next((str(info[key]) for key in _VERSIONS if info.get(key) is not None), "")


def time_of(info: Mapping[str, Any]) -> int:
    return nanoseconds(next((info[key] for key in _TIMES if info.get(key) is not None), None))


def nanoseconds(time: datetime | float | None) -> int:
    match time:
        case None:
            return 0
        case datetime():
            aware = time if time.tzinfo else time.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
        case _:
            return round(time * 1e6) * 1000


@contextmanager
def as_os_errors() -> Iterator[None]:
    """Turn errors of client libraries (botocore's, pyarrow's …), which have no base in common, into `ConnectionError`,
    those of missing credentials into `PermissionError`. Errors that Python itself raises pass: `OSError` is meant, the
    rest are faults of the program or the caller's own."""
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        if library in ("builtins", "calque") or (isinstance(error, OSError) and library not in CLIENTS):
            raise
        if type(error).__name__ in CREDENTIALS:
            raise PermissionError(errno.EACCES, str(error)) from error
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
