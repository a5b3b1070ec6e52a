"""What directories in an object store do besides: on a real S3 server, and where said on any store behind fsspec."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest
from xxhash import xxh3_128_hexdigest

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.options import delta_options
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.stores import StoredObject
from calque.adapters.files.system import System
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.adapters.files.times import MANY, NOTE
from calque.app import APP
from calque.core.events.rows import rows_of_events
from calque.core.formats.layout import join, place, staged_name
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.files import CopyProof, File
from calque.model.journal import Event
from calque.model.secrets import FileSecret
from calque.plugins.s3.adapters.store import PART, S3Store
from calque.ports import CopyTask
from support.services.objects import ObjectStore

OLD = 1_500_000_000_123_456_789


@pytest.fixture
def files(object_store: ObjectStore) -> Any:
    """The store as somebody else sees it."""
    return fsspec.filesystem(
        "s3",
        endpoint_url=object_store.endpoint,
        key=object_store.key,
        secret=object_store.secret,
        use_listings_cache=False,
    )


@pytest.fixture(params=["s3", "memory"])
def root(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return f"memory://{uuid4().hex}"
    store: ObjectStore = request.getfixturevalue("object_store")
    return f"s3a://{store.bucket}/{uuid4().hex}"


@pytest.fixture
def s3_root(object_store: ObjectStore) -> str:
    return f"s3://{object_store.bucket}/{uuid4().hex}"


def storage_of(store: ObjectStore, *own: str) -> FileStorage:
    return FileStorage(FileSystemSet(store.options, own=OwnLocations(own, store.options), kinds=APP.file_systems()))


@pytest.fixture
def storage(request: pytest.FixtureRequest, root: str) -> FileStorage:
    if root.startswith("memory:"):
        return FileStorage(FileSystemSet(own=OwnLocations((root,)), kinds=APP.file_systems()))
    return storage_of(request.getfixturevalue("object_store"), root)


def local(folder: Path, name: str, content: bytes, target: str, modified_ns: int = OLD) -> CopyTask:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(modified_ns, modified_ns))
    return CopyTask(str(path), target, len(content), modified_ns)


def listed(storage: FileStorage, location: str) -> tuple[File, ...]:
    return storage.list([location])[location].files


def test_a_copy_is_listed_with_its_source_s_time(storage: FileStorage, root: str, tmp_path: Path) -> None:
    tasks = [local(tmp_path, name, b"x", join(root, f"t/{name}"), OLD + number) for number, name in enumerate("abc")]
    tasks.append(local(tmp_path, "d/a", b"y", join(root, "t/d/a"), OLD + 9))
    storage.copy(tasks)
    assert listed(storage, join(root, "t")) == (
        *(File(name, 1, OLD + number) for number, name in enumerate("abc")),
        File("d/a", 1, OLD + 9),
    )
    assert list(storage.children(join(root, "t"))) == ["a", "b", "c", "d"]
    # When it was written, not its source's time, says whether a copy may be swept.
    assert all(found.modified_ns > OLD + 10**17 for found in storage.entries(join(root, "t")) if not found.directory)


def test_a_file_that_somebody_else_wrote_is_listed_with_the_time_that_it_is_given(
    storage: FileStorage, root: str
) -> None:
    table = join(root, "byhand")
    for name in ("a", "b"):
        storage.write(join(table, name), name.encode())
    before = {file.path: file for file in listed(storage, table)}
    storage.date({join(table, "a"): OLD, join(table, "missing"): OLD, join(root, "nowhere/x"): OLD})
    assert listed(storage, table) == (File("a", 1, OLD), before["b"])
    storage.date({join(table, "a"): 0})
    assert listed(storage, table) == (File("a", 1, 0), before["b"])
    assert not storage.exists(join(root, "nowhere"))


def test_an_append_that_is_published_keeps_its_times_and_leaves_nothing(
    storage: FileStorage, root: str, tmp_path: Path
) -> None:
    table = join(root, "t")
    storage.copy([local(tmp_path, "a", b"1", join(table, "a"))])
    for number, name in enumerate("bcdefghijklmn"):
        staged = staged_name(table, name, number)
        storage.copy([local(tmp_path, name, name.encode(), staged, OLD + number)])
        assert [file.path for file in listed(storage, table)] == list("abcdefghijklmn"[: number + 1])
        storage.publish([(staged, join(table, name))])
        assert listed(storage, table)[-1] == File(name, 1, OLD + number)
    assert [file.modified_ns for file in listed(storage, table)] == [OLD, *(OLD + number for number in range(13))]
    system, path = storage.systems.at(table)
    assert isinstance(system, ObjectSystem)
    names = [found.name.removeprefix(f"{path}/") for found in system.store.below(path)]
    assert len([name for name in names if name.startswith(NOTE)]) <= MANY
    assert not [name for name in names if "/" in name]


def test_a_reader_that_holds_older_notes_sees_what_they_were_merged_into(
    storage: FileStorage, root: str, tmp_path: Path
) -> None:
    reader: FileStorage = pickle.loads(pickle.dumps(storage))
    for number in range(3 * MANY):
        storage.copy([local(tmp_path, f"{number:03}", b"x", join(root, f"t/{number:03}"), OLD + number)])
        if number % 5 == 0:
            assert [file.modified_ns for file in listed(reader, join(root, "t"))] == [
                OLD + i for i in range(number + 1)
            ]


def test_a_copy_repeated_after_a_crash_notes_nothing_new(storage: FileStorage, root: str, tmp_path: Path) -> None:
    task = local(tmp_path, "a", b"x", join(root, "t/a"))
    storage.copy([task])
    system, path = storage.systems.at(join(root, "t"))
    assert isinstance(system, ObjectSystem)
    before = list(system.store.below(path))
    assert storage.copy([task])[0].bytes_moved == 0
    assert list(system.store.below(path)) == before


def test_a_directory_that_was_made_stays_after_its_last_file_went(storage: FileStorage, root: str) -> None:
    storage.make_directories([join(root, "t/_calque_owner.7"), join(root, "e")])
    storage.write(join(root, "e/f"), b"x")
    storage.remove([join(root, "e/f")])
    assert [storage.list([join(root, name)])[join(root, name)].missing for name in ("t", "e", "no")] == [
        False,
        False,
        True,
    ]
    assert list(storage.children(join(root, "t"))) == ["_calque_owner.7"]
    assert list(storage.children(join(root, "e"))) == []


def test_entries_tell_directories_from_files(storage: FileStorage, root: str) -> None:
    storage.make_directories([join(root, "t/_calque_owner.7"), join(root, "t/_calque_stage/3")])
    storage.write(join(root, "t/_calque_stage/3/f"), b"x")
    storage.write(join(root, "t/p=1/f"), b"x")
    storage.write(join(root, "t/f"), b"xyz")
    assert [(found.name, found.size, found.directory) for found in storage.entries(join(root, "t"))] == [
        ("_calque_owner.7", 0, True),
        ("_calque_stage", 0, True),
        ("f", 3, False),
        ("p=1", 0, True),
    ]


def test_readers_of_the_store_see_data_files_only(
    object_store: ObjectStore, s3_root: str, tmp_path: Path, files: Any
) -> None:
    storage = storage_of(object_store, s3_root)
    table = join(s3_root, "t")
    storage.make_directories([join(table, "_calque_owner.1"), join(table, "p=2")])
    storage.copy([local(tmp_path, "f.csv", b"a,b\n1,2\n", join(table, "p=1/f.csv"))])
    reader = pafs.PyFileSystem(pafs.FSSpecHandler(files))
    found = ds.dataset(table.removeprefix("s3://"), filesystem=reader, format="csv", partitioning="hive")
    assert found.to_table().to_pylist() == [{"a": 1, "b": 2, "p": 1}]


def test_many_directories_listed_at_once_are_what_each_is_alone(
    object_store: ObjectStore, s3_root: str, files: Any
) -> None:
    class Counting(S3Store):
        pages = 0

        def _page(self, directory: str, token: str) -> tuple[Sequence[StoredObject], str]:
            Counting.pages += 1
            return super()._page(directory, token)

    odd = ["p", "p-", "p.", "p.1", "p0", "p!", "p=é", "p=日本", "p=a%2Fb", "p q", "zz"]
    names = [*odd, *(f"x={number:04}" for number in range(40))]
    directories = [f"{s3_root.removeprefix('s3://')}/{name}" for name in names]
    for number, directory in enumerate(directories):
        if number % 3:
            files.pipe_file(f"{directory}/f{number}", b"x" * (number % 5))
            files.pipe_file(f"{directory}/d/g", b"")
    files.pipe_file(f"{directories[0]}.txt", b"beside")
    store = Counting(files)
    together = store.below_each(directories)
    pages = Counting.pages
    assert {name: sorted(objects, key=str) for name, objects in together.items()} == {
        directory: sorted(store.below(directory), key=str) for directory in directories
    }
    assert any(together.values())
    assert pages <= 2
    storage = storage_of(object_store, s3_root)
    asked = [join(s3_root, name) for name in names]
    assert storage.list(asked) == {location: storage.list([location])[location] for location in asked}
    assert storage.list([*asked, join(s3_root, "p/d")])[join(s3_root, "p")].missing


def test_a_big_file_goes_and_comes_in_parts(
    object_store: ObjectStore, s3_root: str, tmp_path: Path, files: Any
) -> None:
    storage = storage_of(object_store, s3_root)
    content = bytes(range(251)) * ((2 * PART + 12_345) // 251)
    task = local(tmp_path, "f", content, join(s3_root, "t/f"))
    [copied] = storage.copy([task])
    assert (copied.problem, copied.checksum) == ("", xxh3_128_hexdigest(content))
    assert files.cat_file(join(s3_root, "t/f")) == content
    assert files.info(join(s3_root, "t/f"))["ETag"].strip('"').endswith("-3")
    assert storage.checksums([task.target]) == {task.target: xxh3_128_hexdigest(content)}
    [again] = storage.copy([task])
    assert (again.problem, again.bytes_moved) == ("", 0)


class Meddled(S3Store):
    """Somebody changes the source when the first part is read."""

    change: Any = None

    def put(self, name: str, chunks: Any, size: int, *, new: bool) -> bool:
        def meddled() -> Iterator[memoryview]:
            for number, chunk in enumerate(chunks):
                yield chunk
                if number == 0 and self.change is not None:
                    self.change()

        return super().put(name, meddled(), size, new=new)


class OneSystem(FileSystemSet):
    """One store for what is not local."""

    def __init__(self, system: ObjectSystem) -> None:
        super().__init__()
        self._system = system

    def at(self, location: str) -> tuple[System, str]:
        where = place(location)
        return super().at(location) if where.scheme == "file" else (self._system, f"{where.authority}{where.path}")


@pytest.mark.parametrize("size", [100, 2 * PART + 1])
def test_a_source_that_changes_while_it_is_uploaded_leaves_nothing(
    object_store: ObjectStore, s3_root: str, tmp_path: Path, files: Any, size: int
) -> None:
    store = Meddled(files)
    task = local(tmp_path, "f", b"x" * size, join(s3_root, "t/f"))
    store.change = lambda: Path(task.source).write_bytes(b"y" * size)
    storage = FileStorage(OneSystem(ObjectSystem(store)))
    assert storage.copy([task])[0].problem
    assert not storage.exists(task.target)
    uploads = files.call_s3("list_multipart_uploads", Bucket=object_store.bucket).get("Uploads", [])
    assert not [upload for upload in uploads if s3_root.rpartition("/")[2] in upload["Key"]]


def test_a_source_that_is_overwritten_with_one_of_its_size_at_once_looks_different(
    object_store: ObjectStore, s3_root: str, files: Any
) -> None:
    storage = storage_of(object_store)
    seen = set()
    for content in (b"1", b"2", b"3"):
        files.pipe_file(join(s3_root, "t/f"), content)
        [file] = listed(storage, join(s3_root, "t"))
        seen.add(file.modified_ns)
    assert len(seen) == 3
    task = CopyTask(join(s3_root, "t/f"), join(s3_root, "u/f"), 1, min(seen))
    if task.modified_ns != file.modified_ns:
        assert "not the file that was listed" in storage.copy([task])[0].problem


class Forgetful(S3Store):
    """A store that ignores conditions, and whose ETags are no checksums."""

    def _put(self, name: str, content: bytes, **_: str) -> bool:
        super()._put(name, content)
        return False


def test_a_store_that_ignores_conditions_is_known_and_overwrites_nothing(
    s3_root: str, tmp_path: Path, files: Any
) -> None:
    directory = s3_root.removeprefix("s3://")
    assert S3Store(files).keeps_conditions(directory)
    store = Forgetful(files)
    assert not store.keeps_conditions(directory)
    storage = FileStorage(OneSystem(ObjectSystem(store)))
    task = local(tmp_path, "f", b"ours", join(s3_root, "t/f"))
    files.pipe_file(task.target, b"them")
    assert "other content" in storage.copy([task])[0].problem
    assert files.cat_file(task.target) == b"them"
    other = local(tmp_path, "g", b"read back", join(s3_root, "t/g"))
    assert storage.copy([other])[0].checksum == xxh3_128_hexdigest(b"read back")


def test_a_copy_inside_one_store_is_made_by_the_store(s3_root: str, files: Any) -> None:
    class Unread(S3Store):
        def chunks(self, name: str, size: int) -> Iterator[memoryview]:
            raise AssertionError(f"{size} bytes of {name} are read")

    files.pipe_file(join(s3_root, "s/f"), b"content")
    storage = FileStorage(OneSystem(ObjectSystem(Unread(files))))
    [file] = listed(storage, join(s3_root, "s"))
    task = CopyTask(join(s3_root, "s/f"), join(s3_root, "t/f"), file.size, file.modified_ns)
    [copied] = storage.copy([task])
    assert (copied.problem, copied.checksum, copied.bytes_moved) == ("", "", 7)
    assert files.cat_file(task.target) == b"content"


class Reading(S3Store):
    """Notes which objects are read, and tells no checksums where it is `silent`."""

    def __init__(self, files: Any, *, silent: bool) -> None:
        super().__init__(files)
        self.read: list[str] = []
        self.silent = silent

    def chunks(self, name: str, size: int) -> Iterator[memoryview]:
        self.read.append(name.rpartition("/")[2])
        return super().chunks(name, size)

    def put(self, name: str, chunks: Any, size: int, *, new: bool) -> bool:
        return super().put(name, chunks, size, new=new) and not self.silent

    def copy(self, source: StoredObject, target: str) -> bool:
        return super().copy(source, target) and not self.silent


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("proof", ["auto", "read", "storage"])
def test_objects_are_read_where_nothing_else_proves_them(
    s3_root: str, tmp_path: Path, files: Any, proof: CopyProof, silent: bool
) -> None:
    store = Reading(files, silent=silent)
    storage = FileStorage(OneSystem(ObjectSystem(store)), terms=CopyTerms(proof=proof))
    [sent] = storage.copy([local(tmp_path, "f", b"content", join(s3_root, "t/sent"))])
    [file] = listed(storage, join(s3_root, "t"))
    inside = CopyTask(sent.task.target, join(s3_root, "u/inside"), file.size, file.modified_ns)
    [copied] = storage.copy([inside])
    assert (sent.problem, copied.problem, files.cat_file(inside.target)) == ("", "", b"content")
    is_read = proof == "read" or (silent and proof == "auto")
    assert store.read == ["sent", "sent", "inside"] * is_read
    checksum = xxh3_128_hexdigest(b"content")
    assert (sent.checksum, copied.checksum) == (checksum, checksum * is_read)


def test_what_is_not_a_target_s_own_is_opened_by_the_source_s_options(
    object_store: ObjectStore, s3_root: str, tmp_path: Path, files: Any
) -> None:
    files.pipe_file(join(s3_root, "s/f"), b"x")
    wrong = {**object_store.options, "secret": "not-the-secret"}
    systems = FileSystemSet(
        object_store.options, own=OwnLocations((join(s3_root, "dr"),), wrong), kinds=APP.file_systems()
    )
    storage: FileStorage = pickle.loads(pickle.dumps(FileStorage(systems)))
    assert len(listed(storage, join(s3_root, "s"))) == 1
    with pytest.raises(Refused, match="dr") as caught:
        storage.copy([local(tmp_path, "f", b"x", join(s3_root, "dr/f"))])
    assert "not-the-secret" not in f"{caught.value}{storage!r}{systems!r}{caught.value.__cause__!r}"


def test_a_key_in_a_file_is_read_anew_when_the_file_changes(
    object_store: ObjectStore, s3_root: str, tmp_path: Path, files: Any
) -> None:
    files.pipe_file(join(s3_root, "s/f"), b"x")
    file = tmp_path / "key"
    options = {**object_store.options, "secret": FileSecret(str(file))}
    storage: FileStorage = pickle.loads(pickle.dumps(FileStorage(FileSystemSet(options, kinds=APP.file_systems()))))
    journal = DeltaJournal(join(s3_root, "journal"), delta_options(s3_root, options))
    rows = [rows_of_events([Event(number, 1, "X", "hive", "s", "t", "json-0.2", "{}")]) for number in (1, 2)]
    file.write_text(object_store.secret)
    assert len(listed(storage, join(s3_root, "s"))) == 1
    journal.append(rows[0])
    file.write_text("not-the-secret")
    with pytest.raises(Refused, match="Not permitted"):
        listed(storage, join(s3_root, "s"))
    with pytest.raises(CalqueError) as caught:
        journal.append(rows[1])
    assert "not-the-secret" not in repr((caught.value, caught.value.__cause__))
    file.write_text(f"{object_store.secret}\n")
    assert len(listed(storage, join(s3_root, "s"))) == 1
    journal.append(rows[1])
    assert journal.last() == 2


def test_a_bucket_that_is_not_there_is_refused_and_never_an_empty_directory(object_store: ObjectStore) -> None:
    storage = storage_of(object_store)
    for attempt in (
        lambda: storage.list(["s3://no-such-bucket/t"]),
        lambda: storage.exists("s3://no-such-bucket/t"),
        lambda: storage.write("s3://no-such-bucket/t/f", b"x"),
    ):
        with pytest.raises(Refused, match="no such bucket"):
            attempt()


def test_a_store_that_does_not_answer_is_unavailable() -> None:
    nobody = {"endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "the-secret"}
    with pytest.raises(Unavailable) as caught:
        FileStorage(FileSystemSet(nobody, kinds=APP.file_systems())).list(["s3://bucket/t"])
    assert "the-secret" not in str(caught.value)
