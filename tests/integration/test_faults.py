"""The world fails under a running process: it says so within seconds, goes on by itself, and shows nothing wrong."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from calque.adapters.control import ControlStore
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.system import Own, Systems
from calque.core.layout import join
from calque.errors import Unavailable
from calque.model.hive import is_partitioned
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings, ObjectStore
from calque.telling import CAPTURING, record_of
from deployments import Deployment
from thriftproxy import Asked, asked
from worlds import State

VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
SEEN_SECONDS = 45.0
"""Of a machine that other tests have too; by itself it is a few."""
AWAY_SECONDS = 2.0
LINES = ("source", "other", "target", "warehouse", "state")


class Faulty(Deployment):
    """One target, whose files, journal and ledger are in a store. Behind a line each: the source, by two addresses as
    if two servers shared its database, the target, and the store as warehouse and as the state's place."""

    store: ObjectStore
    lines: Mapping[str, Asked]

    def policy(self, name: str, index: int) -> Policy:
        policy = super().policy(name, index)
        return Policy(name, "hq", include=policy.include, warehouse=f"s3a://{self.store.bucket}/dr")

    def text(self, source: Metastore) -> str:
        address = self.lines["state"].uri, self.lines["warehouse"].uri, self.lines["target"].uri
        return self.configured(source, f"{self.lines['source'].uri},{self.lines['other'].uri}", *address)

    def configured(self, source: Metastore, here: str, state: str, warehouse: str, there: str) -> str:
        text = super().text(source).replace(source.uri, here).replace(self.targets[0].uri, there)
        states = ["[state]", f'tables = "s3://{self.store.bucket}/state"', self.storage(state)]
        return "\n".join([text, self.storage(warehouse), *states])

    def storage(self, address: str) -> str:
        options = {**self.store.options, "endpoint_url": address.replace("thrift:", "http:"), "secret_env": "S3_SECRET"}
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
            assert time.monotonic() < deadline, f"{self.told(CAPTURING)} {self.told(record_of('dr'))}\n{self.tail()}"
            time.sleep(0.1)

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
        self.wait_until(lambda: not self.told(CAPTURING) and not self.told(record_of("dr")))
        assert self.process is not None
        assert self.process.poll() is None, self.tail()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Faulty, Mapping[str, Metastore]]]:
    """A deployment that runs, and is watched."""
    root = tmp_path_factory.mktemp("faults")
    (root / "nobody").mkdir()
    (root / "run").mkdir()
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
        servers = {"source": stack.enter_context(here.result(180)), "target": stack.enter_context(there.result(180))}
        address = store.endpoint.replace("http:", "thrift:")
        behind = (servers["source"].uri, servers["source"].uri, servers["target"].uri, address, address)
        lines = {name: stack.enter_context(asked(uri)) for name, uri in zip(LINES, behind, strict=True)}
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("S3_SECRET", store.secret)
        Faulty.store, Faulty.lines = store, lines
        made = Faulty(root / "run", 1, servers["source"], {"dr": servers["target"]}, seed=1)
        stack.callback(made.close)
        storage = FileStorage(Systems(own=Own((made.targets[0].policy.warehouse,), store.options)))
        made.targets[0].content = lambda location: contents(storage, location)
        made.furnish()
        made.start()
        made.look_directly(servers["source"])
        made.settle(300)
        stack.callback(watched(made))
        yield made, servers
        assert made.end(signal.SIGTERM) == 0


def contents(storage: FileStorage, location: str) -> State:
    found = storage.list([location])[location].files
    return tuple((file.path, storage.read(join(location, file.path))) for file in found)


def watched(made: Faulty) -> Callable[[], None]:
    """A reader at the target, who is not put off by a metastore that is away; how to end it."""

    def look() -> None:
        [target] = made.targets
        reader = target.reader()
        while not made.watching.is_set():
            with suppress(Unavailable):
                if (seen := reader.look()) is not None:
                    made.see(target, seen)
            made.watching.wait(0.1)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def end() -> None:
        made.watching.set()
        thread.join(60)

    return end


@pytest.fixture
def faulty(system: tuple[Faulty, Mapping[str, Metastore]]) -> Iterator[Faulty]:
    yield system[0]
    for line in system[0].lines.values():
        line.heal()


def test_a_source_goes_on_by_its_other_address(faulty: Faulty) -> None:
    for one, other in (("source", "other"), ("other", "source")):
        faulty.lines[one].refuse()
        before = len(faulty.lines[other].calls)
        faulty.recovers()
        assert len(faulty.lines[other].calls) > before
        faulty.lines[one].heal()


@pytest.mark.parametrize(
    ("lines", "records"),
    [
        (("source", "other", "target"), (CAPTURING, record_of("dr"))),
        (("warehouse",), (record_of("dr"),)),
        (("state",), (CAPTURING,)),
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


def test_answers_that_end_in_their_middle_change_nothing(faulty: Faulty) -> None:
    for line in faulty.lines.values():
        line.cutting = 5
    faulty.recovers()
    assert all(not faulty.lines[line].cutting for line in ("source", "target", "warehouse", "state"))


def test_slow_metastores_are_waited_for(faulty: Faulty) -> None:
    """A call takes a hundred times as long as it does."""
    for line in ("source", "other", "target"):
        faulty.lines[line].delay = 0.15
    faulty.recovers()


def test_metastores_that_are_restarted_are_found_again(
    faulty: Faulty, system: tuple[Faulty, Mapping[str, Metastore]]
) -> None:
    faulty.change()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Metastore.restart, system[1].values()))
    faulty.recovers()
