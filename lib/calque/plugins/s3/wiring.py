"""The file system kind of S3, by which locations on S3 are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.adapters.files.system import FileSystemKind

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

    from calque.plugins.s3.adapters.store import S3Store


def store(files: AbstractFileSystem) -> S3Store:
    from calque.plugins.s3.adapters.store import S3Store

    return S3Store(files)


S3 = FileSystemKind(schemes=("s3", "s3a", "s3n"), store=store)
