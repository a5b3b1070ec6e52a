"""Whoever writes definitions at a source, or asks a running process for its pages, gets nothing by calque's rights.
What they name is read where it is admitted, copies give nobody a right that the source did not give, and clients hold
up nobody."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from calque.app import APP
from calque.cli import main
from calque.control.processes import processes
from calque.control.status import snapshot
from calque.model.hive import Column, Function, Partition, Resource, SerDe, Table
from calque.model.names import TableName
from support.services.linked import Catalog
from support.services.servers import Shared
from support.services.spark_rpc import answer, children, is_java, listening

pytestmark = pytest.mark.timeout(600)
FINE = ("fine", "linked", "schema")
AVRO = SerDe(class_name="org.apache.hadoop.hive.serde2.avro.AvroSerDe", parameters={})
SCHEMA = b'{"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}'


class Running:
    """`calque run` over a source with definitions that name what is not theirs, with 256 descriptors to begin with."""

    def __init__(self, root: Path, source: str, target: str) -> None:
        self.root, self.target = root, target
        self.source = Catalog(source, root / "source")
        self.config, self.log, self.warehouse = root / "calque.toml", root / "run.log", root / "dr"
        self.config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{source}"\n'
            f'[targets.dr]\nmetastore = "{target}"\nwarehouse = "dr"\ninclude = ["lr_shop.*"]\n'
            '[serve]\naddress = "127.0.0.1:0"\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024))\n"
        program = f"{limited}from calque.cli import main; sys.exit(main(sys.argv[1:]))"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "run", "-c", str(self.config)], stdout=log, stderr=log, cwd=self.root
            )

    def wait_until(self, reached: Callable[[], object], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert self.process is None or self.process.poll() is None, self.tail()
            assert time.monotonic() < deadline, f"{self.status()}\n{self.tail()}"
            time.sleep(0.1)

    def status(self) -> Any:
        return snapshot(APP.wiring(APP.load(self.config)))["targets"]["dr"]

    def is_done(self) -> bool:
        status = self.status()
        busy = ("unknown", "reading", "staging", "waiting")
        return status["position"] == self.source.client.current() and not any(status["tables"][key] for key in busy)

    def reasons(self) -> dict[str, str]:
        return {row["table"]: row["reason"] for row in self.status()["quarantined"]}

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-40:])

    @property
    def address(self) -> str:
        return next(one.serves for one in processes(APP.wiring(APP.load(self.config)).control) if one.serves)

    def page(self, path: str, **headers: str) -> tuple[int, str]:
        try:
            with urlopen(Request(self.address + path, headers=headers), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    # What the source names

    def at(self, name: str, location: str, **more: Any) -> None:
        self.source.client.create_table(
            Table(
                name,
                "lr_shop",
                owner="ann",
                storage=self.source.storage(location),
                partition_keys=more.pop("partition_keys", ()),
                parameters={"EXTERNAL": "TRUE"},
                type="EXTERNAL_TABLE",
            )
        )

    def with_schema(self, name: str, url: str) -> None:
        storage = replace(self.source.storage(f"file:{self.root}/source/{name}"), serde=AVRO)
        table = Table(name, "lr_shop", owner="ann", storage=storage, partition_keys=(), type="EXTERNAL_TABLE")
        self.source.client.create_table(replace(table, parameters={"EXTERNAL": "TRUE", "avro.schema.url": url}))

    def function(self, name: str, jar: str) -> None:
        resources = (Resource(1, jar),)
        self.source.client.create_function(
            Function(name, "lr_shop", "com.example.F", "ann", 1, 0, 1, resources, catalog="hive")
        )


@pytest.fixture(scope="module")
def running(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    servers, root = shared("source-4", "target-3"), tmp_path_factory.mktemp("lent")
    running = Running(root, servers["source-4"].uri, servers["target-3"].uri)
    (root / "state").mkdir()
    (root / "private").mkdir()
    jar, schema, rows = (root / "private" / name for name in ("f.jar", "s.avsc", "rows"))
    for file, content in ((jar, b"PK"), (schema, SCHEMA), (rows, b"7\n")):
        file.write_bytes(content)
        file.chmod(0o600)
    source = running.source
    source.database("lr_shop")
    source.table("lr_shop.fine")
    source.table("lr_shop.linked")
    (root / "source" / "lr_shop.db" / "linked" / "two").symlink_to(rows)
    source.table("lr_shop.leak")
    (root / "source" / "lr_shop.db" / "leak" / "two").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    running.at("host", "file:///etc/default")
    running.at("led", f"file:{root}/etc/default")
    running.at("state", f"file:{root}/state")
    running.at("parted", f"file:{root}/source/parted", partition_keys=(Column("p", "string"),))
    part = Partition(("1",), "lr_shop", "parted", storage=source.storage("file:/etc/default"), parameters={})
    source.client.add_partitions(TableName("lr_shop", "parted"), [part])
    running.with_schema("schema", f"file:{schema}")
    running.with_schema("stolen", "file:///etc/passwd")
    running.function("f", f"file:{jar}")
    running.function("g", "file:///etc/passwd")
    running.start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.process.kill()
        running.process.wait(60)


def test_what_a_source_names_is_copied_only_from_where_it_is_admitted(running: Running) -> None:
    running.wait_until(running.is_done)
    reasons = running.reasons()
    assert {name.partition(".")[2] for name in reasons} == {"leak", "host", "led", "state", "parted", "stolen", "g"}
    for name, said in (
        ("leak", "It leads to /etc/passwd, a place of this host's own"),
        ("host", "It is a place of this host's own"),
        ("led", "It leads to /etc/default, a place of this host's own"),
        ("state", "It is a place of calque's own"),
        ("parted", "It is a place of this host's own"),
        ("stolen", "Nothing is read at file:///etc/passwd"),
        ("g", "Nothing is read at file:///etc/passwd"),
    ):
        assert said in reasons[f"lr_shop.{name}"], name
    files = [path for path in running.warehouse.rglob("*") if path.is_file()]
    contents = {path: path.read_bytes() for path in files}
    assert not [path for path, content in contents.items() if content == Path("/etc/passwd").read_bytes()]
    assert not [path for path in files if "/state." in str(path) or path.name == "passwd"]
    private = {content: path for path, content in contents.items() if content in (b"PK", SCHEMA, b"7\n")}
    assert {path.stat().st_mode & 0o077 for path in private.values()} == {0}
    for content, name in ((b"PK", "f.jar"), (SCHEMA, "s.avsc")):
        digest = hashlib.sha256(content).hexdigest()
        assert private[content] == running.warehouse / "_calque" / "files" / digest / name
    shown = Catalog(running.target, running.root)
    assert shown.tables("lr_shop") == sorted(FINE)


def test_check_names_what_is_not_read(running: Running) -> None:
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(StringIO()):
        main(["check", "--json", "-c", str(running.config)])
    findings = [finding["what"] for finding in json.loads(said.getvalue())["findings"]]
    [aside] = [what for what in findings if "are set aside for what they name" in what]
    assert aside.count("lr_shop.") == 5
    assert "lr_shop.parted" in aside


def test_sparks_ports_answer_nobody_who_does_not_know_its_secret(running: Running) -> None:
    assert running.process is not None
    [java] = [child for child in children(running.process.pid) if is_java(child)]
    with ThreadPoolExecutor() as pool:
        answers = [said for said in pool.map(answer, listening(java)) if said]
    assert answers
    assert all("Expected SaslMessage" in said for said in answers), answers
    command = Path(f"/proc/{java}/cmdline").read_bytes()
    assert b"spark.authenticate=true" in command
    assert b"secret" not in command


def test_no_client_holds_up_the_pages_of_a_running_process(running: Running) -> None:
    running.wait_until(lambda: running.page("/healthz") == (200, "ok\n"))
    host, port = running.address.rpartition("/")[2].split(":")
    assert running.page("/status", Host="calque.evil.example")[0] == 421
    assert running.page("/metrics", Host="calque.evil.example")[0] == 421
    assert running.page("/readyz", Host="calque.evil.example")[1] in ("ok\n", "failing\n")
    with ExitStack() as clients:
        for number in range(600):
            client = clients.enter_context(socket.create_connection((host, int(port)), timeout=30))
            if number % 2:
                client.sendall(b"GET /status HTTP/1.1\r\nHost: ")
        for _ in range(3):
            assert running.page("/healthz") == (200, "ok\n")
        assert running.page("/status")[0] == 200
        assert running.process is not None
        descriptors = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
        assert descriptors < 600
        limits = Path(f"/proc/{running.process.pid}/limits").read_text()
        [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
        assert line.split()[3:5] == ["1024", "1024"]
        # What the process is there for goes on.
        running.source.table("lr_shop.later")
        shown = Catalog(running.target, running.root)
        running.wait_until(lambda: "later" in shown.tables("lr_shop"))
    assert running.end() == 0, running.tail()
