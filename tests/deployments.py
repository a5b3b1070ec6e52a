"""Real deployments: metastores, `calque run` as a process, a random writer at the source, readers at the targets."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from calque.adapters.files.storage import FileStorage
from calque.adapters.metastore.catalog import HiveReader
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import Fault
from calque.commands import wait
from calque.commands.options import Settings
from calque.config import load
from calque.core.admit import Admission
from calque.core.image import Imaging
from calque.core.layout import join, place
from calque.errors import Unavailable
from calque.model.hive import Database
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from calque.status import snapshot
from calque.wiring import Wiring
from worlds import History, Looker, Noting, State, Writer


@contextmanager
def pair(root: Path) -> Iterator[Mapping[str, Metastore]]:
    """A source and a target of 3.1.3, started at once."""
    names, settings = ("source", "target"), MetastoreSettings(version="3.1.3")
    with ThreadPoolExecutor(len(names)) as pool:
        found = dict(zip(names, pool.map(lambda name: Metastore.start(settings, root / name), names), strict=True))
    try:
        yield found
    finally:
        for server in found.values():
            server.stop()


class RealSource:
    """A real metastore with the calls of the one in memory."""

    def __init__(self, uri: str, databases: Sequence[str]) -> None:
        self.client = HiveClient(uri)
        self.names = databases

    def __getattr__(self, call: str) -> Any:
        return getattr(self.client, call)

    def databases(self) -> Sequence[str]:
        return [name for name in self.client.catalog.databases() if name in self.names]

    def tables(self, database: str) -> Sequence[str]:
        return self.client.catalog.tables(database)

    def the_database(self, name: str) -> Database:
        found = self.client.catalog.database(name)
        assert found is not None
        return found

    def the_table(self, name: TableName) -> Any:
        return whole_table(self.client.catalog, name)


def whole_table(catalog: HiveReader, name: TableName) -> Any:
    table = catalog.table(name)
    names = catalog.partition_names(name) if table is not None and table.partition_keys else ()
    found = catalog.partitions(name, names)
    return SimpleNamespace(table=table, partitions={part.values: part for part in found.values()})


class RealFiles:
    """Local files as a writer handles them: complete before they have their name."""

    def __init__(self) -> None:
        self.storage = FileStorage()

    def write(self, location: str, content: bytes) -> None:
        path = Path(place(location).path)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_bytes(content)
        draft.rename(path)

    def remove(self, locations: Sequence[str]) -> None:
        self.storage.remove(locations)

    def list(self, locations: Sequence[str]) -> Any:
        return self.storage.list(locations)

    def children(self, location: str) -> Sequence[str]:
        return self.storage.children(location)

    def content(self, location: str) -> State:
        files = self.storage.list([location])[location].files
        return tuple((file.path, Path(join(place(location).path, file.path)).read_bytes()) for file in files)


@dataclass
class Target:
    """A target's side, as its readers have it. `seen` counts observations."""

    name: str
    uri: str
    policy: Policy
    log: HiveLog = field(init=False)
    catalog: HiveReader = field(init=False)
    looker: Looker = field(init=False)
    admission: Admission = field(init=False)
    history: History = field(default_factory=History)
    problems: list[str] = field(default_factory=list)
    seen: int = 0

    def __post_init__(self) -> None:
        client = Client(self.uri)
        self.log, self.catalog = HiveLog(client), HiveReader(client)
        self.admission = Admission(self.policy)
        self.looker = Looker(Imaging(self.admission), RealFiles().content)

    def states(self, names: Sequence[TableName]) -> dict[TableName, State]:
        found = {}
        for name in names:
            there = whole_table(self.catalog, self.admission.name_at_target(name))
            if there.table is None:
                found[name] = None
            else:
                found[name] = self.looker.target(name, there.table, list(there.partitions.values()))
        return found

    def observe(self) -> None:
        """One look at each table, bracketed by the target's unchanged event id. Files that are appended to live
        directories change no event id, so a look counts when a second one sees the same."""
        for name in list(self.history.states):
            before = self.log.current()
            try:
                state, again = self.states([name]), self.states([name])
            except FileNotFoundError:
                continue
            if self.log.current() == before and state == again:
                self.seen += 1
                self.problems += [problem for _, problem in self.history.check(state)]


class Deployment:
    """One source database pair, targets, a state folder and a process."""

    def __init__(self, root: Path, number: int, source: Metastore, targets: Mapping[str, Metastore], seed: int) -> None:
        self.root, self.number = root, number
        self.databases = (f"d1x{number}", f"d2x{number}")
        self.rng = random.Random(seed)
        self.source = RealSource(source.uri, self.databases)
        self.files = RealFiles()
        outside = f"file:{root}/outside"
        self.writer = Writer(
            Noting(self.source, self.note),
            self.files,
            self.rng,
            self.databases,
            outside,  # type: ignore[arg-type]
        )
        self.targets = [
            Target(name, server.uri, self.policy(name, index)) for index, (name, server) in enumerate(targets.items())
        ]
        self.config = root / "calque.toml"
        self.config.write_text(self.text(source))
        self.process: subprocess.Popen[bytes] | None = None
        self.watching = threading.Event()
        self.log = root / "run.log"

    def policy(self, name: str, index: int) -> Policy:
        first, second = self.databases
        rename = {second: f"{second}_dr"} if index % 2 else {}
        include = (f"{first}.*", f"{second}.*")
        return Policy(name, "hq", include=include, rename=rename, warehouse=f"file://{self.root}/wh_{name}")

    def text(self, source: Metastore) -> str:
        lines = ["[source]", 'name = "hq"', f'metastore = "{source.uri}"', 'poll = "50ms"']
        for target in self.targets:
            lines += [
                f"[targets.{target.name}]",
                f'metastore = "{target.uri}"',
                f'warehouse = "{target.policy.warehouse}"',
                f"include = {json.dumps(list(target.policy.include))}",
                f"rename = {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in target.policy.rename.items())} }}",
            ]
        return "\n".join(lines)

    # The source

    def write(self, steps: int, pause: float = 0.0) -> None:
        for _ in range(steps):
            try:
                self.writer.step()
            except Fault as fault:
                self.writer.done.append(f"refused: {fault}")
            if pause:
                time.sleep(self.rng.random() * 2 * pause)

    def note(self) -> None:
        """After every call of the writer: what the source shows."""
        event_id = self.source.current()
        states = {}
        for database in self.source.databases():
            for table in self.source.tables(database):
                name = TableName(database, table)
                states[name] = self.source.the_table(name)
        for target in self.targets:
            seen = {
                name: target.looker.source(name, found.table, list(found.partitions.values()))
                for name, found in states.items()
            }
            target.history.note(event_id, seen)

    # The process

    def calque(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "calque.cli", *arguments, "-c", str(self.config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=self.root, check=False)

    def start(self, **environment: str) -> None:
        command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.root, env={**os.environ, **environment}
            )

    def end(self, number: signal.Signals, timeout: float = 60) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout)

    def close(self) -> None:
        self.watching.set()
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)

    def settle(self, timeout: float = 120) -> None:
        """Until every target shows the source's newest event: what `calque wait` does, without a process for it."""
        config, event_id = load(self.config), self.source.current()
        for target in self.targets:
            try:
                wait.run(Settings(), config, target.name, event_id, timeout)
            except Unavailable as error:
                raise AssertionError(f"{error}\n{self.tail()}") from error

    def wait_for(self, reached: Callable[[Mapping[str, Any]], object], seconds: float = 60) -> None:
        """Until that is true of what `calque status` says of the only target; a process for each look would take a
        second of a processor."""
        wiring, deadline = Wiring(load(self.config)), time.monotonic() + seconds
        while not reached(status := snapshot(wiring)["targets"][self.targets[0].name]):
            assert time.monotonic() < deadline, f"{status}\n{self.tail()}"
            time.sleep(0.1)

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-40:]) if self.log.exists() else ""

    def watch(self) -> list[threading.Thread]:
        """A reader at each target, until `close`."""

        def look(target: Target) -> None:
            while not self.watching.is_set():
                target.observe()

        threads = [threading.Thread(target=look, args=(target,), daemon=True) for target in self.targets]
        for thread in threads:
            thread.start()
        return threads

    def check_equal(self) -> None:
        """Every target shows exactly what the source has."""
        self.note()
        for target in self.targets:
            names = list(target.history.states)
            shown = target.states(names)
            wanted = {name: target.history.states[name][-1][1] for name in names}
            different = [name for name in names if shown[name] != wanted[name]]
            assert not different, (
                "\n".join(f"{target.name} {name}: source {wanted[name]}\n target {shown[name]}" for name in different)
                + "\n".join(self.writer.done)
                + self.tail()
            )
