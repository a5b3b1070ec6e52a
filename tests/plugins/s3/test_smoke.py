"""S3: an object is written to a real store, listed and removed."""

from __future__ import annotations

from uuid import uuid4

from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.app import APP
from support.services.objects import ObjectStore


def test_it_works_at_all(object_store: ObjectStore) -> None:
    storage = FileStorage(FileSystemSet(object_store.options, kinds=APP.file_systems()))
    place = f"s3://{object_store.bucket}/{uuid4().hex}"
    storage.write(f"{place}/f", b"rows")
    assert [file.path for file in storage.list([place])[place].files] == ["f"]
    assert storage.read(f"{place}/f") == b"rows"
    storage.remove([place])
    assert not storage.list([place])[place].files
