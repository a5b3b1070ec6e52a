"""The file system kind of HDFS, by which locations on HDFS are reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from calque.adapters.files.system import FileSystemKind, System
from calque.model.secrets import Options, revealed

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem


def path_there(_authority: str, path: str) -> str:
    return path


def system(authority: str, options: Options) -> tuple[System, Callable[[str, str], str]]:
    from calque.plugins.hdfs.adapters.file_system import open_hdfs

    return open_hdfs(authority, revealed(options)), path_there


def readers(authority: str, options: Options) -> AbstractFileSystem:
    from calque.plugins.hdfs.adapters.file_system import open_for_readers

    return open_for_readers(authority, revealed(options))


HDFS = FileSystemKind(schemes=("hdfs",), system=system, readers=readers)
