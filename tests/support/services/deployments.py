"""Real deployments: metastores, `calque run` as a process, a random writer at the source, readers at the targets.

    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
    deployment.write(25)                    # steps of the writer
    deployment.start()                      # `calque run`
    deployment.watch()                      # a reader at each target, that looks again and again
    deployment.write(50, pause=0.02)
    deployment.settle()                     # until every target shows the source's newest event
    deployment.check_equal()                # and has what the source has
    assert deployment.problems() == []      # the readers saw states of the source, in their order
    assert deployment.end(signal.SIGTERM) == 0
    deployment.close()                      # in a fixture, or in `finally`

Its databases are called after its number, so that tests share servers. `calque` runs any other command, `wait_for`
waits for what `calque status` says, `tail` is the end of the run's log. A test that wants other files, another policy
or more lines of the configuration overrides `files`, `policy` or `text`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from io import StringIO
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import Fault
from calque.adapters.metastore.reader import HiveReader
from calque.app import APP
from calque.cli import main
from calque.commands import wait
from calque.commands.options import CommandSettings
from calque.control.status import snapshot
from calque.core.formats.layout import join, place
from calque.core.images.image import ImageBuilder
from calque.core.policy.admit import Admission
from calque.errors import Unavailable
from calque.model.hive import Database
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.judges.documents import require_document
from support.judges.proof import Look, Proof, Reader, places_of, read_tables, touched
from support.storages import any_storage
from support.worlds.worlds import ABSENT, Looker, Noting, State, Writer, nothing

NUMBERS = count(1)
"""Of deployments, whose databases are called after them."""


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
        self.storage = any_storage()

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
    """A target's side, as its readers have it: of some databases of the source."""

    name: str
    uri: str
    policy: Policy
    databases: Sequence[str]
    proof: Proof = field(default_factory=Proof)
    content: Callable[[str], State] = field(default_factory=lambda: RealFiles().content)
    log: HiveLog = field(init=False)
    catalog: HiveReader = field(init=False)
    looker: Looker = field(init=False)
    admission: Admission = field(init=False)

    def __post_init__(self) -> None:
        client = Client(self.uri)
        self.log, self.catalog = HiveLog(client), HiveReader(client)
        self.admission = Admission(self.policy)
        self.looker = Looker(ImageBuilder(self.admission), nothing)

    def reader(self) -> Reader:
        return Reader(self.catalog, self.log, self.admission, self.databases, self.content)

    def at_rest(self) -> Look:
        """What there is, when nothing changes any more."""
        reader, deadline = self.reader(), time.monotonic() + 30
        while (look := reader.look()) is None:
            assert time.monotonic() < deadline
        return look


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
        self.noted: EventId | None = None
        """The newest event whose tables `note` has looked at."""
        self.targets = [
            Target(name, server.uri, self.policy(name, index), self.databases)
            for index, (name, server) in enumerate(targets.items())
        ]
        self.config = root / "calque.toml"
        self.config.write_text(self.text(source))
        self.process: subprocess.Popen[bytes] | None = None
        self.program: Sequence[str] = ("-m", "calque.cli")
        """What Python runs as calque."""
        self.inside: Sequence[str] = ()
        """The words before its command."""
        self.watching = threading.Event()
        self.readers: list[threading.Thread] = []
        self.rest = 0.2
        """Seconds between two looks of a reader: one that never rests takes a processor from all others."""
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
        self.noted = self.source.current() if self.noted is None else self.noted
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
        events = self.source.client.events(event_id if self.noted is None else self.noted)
        order, self.noted = touched(events), event_id
        found = {
            TableName(database, name): table
            for database in self.source.databases()
            for name, table in read_tables(self.source.client.catalog, database).items()
        }
        for target in self.targets:
            contents = {place: target.content(place) for place in places_of(found.values())}
            look = Look(event_id, found, contents, frozenset())
            target.proof.note(event_id, look.source_states(target.looker), order, len(events))

    # The process

    def calque(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """The command's end. `run` has a process of its own; others would spend a second of a processor on imports."""
        if arguments[0] == "run":
            return self.alone(*arguments, timeout=timeout)
        command, said, told = [*arguments, "-c", str(self.config)], StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = main(command)
        require_document(arguments, said.getvalue())
        return subprocess.CompletedProcess(command, code, said.getvalue(), told.getvalue())

    def alone(self, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """The end of the command in a process of its own."""
        command = [sys.executable, "-m", "calque.cli", *arguments, "-c", str(self.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=self.root, check=False)
        require_document(arguments, done.stdout)
        return done

    def start(self, **environment: str) -> None:
        command = [*self.inside, sys.executable, *self.program, "run", "-c", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.root, env={**os.environ, **environment}
            )

    def end(self, number: signal.Signals, timeout: float = 60) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"It did not end in {timeout:g} s\n{self.threads()}") from error

    def close(self) -> None:
        self.watching.set()
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)

    def settle(self, timeout: float = 120, names: Collection[str] = ()) -> None:
        """Until every target, or those of `names`, shows the source's newest event: what `calque wait` does, without a
        process for it."""
        config, event_id = APP.load(self.config), self.source.current()
        for name in names or [target.name for target in self.targets]:
            try:
                wait.run(CommandSettings(app=APP), config, name, event_id, timeout)
            except Unavailable as error:
                raise AssertionError(f"{error}\n{self.tail()}\n{self.threads()}") from error

    def wait_for(self, reached: Callable[[Mapping[str, Any]], object], seconds: float = 60) -> None:
        """Until that is true of what `calque status` says of the only target; a process for each look would take a
        second of a processor."""
        wiring, deadline = APP.wiring(APP.load(self.config)), time.monotonic() + seconds
        while not reached(status := snapshot(wiring)["targets"][self.targets[0].name]):
            assert time.monotonic() < deadline, f"{status}\n{self.tail()}"
            time.sleep(0.1)

    def threads(self) -> str:
        """Where the process's threads are."""
        before = self.log.stat().st_size
        if self.process is None or self.process.poll() is not None:
            return ""
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while self.log.stat().st_size == before and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.log.read_bytes()[before:].decode()

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-40:]) if self.log.exists() else ""

    def watch(self) -> list[threading.Thread]:
        """A reader at each target, until `close`."""

        def look(target: Target) -> None:
            reader = target.reader()
            while not self.watching.wait(self.rest):
                if (seen := reader.look()) is not None:
                    self.see(target, seen)

        self.readers = [threading.Thread(target=look, args=(target,), daemon=True) for target in self.targets]
        for thread in self.readers:
            thread.start()
        return self.readers

    def wait_for_readers(self, seconds: float = 60) -> None:
        """Until every reader has seen what its target shows now; nothing may change meanwhile."""
        before, deadline = [target.proof.looks for target in self.targets], time.monotonic() + seconds
        # A look that has begun before may end once after.
        while any(target.proof.looks < was + 2 for target, was in zip(self.targets, before, strict=True)):
            assert all(reader.is_alive() for reader in self.readers), "a reader has ended"
            assert time.monotonic() < deadline, f"no look of every reader in {seconds:g} s\n{self.tail()}"
            time.sleep(0.05)

    def see(self, target: Target, look: Look) -> None:
        target.proof.see(look.event_id, time.time(), look.states(target.looker), look.vague)

    def problems(self) -> list[str]:
        """Of all readers."""
        found = [(target.name, self.problems_of(target, target.proof)) for target in self.targets]
        return [f"{name} {problem}" for name, problems in found for problem in problems]

    def problems_of(self, target: Target, proof: Proof) -> list[str]:
        bridges = self.bridges(target)
        return proof.problems(
            lambda name, at: any(name in tables and since <= at <= until for tables, since, until in bridges)
        )

    def bridges(self, target: Target) -> list[tuple[frozenset[TableName], float, float]]:
        """Tables and their databases of which the target's ledger tells a bridge, and between which times it was."""
        found, before = [], 0.0
        for epoch in APP.wiring(APP.load(self.config)).ledger(target.name).epochs():
            at = datetime.fromisoformat(epoch.published_at).timestamp()
            tables = {TableName(*bridge.table.split(".", 1)) for bridge in epoch.bridges}
            if tables:
                found.append((frozenset(tables | {TableName(name.database) for name in tables}), before, at + 1))
            before = at
        return found

    def check_equal(self) -> None:
        """Every target shows exactly what the source has."""
        self.note()
        for target in self.targets:
            shown, names = target.at_rest().states(target.looker), list(target.proof.history.states)
            wanted = {name: target.proof.history.states[name][-1][1] for name in names}
            different = [name for name in names if target.proof.shape(shown.get(name, ABSENT)) != wanted[name]]
            assert not different, (
                "\n".join(
                    f"{target.name} {name}: source {wanted[name]}\n target {shown.get(name)}" for name in different
                )
                + "\n".join(self.writer.done)
                + self.tail()
            )
