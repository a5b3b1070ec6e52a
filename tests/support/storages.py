"""Storages for tests that write and read what calque does."""

from __future__ import annotations

from calque.adapters.files import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.app import APP


def any_storage() -> FileStorage:
    """One that opens every location that calque does, without options."""
    return FileStorage(FileSystemSet(kinds=APP.file_systems()))
