"""A metastore's change manager over a storage in memory, as Hive's `ReplChangeManager` does it: files that a drop, a
truncation or an overwriting INSERT removes are moved, files of what is renamed are copied, and both get a new time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calque.core.formats.layout import join
from calque.core.states.kept_files import NamedFile
from calque.model.names import TableName
from support.memory.metastore import MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.writers import Directories


class KeepingDirectories(Directories):
    """Keeps the files of the directories that `keeps` names; all are logged with checksums."""

    def __init__(self, storage: MemoryStorage, keeps: Callable[[str], bool], root: str = "file:/cmroot") -> None:
        super().__init__(storage)
        self.keeps, self.root = keeps, root

    def files(self, location: str) -> list[str]:
        return [self.logged(path) for path in super().files(location)]

    def logged(self, path: str) -> str:
        """The file as events name it."""
        return f"{path}#{self.named(path).checksum}#{self.root}#"

    def named(self, path: str) -> NamedFile:
        return NamedFile(path, self.storage.system_checksums([path])[path], self.root)

    def remove(self, location: str) -> None:
        if self.keeps(location):
            for path in self.paths(location):
                self.keep(path)
        super().remove(location)

    def move(self, source: str, target: str) -> None:
        if self.keeps(source):
            for path in self.paths(source):
                self.keep(path)
                self.storage.touch(path)
        super().move(source, target)

    def keep(self, path: str) -> None:
        """A copy, or a new time for an equal one."""
        kept_path, content = self.named(path).kept_path, self.storage.read(path)
        self.storage.write(kept_path, content or b"")

    def paths(self, location: str) -> list[str]:
        return [join(location, file.path) for file in self.storage.list([location])[location].files]


class KeepingFiles:
    """The storage as Hive's writers have it: what they remove is kept."""

    def __init__(self, directories: KeepingDirectories) -> None:
        self.directories = directories

    def __getattr__(self, call: str) -> Any:
        return getattr(self.directories.storage, call)

    def remove(self, locations: Sequence[str]) -> None:
        for location in locations:
            if self.directories.keeps(location) and self.directories.storage.read(location) is not None:
                self.directories.keep(location)
                self.directories.storage.remove([location])
            else:
                self.directories.remove(location)


class KeepingSource:
    """A metastore whose INSERTs are told of with checksums."""

    def __init__(self, metastore: MemoryMetastore, directories: KeepingDirectories) -> None:
        self.metastore, self.directories = metastore, directories
        metastore.directories = directories

    def __getattr__(self, call: str) -> Any:
        return getattr(self.metastore, call)

    def insert(self, name: TableName, files: Sequence[str], **named: Any) -> None:
        self.metastore.insert(name, [self.directories.logged(path) for path in files], **named)
