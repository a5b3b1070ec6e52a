"""The plugin of S3: a kind of file system, and the optional packages that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.adapters.files.system import FileSystemKind
    from calque.config.extras import Extra


def file_systems() -> tuple[FileSystemKind, ...]:
    from calque.plugins.s3.wiring import S3

    return (S3,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.s3.extras import S3

    return (S3,)


PLUGIN = Plugin(name="s3", file_systems=file_systems, extras=extras)
