"""HDFS: a file is written to a real one, listed and removed."""

from __future__ import annotations

from uuid import uuid4

from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.app import APP
from support.services.hdfs import Hdfs


def test_it_works_at_all(hdfs: Hdfs) -> None:
    storage, place = FileStorage(FileSystemSet(hdfs.options, kinds=APP.file_systems())), f"{hdfs.uri}/{uuid4().hex}"
    storage.write(f"{place}/f", b"rows")
    assert [file.path for file in storage.list([place])[place].files] == ["f"]
    assert storage.read(f"{place}/f") == b"rows"
    storage.remove([place])
    assert not storage.list([place])[place].files
