"""Restores recorded state folders (`golden/state`) into a new folder, with their metastores and their Kafka topics.

In the archives every path begins with `RECORDED_ROOT`, and every address of a service is a placeholder.
`restored_states` makes a root folder whose path has the same length as `RECORDED_ROOT`. So a replacement of bytes
relocates every file, whatever its format: no length that a format stores changes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from calque.cli import main
from calque.resources import cache_folder
from calque.sandbox import Broker, Metastore, MetastoreSettings
from calque.sandbox.postgres import Postgres
from calque.sandbox.unpacked import template
from support.places import GOLDEN

ARCHIVES = GOLDEN / "state"
ROOT_LENGTH = 160
RECORDED_ROOT = f"/recorded/{'x' * (ROOT_LENGTH - len('/recorded/'))}"
SERVERS = {
    "source": MetastoreSettings(version="3.1.3"),
    "three": MetastoreSettings(version="3.1.3"),
    "four": MetastoreSettings(version="4.2.0"),
}
INSTALLATIONS = ("operating", "kafka", "bootstrapping")
"""Each folder holds a configuration, its state folder, the source's files and the targets' warehouses."""
BROKER_PLACEHOLDER = "broker.recorded:1"
DUMP, TOPICS, OUTPUTS = "metastore.json", "topics.json", "outputs.json"
Row = Mapping[str, Any]


@dataclass
class Installation:
    """Runs calque with the configuration `calque.toml` in `folder`."""

    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def config(self) -> Path:
        return self.folder / "calque.toml"

    @property
    def log(self) -> Path:
        return self.folder / "run.log"

    @property
    def recorded_outputs(self) -> Mapping[str, Any]:
        """The JSON outputs of commands at the time of the recording, by command."""
        outputs: Mapping[str, Any] = json.loads((self.folder / OUTPUTS).read_text())
        return outputs

    def command(self, *words: str, code: int = 0) -> Any:
        """Runs a command that must end with the exit code; returns its JSON output."""
        output, errors = StringIO(), StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            exit_code = main([*words, "--json", "-c", str(self.config)])
        assert exit_code == code, f"{words}: {exit_code}\n{output.getvalue()}{errors.getvalue()}{self.log_tail()}"
        return json.loads(output.getvalue() or "null")

    def run(self, *words: str, code: int = 0, **environment: str) -> None:
        """Runs `calque run` in a process of its own, which must end with the exit code."""
        self.start(*words, **environment)
        assert self.process is not None
        exit_code = self.process.wait(240)
        assert exit_code == code, f"run {words}: {exit_code}\n{self.log_tail()}"

    def wait_for_status(self, is_reached: Callable[[Mapping[str, Any]], object]) -> Mapping[str, Any]:
        """Returns the first output of `calque status` for which `is_reached` is true."""
        deadline = time.monotonic() + 120
        while True:
            status: Mapping[str, Any] = self.command("status")
            if is_reached(status):
                return status
            assert time.monotonic() < deadline, f"{status}\n{self.log_tail()}"
            time.sleep(0.1)

    def start(self, *words: str, **environment: str) -> None:
        command = [sys.executable, "-m", "calque.cli", "run", *words, "-c", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **environment}
            )

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log_tail()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-40:]) if self.log.exists() else ""


@dataclass(frozen=True)
class RestoredStates:
    """The running metastores and the installations, by their names in the recording."""

    servers: Mapping[str, Metastore]
    installations: Mapping[str, Installation]


@contextmanager
def restored_states(folder: Path) -> Iterator[RestoredStates]:
    """Restores all archives below `folder`. Metastores and broker run until the context ends."""
    root = make_root(folder)
    unpack("servers", root, {})
    with ExitStack() as started, ThreadPoolExecutor(len(SERVERS) + 1) as pool:
        starting = {name: pool.submit(restored_server, name, root / "servers" / name) for name in SERVERS}
        broker = Broker.start(root / "broker")
        started.callback(broker.kill)
        servers = {name: started.enter_context(future.result()) for name, future in starting.items()}
        addresses = {f"thrift://{name}": server.uri for name, server in servers.items()} | {
            BROKER_PLACEHOLDER: broker.address
        }
        for name in INSTALLATIONS:
            unpack(name, root, addresses)
        installations = {name: Installation(root / name) for name in INSTALLATIONS}
        restore_topics(installations["kafka"], broker.address)
        for installation in installations.values():
            started.callback(installation.close)
        yield RestoredStates(servers, installations)


def make_root(folder: Path) -> Path:
    """Makes a folder below `folder` whose path has `ROOT_LENGTH` characters."""
    rest = ROOT_LENGTH - len(str(folder)) - 1
    assert rest > 0, f"The path {folder} is longer than {ROOT_LENGTH - 2} characters"
    root = folder / ("x" * rest)
    root.mkdir()
    return root


def unpack(name: str, root: Path, addresses: Mapping[str, str]) -> None:
    """Unpacks an archive with the real root and addresses in place of the recorded ones.

    Files and folders get their recorded modification times to the nanosecond: calque recognises files by them.
    """
    replacements = {RECORDED_ROOT.encode(): str(root).encode()}
    replacements |= {placeholder.encode(): address.encode() for placeholder, address in addresses.items()}
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        members = archive.getmembers()
        for member in members:
            path, source = root / member.name, archive.extractfile(member)
            if source is None:
                path.mkdir(parents=True, exist_ok=True)
                continue
            content = source.read()
            for recorded, actual in replacements.items():
                content = content.replace(recorded, actual)
            path.write_bytes(content)
    for member in reversed(members):
        modified_ns = int(member.pax_headers["mtime"].replace(".", ""))
        os.utime(root / member.name, ns=(modified_ns, modified_ns))


def restored_server(name: str, folder: Path) -> Metastore:
    """Starts a metastore over its recorded database.

    The database is complete before the server starts: a server that runs keeps ids for new rows in its memory.
    """
    settings, cache = SERVERS[name], cache_folder()
    postgres = Postgres.start(template(settings.version, cache), folder)
    try:
        tables: Mapping[str, Sequence[Row]] = json.loads((folder / DUMP).read_text())
        postgres.sql("SET session_replication_role = replica")
        for (table,) in postgres.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            postgres.sql(f'TRUNCATE "{table}" CASCADE')
        for table, rows in tables.items():
            insert = f'INSERT INTO "{table}" SELECT * FROM json_populate_recordset(NULL::"{table}", %s)'
            postgres.sql(insert, [json.dumps(rows)])
        return Metastore(settings, folder, cache, postgres)
    except BaseException:
        postgres.stop()
        raise


def restore_topics(installation: Installation, broker: str) -> None:
    """Creates the journal's topics and writes the recorded records to them. In a new topic each gets its old offset."""
    installation.command("journal", "create")
    producer = Producer({"bootstrap.servers": broker})
    for record in json.loads((installation.folder / TOPICS).read_text()):
        headers = [(name, value.encode("latin-1")) for name, value in record.pop("headers")]
        key, value = (record.pop(name) for name in ("key", "value"))
        producer.produce(**record, key=encoded(key), value=encoded(value), headers=headers)
    assert producer.flush(60) == 0


def encoded(text: str | None) -> bytes | None:
    """The bytes that the recorder wrote as Latin-1."""
    return None if text is None else text.encode("latin-1")
