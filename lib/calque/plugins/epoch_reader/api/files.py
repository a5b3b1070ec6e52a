"""The files of a table as an epoch has them, as values."""

from __future__ import annotations

from dataclasses import dataclass

from calque.core.formats.definition import Definition, Format


@dataclass(frozen=True, slots=True)
class Directory:
    """The files of a table that lie together, by full path, with the values of the partition keys (None: the default
    partition). A Delta table has one directory: `version` is the version to read, and `files` is empty."""

    location: str
    values: tuple[str | None, ...]
    files: tuple[str, ...]
    format: Format
    version: int | None = None


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table at an epoch, and how they are read. The name is the source's."""

    name: str
    definition: Definition
    directories: tuple[Directory, ...]

    @property
    def version(self) -> int | None:
        """The version to read of a Delta table; None for any other table."""
        return self.directories[0].version if self.directories else None

    @property
    def files(self) -> tuple[str, ...]:
        """The files of all directories, by full path."""
        return tuple(file for directory in self.directories for file in directory.files)
