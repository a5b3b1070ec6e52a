"""The world fails under a running process: it says so within seconds, goes on by itself, and shows nothing wrong."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.control import ControlStore
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.app import APP
from calque.commands import wait
from calque.commands.options import CommandSettings
from calque.core.formats.layout import COPYING, join, place
from calque.errors import Unavailable
from calque.model.hive import is_partitioned
from calque.model.policy import Policy
from calque.model.state_places import SourcePlaces, TargetPlaces
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import Deployment, RealFiles, Target
from support.services.mounts import can_mount, filled, seen_by, with_disk
from support.services.objects import ObjectStore
from support.services.thriftproxy import Asked, asked
from support.worlds.worlds import State

VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
SEEN_SECONDS = 45.0
"""Of a machine that other tests have too; by itself it is a few."""
AWAY_SECONDS = 2.0
DR, NEAR = TargetPlaces("dr").status_record, TargetPlaces("near").status_record
RECORDS = (SourcePlaces().status_record, DR, NEAR)
LINES = ("source", "other", "target", "warehouse", "state")
DISK = "16m"


class Faulty(Deployment):
    """Two targets at one metastore: the files of `dr` are in a store, as are the journal and the ledgers, and those of
    `near` on a small disk that only the process sees. Behind a line each: the source's two servers over one database,
    the target, and the store as warehouse and as the state's place."""

    store: ObjectStore
    lines: Mapping[str, Asked]
    secret = "S3_SECRET"
    """The variable that holds that of the store of `dr`."""

    def policy(self, name: str, index: int) -> Policy:
        policy = super().policy(name, index)
        if name == "dr":
            return Policy(name, "hq", include=policy.include, warehouse=f"s3a://{self.store.bucket}/dr")
        rename = {database: f"{database}_near" for database in self.databases}
        return Policy(name, "hq", include=policy.include, rename=rename, warehouse=self.disk.as_uri())

    @property
    def disk(self) -> Path:
        return self.root / "disk"

    @property
    def seen_disk(self) -> Path:
        """The disk as the process sees it."""
        assert self.process is not None
        return Path(seen_by(self.process.pid, str(self.disk)))

    def text(self, source: Metastore) -> str:
        address = self.lines["state"].uri, self.lines["warehouse"].uri, self.lines["target"].uri
        return self.configured(source, f"{self.lines['source'].uri},{self.lines['other'].uri}", *address)

    def configured(self, source: Metastore, here: str, state: str, warehouse: str, there: str) -> str:
        text = super().text(source).replace(source.uri, here).replace(self.targets[0].uri, there)
        states = ["[state]", f'tables = "s3://{self.store.bucket}/state"', self.storage(state)]
        return "\n".join([text, self.storage(warehouse, self.secret), *states])

    def storage(self, address: str, secret: str = "S3_SECRET") -> str:
        options = {**self.store.options, "endpoint_url": address.replace("thrift:", "http:"), "secret_env": secret}
        del options["secret"]
        return f"storage = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in options.items())} }}"

    def look_directly(self, source: Metastore) -> None:
        """What the test reads goes by no line: delta-rs lets no other thread run meanwhile."""
        direct = self.configured(source, source.uri, self.store.endpoint, self.store.endpoint, self.targets[0].uri)
        self.config = self.root / "direct.toml"
        self.config.write_text(direct)

    def told(self, name: str) -> str:
        """What the status has as the last error of a part."""
        record: Mapping[str, Any] = ControlStore(self.root / "state" / "control").read(name) or {}
        return str(record.get("last_error") or "")

    def wait_until(self, done: Callable[[], bool], seconds: float = SEEN_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, f"{[self.told(name) for name in RECORDS]}\n{self.tail()}"
            time.sleep(0.1)

    def goes_on(self, name: str) -> None:
        """The target shows what changes now."""
        self.change()
        wait.run(CommandSettings(app=APP), APP.load(self.config), name, self.source.current(), 60)

    def reload(self, source: Metastore) -> None:
        """Have the process read its configuration, as it is to be now."""
        assert self.process is not None
        (self.root / "calque.toml").write_text(self.text(source))
        self.process.send_signal(signal.SIGHUP)

    def furnish(self) -> None:
        """Tables of both kinds in both databases."""
        while len(self.source.databases()) < len(self.databases):
            self.writer.run("create_database")
        while not (
            self.writer.any_table(is_partitioned) and self.writer.any_table(lambda one: not is_partitioned(one))
        ):
            self.writer.run("create_table")
        self.change()

    def change(self) -> None:
        """Files, partitions and definitions."""
        for operation in ("insert", "add_partitions", "overwrite", "insert_partition", "alter_table"):
            self.writer.run(operation)

    def recovers(self) -> None:
        """All comes through, the source's states alone were seen, and nobody complains any more."""
        self.change()
        self.settle(180)
        self.check_equal()
        assert not (problems := self.problems()), "\n".join([problems[0], *self.writer.done])
        self.wait_until(lambda: not any(map(self.told, RECORDS)))
        assert self.process is not None
        assert self.process.poll() is None, self.tail()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Faulty, Mapping[str, Metastore]]]:
    """A deployment that runs, and is watched."""
    root = tmp_path_factory.mktemp("faults")
    for name in ("nobody", "run", "run/disk"):
        (root / name).mkdir()
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        starting = pool.submit(ObjectStore.start, root / "objects")
        here = pool.submit(Metastore.start, MetastoreSettings(version="3.1.3"), root / "source")
        mapped = {
            "fs.s3a.impl": VIEW,
            "fs.viewfs.overload.scheme.target.s3a.impl": VIEW,
            "fs.viewfs.mounttable.calque.linkFallback": (root / "nobody").as_uri(),
        }
        there = pool.submit(Metastore.start, MetastoreSettings(version="4.2.0", extra=mapped), root / "target")
        store = stack.enter_context(starting.result(180))
        source = stack.enter_context(here.result(180))
        other = stack.enter_context(source.beside(root / "other"))
        servers = {"source": source, "other": other, "target": stack.enter_context(there.result(180))}
        address = store.endpoint.replace("http:", "thrift:")
        behind = (source.uri, other.uri, servers["target"].uri, address, address)
        lines = {name: stack.enter_context(asked(uri)) for name, uri in zip(LINES, behind, strict=True)}
        variables = stack.enter_context(pytest.MonkeyPatch.context())
        variables.setenv("S3_SECRET", store.secret)
        variables.setenv("S3_WRONG", "not the secret")
        Faulty.store, Faulty.lines = store, lines
        made = Faulty(root / "run", 1, source, dict.fromkeys(("near", "dr"), servers["target"]), seed=1)
        stack.callback(made.close)
        made.rest = 0.5
        if can_mount():
            made.inside = with_disk(str(made.disk), DISK)
        near, dr = made.targets
        storage = FileStorage(
            FileSystemSet(own=OwnLocations((dr.policy.warehouse,), store.options), kinds=APP.file_systems())
        )
        dr.content = lambda location: contents(storage, location)
        near.content = lambda location: on_disk(made, location)
        made.furnish()
        made.start()
        made.look_directly(source)
        made.settle(300)
        stack.callback(watched(made))
        yield made, servers
        assert made.end(signal.SIGTERM) == 0


def on_disk(made: Faulty, location: str) -> State:
    path = place(location).path
    if path.startswith(str(made.disk)):
        assert made.process is not None
        path = seen_by(made.process.pid, path)
    return RealFiles().content(path)


def contents(storage: FileStorage, location: str) -> State:
    found = storage.list([location])[location].files
    return tuple((file.path, storage.read(join(location, file.path))) for file in found)


def watched(made: Faulty) -> Callable[[], None]:
    """A reader at each target, who is not put off by a metastore that is away; how to end them."""

    def look(target: Target) -> None:
        reader = target.reader()
        while not made.watching.is_set():
            with suppress(Unavailable):
                if (seen := reader.look()) is not None:
                    made.see(target, seen)
            made.watching.wait(made.rest)

    threads = [threading.Thread(target=look, args=(target,), daemon=True) for target in made.targets]
    for thread in threads:
        thread.start()

    def end() -> None:
        made.watching.set()
        for thread in threads:
            thread.join(60)

    return end


@pytest.fixture
def faulty(system: tuple[Faulty, Mapping[str, Metastore]]) -> Iterator[Faulty]:
    yield system[0]
    for line in system[0].lines.values():
        line.heal()


@pytest.mark.prove
def test_a_source_goes_on_by_its_other_server(faulty: Faulty) -> None:
    for one, other in (("source", "other"), ("other", "source")):
        faulty.lines[one].refuse()
        before = len(faulty.lines[other].calls)
        faulty.recovers()
        assert len(faulty.lines[other].calls) > before
        faulty.lines[one].heal()


@pytest.mark.parametrize(
    ("lines", "records"),
    [
        (("source", "other", "target"), RECORDS),
        pytest.param(("warehouse",), (DR,), marks=pytest.mark.prove),
        pytest.param(("state",), (SourcePlaces().status_record,), marks=pytest.mark.prove),
    ],
    ids=["metastores", "warehouse", "journal and ledger"],
)
def test_what_refuses_connections_is_told_of_and_waited_for(
    faulty: Faulty, lines: tuple[str, ...], records: tuple[str, ...]
) -> None:
    for line in lines:
        faulty.lines[line].refuse()
    faulty.change()
    faulty.wait_until(lambda: all(map(faulty.told, records)))
    time.sleep(AWAY_SECONDS)
    for line in lines:
        faulty.lines[line].heal()
    faulty.recovers()


@pytest.mark.prove
def test_answers_that_end_in_their_middle_change_nothing(faulty: Faulty) -> None:
    for line in faulty.lines.values():
        line.cutting = 5
    faulty.recovers()
    assert all(not faulty.lines[line].cutting for line in ("source", "target", "warehouse", "state"))


@pytest.mark.prove
def test_slow_metastores_are_waited_for(faulty: Faulty) -> None:
    """A call takes a hundred times as long as it does."""
    for line in ("source", "other", "target"):
        faulty.lines[line].delay = 0.15
    faulty.recovers()


@pytest.mark.prove
def test_metastores_that_are_restarted_are_found_again(
    faulty: Faulty, system: tuple[Faulty, Mapping[str, Metastore]]
) -> None:
    faulty.change()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(Metastore.restart, system[1].values()))
    faulty.recovers()


@pytest.mark.prove
@pytest.mark.parametrize(("line", "record"), [("warehouse", DR), ("state", SourcePlaces().status_record)])
def test_a_store_that_says_nothing_any_more_is_told_of_and_waited_for(faulty: Faulty, line: str, record: str) -> None:
    faulty.lines[line].answering.clear()
    faulty.change()
    faulty.wait_until(lambda: bool(faulty.told(record)))
    if record == DR:
        faulty.goes_on("near")
        assert not faulty.told(NEAR)
    faulty.lines[line].heal()
    faulty.recovers()


@pytest.mark.prove
def test_wrong_keys_are_told_of_and_cost_nothing_but_their_target_s_time(
    faulty: Faulty, system: tuple[Faulty, Mapping[str, Metastore]]
) -> None:
    faulty.secret = "S3_WRONG"
    faulty.reload(system[1]["source"])
    faulty.change()
    faulty.wait_until(lambda: "Not permitted to list s3a://" in faulty.told(DR))
    assert "Give the user that runs calque the right to it" in faulty.told(DR)
    faulty.goes_on("near")
    assert not faulty.told(NEAR)
    faulty.secret = "S3_SECRET"
    faulty.reload(system[1]["source"])
    faulty.recovers()


def test_a_full_disk_is_told_of_and_nothing_is_left_of_what_did_not_fit(faulty: Faulty) -> None:
    if not faulty.inside:
        pytest.skip("no file system can be mounted here, so none can be full")
    with filled(faulty.seen_disk / "filler"):
        faulty.change()
        faulty.wait_until(lambda: "No room to" in faulty.told(NEAR))
        assert "Free or add space" in faulty.told(NEAR)
        faulty.goes_on("dr")
        assert not faulty.told(DR)
    faulty.recovers()
    assert not [name for _, _, names in os.walk(faulty.seen_disk) for name in names if name.startswith(COPYING)]
