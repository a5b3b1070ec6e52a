"""The plugin of HDFS: a kind of file system, and the optional package that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.adapters.files.system import FileSystemKind
    from calque.config.extras import Extra


def file_systems() -> tuple[FileSystemKind, ...]:
    from calque.plugins.hdfs.wiring import HDFS

    return (HDFS,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.hdfs.extras import HDFS

    return (HDFS,)


PLUGIN = Plugin(name="hdfs", file_systems=file_systems, extras=extras)
