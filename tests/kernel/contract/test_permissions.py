"""Owners, groups, modes and ACLs of `ports.Storage`: read, given, and copied along, by every storage that has them."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import hdfs_native
import pytest

from calque.adapters.files import FileStorage, FileSystemSet, SparkStorage
from calque.adapters.files.spark import SparkThresholds
from calque.adapters.files.systems import OwnLocations
from calque.adapters.spark import session as spark_session
from calque.app import APP
from calque.core.formats.layout import join
from calque.model.files import RowLayout
from calque.model.permissions import Permissions
from calque.ports import CombineTask, CopyTask, Storage
from calque.sandbox import spark_jars
from support.memory.storage import MemoryStorage
from support.services.hdfs import Hdfs

IS_ROOT = os.geteuid() == 0
OWN = (pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name)
OTHERS = ("daemon", "bin") if IS_ROOT else OWN
"""An owner and a group that files can be given."""
SECRET = Permissions(*OTHERS, 0o750, ("group::r-x", "user:nobody:r-x"))
PLAIN = Permissions(*OTHERS, 0o640)
INHERITED = (
    "default:group::r-x",
    "default:mask::rwx",
    "default:other::---",
    "default:user::rwx",
    "default:user:nobody:rwx",
)


@dataclass(frozen=True)
class World:
    """`give` sets the permissions of a file or directory as somebody else would."""

    storage: Storage
    root: str

    def path(self, name: str) -> str:
        return join(self.root, name)

    def written(self, name: str, content: bytes = b"content") -> str:
        self.storage.write(self.path(name), content)
        return self.path(name)

    def task(self, source: str, target: str) -> CopyTask:
        file = self.storage.files([source])[source]
        return CopyTask(source, target, file.size, file.modified_ns, permissions=True)

    def of(self, location: str) -> Permissions:
        return self.storage.permissions([location])[location]


@pytest.fixture(params=["memory", "local", "spark", "hdfs"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    match request.param:
        case "memory":
            return World(MemoryStorage(), "file:///w")
        case "local":
            return World(FileStorage(), f"file:{tmp_path}")
        case "spark":
            session = spark_session.session("tests", spark_jars(), tmp_path / "spark")
            forced = SparkThresholds(few_files=0, few_bytes=0, few_locations=0)
            return World(SparkStorage(FileStorage(), lambda: session, forced), f"file:{tmp_path}")
        case _:
            hdfs: Hdfs = request.getfixturevalue("hdfs")
            return World(
                FileStorage(FileSystemSet(hdfs.options, kinds=APP.file_systems())), f"{hdfs.uri}/{uuid4().hex}"
            )


def test_what_is_given_is_read_again(world: World) -> None:
    file, directory = world.written("t/f"), world.path("t")
    inherited = replace(SECRET, mode=0o1770, acl=(*INHERITED, *SECRET.acl))
    assert world.storage.set_permissions({file: SECRET, directory: inherited}) == {}
    assert world.storage.permissions([file, directory, world.path("missing")]) == {file: SECRET, directory: inherited}


def test_an_acl_goes_with_the_permissions_that_have_none(world: World) -> None:
    directory = world.path("t")
    world.storage.make_directories([directory])
    defaults_alone = replace(PLAIN, mode=0o755, acl=INHERITED)
    for wanted in (replace(SECRET, acl=(*INHERITED, *SECRET.acl)), defaults_alone, PLAIN):
        assert world.storage.set_permissions({directory: wanted}) == {}
        assert world.of(directory) == wanted


def test_a_mode_changes_beside_an_acl_that_stays(world: World) -> None:
    file = world.written("f")
    for wanted in (SECRET, replace(SECRET, mode=0o700), SECRET):
        world.storage.set_permissions({file: wanted})
        assert world.of(file) == wanted


def test_what_is_not_there_is_passed_over(world: World) -> None:
    missing = world.path("missing")
    assert world.storage.permissions([missing, world.path("f/below")]) == {}
    assert world.storage.set_permissions({missing: PLAIN}) == {}
    assert not world.storage.exists(missing)
    assert world.storage.permissions([]) == world.storage.set_permissions({}) == {}


def test_permissions_leave_times_and_contents_as_they_are(world: World) -> None:
    file, directory = world.written("t/f"), world.path("t")
    before = (world.storage.list([directory]), world.storage.modified([directory]))
    world.storage.set_permissions({file: SECRET, directory: replace(SECRET, mode=0o755)})
    assert (world.storage.list([directory]), world.storage.modified([directory])) == before


@pytest.mark.parametrize("size", [10, 300 << 10])
def test_a_copy_has_the_permissions_of_its_source_where_asked(world: World, size: int) -> None:
    secret, plain = world.written("s/secret", b"1" * size), world.written("s/plain", b"2" * size)
    world.storage.set_permissions({secret: SECRET, plain: PLAIN})
    targets = [world.path(f"t/{name}") for name in ("secret", "plain", "unasked")]
    tasks = [world.task(secret, targets[0]), world.task(plain, targets[1])]
    tasks.append(replace(world.task(plain, targets[2]), permissions=False))
    copied = world.storage.copy(tasks)
    assert [(each.problem, each.unpermitted) for each in copied] == [("", "")] * 3
    assert [world.of(target) for target in targets[:2]] == [SECRET, PLAIN]
    assert world.of(targets[2]) != PLAIN


def test_a_file_of_several_has_the_permissions_of_the_first(world: World) -> None:
    first, second = world.written("s/a", b"1\n"), world.written("s/b", b"2\n")
    world.storage.set_permissions({first: SECRET, second: PLAIN})
    target = world.path("t/both")
    [made] = world.storage.combine(
        [CombineTask((world.task(first, target), world.task(second, target)), target, RowLayout.TEXT)]
    )
    assert (made.unfit, made.problem, made.unpermitted, world.of(target)) == ("", "", "", SECRET)


def test_what_a_directory_gives_to_its_files_does_not_stay_in_the_way(world: World) -> None:
    """Files in a directory with a default ACL get one by themselves."""
    source, directory = world.written("s/f"), world.path("t")
    world.storage.make_directories([directory])
    world.storage.set_permissions({source: PLAIN, directory: replace(PLAIN, mode=0o755, acl=INHERITED)})
    world.storage.copy([world.task(source, join(directory, "f"))])
    assert world.of(join(directory, "f")) == PLAIN


def test_object_stores_have_no_permissions(tmp_path: Path) -> None:
    root = f"memory://{uuid4().hex}"
    objects = World(FileStorage(FileSystemSet(own=OwnLocations((root,)), kinds=APP.file_systems())), root)
    there, here = objects.written("f"), f"file:{tmp_path}/f"
    assert objects.storage.permissions([there]) == objects.storage.set_permissions({there: PLAIN}) == {}
    objects.storage.write(here, b"2")
    objects.storage.set_permissions({here: PLAIN})
    tasks = [objects.task(there, f"{here}2"), objects.task(here, objects.path("g"))]
    assert [(each.problem, each.unpermitted) for each in objects.storage.copy(tasks)] == [("", "")] * 2


def test_permissions_go_from_one_storage_to_the_other(hdfs: Hdfs, tmp_path: Path) -> None:
    storage = FileStorage(FileSystemSet(hdfs.options, kinds=APP.file_systems()))
    here, there, back = f"file:{tmp_path}/f", f"{hdfs.uri}/{uuid4().hex}", f"file:{tmp_path}/g"
    world = World(storage, f"file:{tmp_path}")
    world.written("f")
    storage.set_permissions({here: SECRET})
    for source, target in ((here, there), (there, back)):
        [copied] = storage.copy([world.task(source, target)])
        assert (copied.problem, copied.unpermitted) == ("", "")
    assert world.of(there) == world.of(back) == SECRET


# Without a right


UNPRIVILEGED = """
import os, sys
from calque.adapters.files import FileStorage
from calque.model.permissions import Permissions
storage, locations = FileStorage(), sys.argv[1:]
storage.permissions(locations)  # Modules that are loaded late may not be readable later.
os.setgroups([])
os.setgid(1)
os.setuid(1)
wanted = Permissions("bin", "bin", 0o550, ("group::r-x", "user:nosuchuser:r-x"))
problems = storage.set_permissions({location: wanted for location in locations})
print(*problems.values(), *storage.permissions(locations).values(), sep="\\n")
"""


@pytest.mark.skipif(not IS_ROOT, reason="files of another user are needed")
def test_of_what_is_not_permitted_the_rest_is_given() -> None:
    """Who stays the owner of a directory can still write there."""
    with tempfile.TemporaryDirectory() as folder:
        directory, file, foreign = (Path(folder, name) for name in ("d", "d/f", "foreign"))
        directory.mkdir()
        file.write_bytes(b"1")
        foreign.write_bytes(b"2")
        for each in (Path(folder), directory, file):
            os.chown(each, 1, 1)
        program = [sys.executable, "-c", UNPRIVILEGED, *map(str, (directory, file, foreign))]
        said = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    denied = "Operation not permitted"
    lacking = (
        f"group bin: {denied}; owner bin: {denied}; ACL group::r-x,user:nosuchuser:r-x: there is no such name here"
    )
    assert said == [
        lacking,
        lacking,
        f"{lacking}; mode 0550: {denied}",
        "daemon:daemon 0750",
        "daemon:daemon 0550",
        "root:root 0644",
    ]


def test_hdfs_says_what_its_superuser_alone_may_do(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"/{uuid4().hex}"
    client = hdfs_native.Client(hdfs.uri)
    client.mkdirs(root)
    client.set_owner(root, "alice", "staff")
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    storage, location = FileStorage(FileSystemSet(hdfs.options, kinds=APP.file_systems())), f"{hdfs.uri}{root}"
    wanted = Permissions("bob", "others", 0o550, ("group::r-x", "user:carol:r-x"))
    [problem] = storage.set_permissions({location: wanted}).values()
    assert "group others: " in problem
    assert "owner bob: " in problem
    assert storage.permissions([location]) == {location: Permissions("alice", "staff", 0o750, wanted.acl)}


# What others do


def test_links_at_a_target_lead_nobody_to_other_files(tmp_path: Path) -> None:
    outside, warehouse = tmp_path / "outside", tmp_path / "warehouse"
    outside.write_bytes(b"1")
    warehouse.mkdir()
    (warehouse / "link").symlink_to(outside)
    storage = FileStorage(FileSystemSet(own=OwnLocations((str(warehouse),)), kinds=APP.file_systems()))
    before = storage.permissions([str(outside)])
    assert storage.set_permissions({str(warehouse / "link"): SECRET}) == {}
    assert storage.permissions([str(outside)]) == before


def test_bits_that_set_a_group_stay_a_directorys_own(tmp_path: Path) -> None:
    storage, directory = FileStorage(), tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o2755)
    storage.set_permissions({str(directory): Permissions(*OWN, 0o711)})
    assert directory.stat().st_mode & 0o7777 == 0o2711
    assert storage.permissions([str(directory)]) == {str(directory): Permissions(*OWN, 0o711)}


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")
def test_owners_without_a_name_go_over_by_their_numbers(tmp_path: Path) -> None:
    storage, source = FileStorage(), tmp_path / "f"
    source.write_bytes(b"1")
    os.chown(source, 54321, 54322)
    world = World(storage, f"file:{tmp_path}")
    storage.copy([world.task(str(source), str(tmp_path / "g"))])
    assert (tmp_path / "g").stat().st_uid == 54321
    assert world.of(str(tmp_path / "g")) == Permissions("54321", "54322", 0o644)
