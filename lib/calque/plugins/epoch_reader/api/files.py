"""The files of a table as an epoch has them."""

from __future__ import annotations

from dataclasses import dataclass

from calque.core.formats.definition import Definition, Format


@dataclass(frozen=True, slots=True)
class Directory:
    """Files that lie together, by full path, with the values of the partition keys (None: the default partition). Of a
    Delta table `version` is the one to be read, and `files` are empty."""

    location: str
    values: tuple[str | None, ...]
    files: tuple[str, ...]
    format: Format
    version: int | None = None


@dataclass(frozen=True, slots=True)
class TableFiles:
    """What a table consists of at an epoch. The name is the source's."""

    name: str
    definition: Definition
    directories: tuple[Directory, ...]

    @property
    def version(self) -> int | None:
        """Of a Delta table."""
        return self.directories[0].version if self.directories else None

    @property
    def files(self) -> tuple[str, ...]:
        """All files, by full path."""
        return tuple(file for directory in self.directories for file in directory.files)
