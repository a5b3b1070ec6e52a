"""`Storage.entries`: names with sizes and times."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from calque.adapters.files import FileStorage
from calque.adapters.memory.storage import MemoryStorage
from calque.ports import Found, Storage

SECOND = 1_000_000_000


@pytest.fixture(params=["memory", "local", "objects"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    """A storage, and a directory in it with the files f, .g and d/e."""
    names = {"f": b"1", ".g": b"22", "d/e": b"333"}
    if request.param == "memory":
        memory = MemoryStorage()
        for name, content in names.items():
            memory.write(f"file:/w/{name}", content)
        return memory, "file:/w"
    if request.param == "local":
        (tmp_path / "d").mkdir()
        for name, content in names.items():
            (tmp_path / name).write_bytes(content)
        return FileStorage(), f"file:{tmp_path}"
    bucket = uuid4().hex
    for name, content in names.items():
        fsspec.filesystem("memory").pipe_file(f"/{bucket}/{name}", content)
    return FileStorage(), f"memory://{bucket}"


def test_entries_are_what_lies_directly_below_hidden_ones_too(world: tuple[Storage, str]) -> None:
    storage, root = world
    found = storage.entries(root)
    assert [(entry.name, entry.size, entry.directory) for entry in found] == [
        (".g", 2, False),
        ("d", 0, True),
        ("f", 1, False),
    ]
    assert all(entry.modified_ns > 1_600_000_000 * SECOND for entry in found if not entry.directory)
    assert list(storage.entries(f"{root}/none")) == []


def test_a_directory_is_as_young_as_the_last_change_in_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").touch()
    os.utime(tmp_path / "d", ns=(SECOND, SECOND))
    storage = FileStorage()
    assert storage.entries(str(tmp_path)) == [Found("d", 0, SECOND, directory=True)]
    storage.remove([f"{tmp_path}/d/f"])
    [changed] = storage.entries(str(tmp_path))
    assert changed.modified_ns > SECOND


def test_a_directory_in_memory_is_as_young_as_the_last_change_in_it() -> None:
    now = SECOND
    storage = MemoryStorage(lambda: now)
    storage.write("/w/d/f", b"")
    for change in (
        lambda: storage.make_directories(["/w/d/e"]),
        lambda: storage.write("/w/d/g", b""),
        lambda: storage.publish([("/w/d/g", "/w/d/h")]),
        lambda: storage.remove(["/w/d/h"]),
        lambda: storage.delete("/w/d/f"),
    ):
        now += SECOND
        change()
        assert storage.entries("/w") == [Found("d", 0, now, directory=True)]
