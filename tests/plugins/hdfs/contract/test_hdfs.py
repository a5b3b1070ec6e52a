"""What is particular to HDFS: permissions, quotas, safe mode, nodes that are silent or gone, name services, times."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import hdfs_native
import pytest

from calque.adapters.files import FileStorage, FileSystemSet
from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.system import System
from calque.app import APP
from calque.core.formats.deltalog import LOG
from calque.core.formats.layout import place
from calque.errors import Refused, Unavailable
from calque.plugins.epoch_reader.api.arrow_dataset import filesystem_of, path_of
from calque.plugins.hdfs.adapters.file_system import HdfsSystem, open_hdfs
from calque.ports import CopyTask
from support.services.hdfs import Hdfs
from support.services.suspension import suspended
from support.storages import any_storage

SILENT = 1.5
"""Seconds, instead of ten."""
MOST_SECONDS = 20.0
"""Of a busy machine."""


class Impatient(FileSystemSet):
    """Waits for answers for `SILENT` seconds."""

    def __init__(self, hdfs: Hdfs) -> None:
        super().__init__()
        self.system: HdfsSystem = open_hdfs(place(hdfs.uri).authority, {}, SILENT)

    def at(self, location: str) -> tuple[System, str]:
        where = place(location)
        return (self.system, where.path) if where.scheme == "hdfs" else super().at(location)


@pytest.fixture
def root(hdfs: Hdfs) -> str:
    """A directory of this test's own."""
    made = f"/{uuid4().hex}"
    hdfs_native.Client(hdfs.uri).mkdirs(made)
    return f"{hdfs.uri}{made}"


@pytest.fixture
def storage(hdfs: Hdfs) -> FileStorage:
    return FileStorage(Impatient(hdfs), terms=CopyTerms(attempts=1))


def of(hdfs: Hdfs) -> hdfs_native.Client:
    return hdfs_native.Client(hdfs.uri)


def task(tmp_path: Path, target: str, size: int = 1000) -> CopyTask:
    source = tmp_path / uuid4().hex
    source.write_bytes(os.urandom(size))
    found = source.stat()
    return CopyTask(str(source), target, size, found.st_mtime_ns)


def test_a_user_without_rights_is_refused_by_name(
    hdfs: Hdfs, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place(root).path
    of(hdfs).mkdirs(f"{path}/secret", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    mine = any_storage()
    for ask in (
        lambda: mine.copy([task(tmp_path, f"{root}/f")]),
        lambda: mine.write(f"{root}/f", b"x"),
        lambda: mine.make_directories([f"{root}/d"]),
        lambda: mine.list([f"{root}/secret"]),
        lambda: mine.remove([root]),
    ):
        with pytest.raises(Refused, match=r"Not permitted to .*stranger"):
            ask()
    assert mine.exists(root)


def test_a_quota_that_is_used_up_is_no_room_and_leaves_nothing(
    hdfs: Hdfs, root: str, storage: FileStorage, tmp_path: Path
) -> None:
    path = place(root).path
    of(hdfs).mkdirs(f"{path}/few")
    of(hdfs).mkdirs(f"{path}/small")
    hdfs.admin("-setQuota", "1", f"{path}/few")
    hdfs.admin("-setSpaceQuota", "1m", f"{path}/small")
    for directory in ("few", "small"):
        with pytest.raises(Unavailable, match=f"No room to write {root}/{directory}/f"):
            storage.copy([task(tmp_path, f"{root}/{directory}/f")])
        assert list(storage.children(f"{root}/{directory}")) == []


def test_a_name_node_in_safe_mode_is_waited_for(hdfs: Hdfs, root: str, storage: FileStorage) -> None:
    storage.write(f"{root}/f", b"x")
    hdfs.admin("-safemode", "enter")
    try:
        with pytest.raises(Unavailable, match="safe mode"):
            storage.write(f"{root}/g", b"x")
        assert storage.read(f"{root}/f") == b"x"
    finally:
        hdfs.admin("-safemode", "leave")
    storage.write(f"{root}/g", b"x")


def test_a_silent_name_node_is_unavailable_within_seconds_and_no_thread_waits_on(
    hdfs: Hdfs, root: str, storage: FileStorage, tmp_path: Path
) -> None:
    storage.write(f"{root}/f", b"x")
    staged = task(tmp_path, f"{root}/t/f")
    asked: dict[str, Callable[[], object]] = {
        "copy": lambda: storage.copy([staged]),
        "list": lambda: storage.list([root]),
        "list many": lambda: storage.list([f"{root}/{number}" for number in range(100)]),
        "read": lambda: storage.read(f"{root}/f"),
        "write": lambda: storage.write(f"{root}/g", b"x"),
        "exists": lambda: storage.exists(f"{root}/f"),
        "remove": lambda: storage.remove([root]),
        "publish": lambda: storage.publish([(f"{root}/f", f"{root}/h")]),
        "checksums": lambda: storage.checksums([f"{root}/f", f"{root}/g"]),
    }
    limits = dict.fromkeys(asked, 0.0)

    def ask(what: str) -> None:
        began = time.monotonic()
        with pytest.raises(Unavailable, match="No answer for 2 s"):
            asked[what]()
        limits[what] = time.monotonic() - began

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    with suspended(hdfs.name_node.pid):
        ask("read")
        before = threads()
        with ThreadPoolExecutor(len(asked)) as pool:
            list(pool.map(ask, asked))
        for _ in range(3):
            ask("read")
        # More than a hundred calls were given up, by a few clients that each have two threads for a minute.
        assert threads() < before + 40
    assert max(limits.values()) < MOST_SECONDS
    assert storage.read(f"{root}/f") == b"x"


def test_silent_data_nodes_are_unavailable_within_seconds(
    hdfs: Hdfs, root: str, storage: FileStorage, tmp_path: Path
) -> None:
    storage.write(f"{root}/f", b"x")
    began = time.monotonic()
    with suspended(*(node.pid for node in hdfs.data_nodes)):
        with pytest.raises(Unavailable, match=f"Can't read {root}/f now"):
            storage.read(f"{root}/f")
        with pytest.raises(Unavailable, match=f"Can't write {root}/g now"):
            storage.write(f"{root}/g", b"x")
        with pytest.raises(Unavailable):
            storage.copy([task(tmp_path, f"{root}/h", 9 << 20)])
    assert time.monotonic() - began < 3 * MOST_SECONDS
    assert storage.read(f"{root}/f") == b"x"
    storage.write(f"{root}/g", b"y")
    assert [file.path for file in storage.list([root])[root].files] == ["f", "g"]


def test_what_one_data_node_does_not_say_the_other_one_does(hdfs: Hdfs, root: str, storage: FileStorage) -> None:
    for number in range(4):
        storage.write(f"{root}/{number}", b"%d" % number)
    with suspended(hdfs.data_nodes[0].pid):
        assert [storage.read(f"{root}/{number}") for number in range(4)] == [b"0", b"1", b"2", b"3"]


@pytest.mark.prove
def test_a_name_node_that_was_killed_answers_again_after_its_restart(
    hdfs: Hdfs, root: str, storage: FileStorage
) -> None:
    storage.write(f"{root}/f", b"x")
    hdfs.kill()
    try:
        began = time.monotonic()
        with pytest.raises(Unavailable, match="Can't read"):
            storage.read(f"{root}/f")
        assert time.monotonic() - began < MOST_SECONDS
    finally:
        hdfs.restart()
    assert storage.read(f"{root}/f") == b"x"


def test_a_name_service_is_reached_while_one_of_its_nodes_is_refused_or_silent(hdfs: Hdfs, root: str) -> None:
    def service(first: int) -> HdfsSystem:
        settings = {
            "dfs.ha.namenodes.hq": "a,b",
            "dfs.namenode.rpc-address.hq.a": f"127.0.0.1:{first}",
            "dfs.namenode.rpc-address.hq.b": place(hdfs.uri).authority,
        }
        return open_hdfs("hq", settings, SILENT)

    path = place(root).path
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = closed.getsockname()[1]
    assert service(refusing).facts(path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        system, deadline = service(silent.getsockname()[1]), time.monotonic() + 60
        with pytest.raises(TimeoutError):
            system.facts(path)
        while True:
            try:
                assert system.facts(path)
                break
            except TimeoutError:
                assert time.monotonic() < deadline


def test_times_are_kept_to_the_nanosecond_and_whole_milliseconds_are_hdfs_s_own(
    hdfs: Hdfs, root: str, storage: FileStorage
) -> None:
    times = {f"{root}/fine": 1_700_000_000_123_456_789, f"{root}/plain": 1_700_000_000_123_000_000}
    for path in times:
        storage.write(path, b"x")
    storage.date(times)
    assert {file.path: file.modified_ns for file in storage.files(list(times)).values()} == times
    assert storage.read(f"{root}/fine") == b"x"
    status = [of(hdfs).get_file_info(place(path).path) for path in times]
    assert [each.modification_time for each in status] == [1_700_000_000_123] * 2
    assert {file.path: file.modified_ns for file in storage.files(list(times)).values()} == times


def test_a_copy_of_a_file_on_a_disk_is_told_by_its_time(root: str, storage: FileStorage, tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    [copied] = storage.copy([task(source, f"{root}/f")])
    (there,) = storage.list([root])[root].files
    assert (there.size, there.modified_ns) == (copied.task.size, copied.task.modified_ns)
    assert storage.copy([replace(copied.task, ours=True)])[0].bytes_moved == 0


def test_a_directory_of_more_entries_than_one_answer_has_is_listed_whole(root: str, hdfs: Hdfs) -> None:
    path = place(root).path
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(of(hdfs).mkdirs, (f"{path}/{number}" for number in range(2_100))))
    assert sorted(map(int, any_storage().children(root))) == list(range(2_100))


def test_many_directories_are_listed_as_each_of_them_is(root: str, storage: FileStorage) -> None:
    names = [f"p={number:02}" for number in range(40)]
    for name in (*names[:3], "p=04/_x", f"p=05/{LOG}"):
        storage.write(f"{root}/{name}/f", name.encode())
    storage.write(f"{root}/p=05/{LOG}/{0:020}.json", b"{}")
    locations = [f"{root}/{name}" for name in names]
    together = storage.list(locations)
    assert together == {location: storage.list([location])[location] for location in locations}
    assert [listing.version for listing in together.values() if listing.version is not None] == [0]
    assert [len(listing.files) for listing in together.values()] == [1, 1, 1, 0, 0, 1, *[0] * 34]
    storage.write(f"{root}/p=06", b"no directory")
    with pytest.raises(Refused, match=r"p=06"):
        storage.list(locations)


def test_a_rename_never_replaces_a_file(root: str, storage: FileStorage) -> None:
    for name in "ab":
        storage.write(f"{root}/{name}", name.encode())
    system, path = storage.systems.at(root)
    with pytest.raises(FileExistsError):
        system.rename(f"{path}/a", f"{path}/b")
    assert [storage.read(f"{root}/{name}") for name in "ab"] == [b"a", b"b"]


def test_a_name_that_hdfs_does_not_take_is_that_file_s_problem(root: str, storage: FileStorage, tmp_path: Path) -> None:
    storage.write(f"{root}/file", b"")
    tasks = [task(tmp_path, f"{root}/{name}") for name in ("a:b", "n" * 300, "file/f", "good")]
    assert ["can't be written" in copied.problem for copied in storage.copy(tasks)] == [True, True, True, False]


def test_a_host_without_a_port_is_asked_at_the_usual_one() -> None:
    with pytest.raises(ConnectionError, match="refused"):
        open_hdfs("127.0.0.1", {}, SILENT).facts("/")


@pytest.mark.parametrize("authority", ["", "no host:1"])
def test_what_leads_to_no_name_node_is_refused(authority: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Refused, match="can't be opened"):
        open_hdfs(authority, {})


def test_hadoop_s_configuration_says_where_the_name_node_is(hdfs: Hdfs, root: str, tmp_path: Path) -> None:
    setting = f"<property><name>fs.defaultFS</name><value>{hdfs.uri}</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{setting}</configuration>")
    assert FileStorage(FileSystemSet({"config_dir": str(tmp_path)}, kinds=APP.file_systems())).exists(
        f"hdfs://{place(root).path}"
    )


def test_arrow_reads_files_on_hdfs(root: str, storage: FileStorage) -> None:
    storage.write(f"{root}/p=a b/f", b"content")
    with filesystem_of(root, FileSystemSet(kinds=APP.file_systems())).open_input_file(
        path_of(f"{root}/p=a b/f")
    ) as file:
        assert file.read() == b"content"


def test_without_the_client_it_is_said_what_to_install() -> None:
    script = """
import sys
sys.modules["hdfs_native"] = None
from calque.adapters.files.systems import FileSystemSet
from calque.app import APP
FileSystemSet(kinds=APP.file_systems()).at("hdfs://nn:1/f")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "calque.errors.Refused: Locations on HDFS can't be opened." in done.stderr
    assert "pip install 'calque-replicator[hdfs]'" in done.stderr


def test_many_threads_ask_at_once(root: str, storage: FileStorage) -> None:
    def write(number: int) -> None:
        storage.write(f"{root}/{number}", b"%d" % number)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(64)))
    assert {storage.read(f"{root}/{number}") for number in range(64)} == {b"%d" % number for number in range(64)}
    assert threading.active_count() < 60
