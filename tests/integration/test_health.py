"""A running process as those see it who look after it: its status, its endpoint, and how it stops."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from calque.adapters.control import ControlStore
from calque.control.processes import processes
from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.judges.documents import read_document
from support.services.thriftproxy import Asked, asked

FREE, HELD, LATE = TableName("healthy", "free"), TableName("healthy", "held"), TableName("healthy_late", "free")
STOP_SECONDS = 10.0
SEEN_SECONDS = 6.0


class Service:
    """A deployment with one target, whose metastore can be made silent."""

    def __init__(self, root: Path, source: Metastore, target: Metastore, proxy: Asked) -> None:
        self.root, self.proxy = root, proxy
        self.client, self.there = HiveClient(source.uri), HiveClient(target.uri)
        self.source = Source(self.client, root / "data")
        self.config = root / "calque.toml"
        self.config.write_text(
            f"""
            [source]
            name = "hq"
            metastore = "{source.uri}"
            poll = "50ms"
            [serve]
            address = "127.0.0.1:0"
            [targets.dr]
            metastore = "{proxy.uri}"
            warehouse = "file://{root}/dr"
            include = ["{FREE.database}.*", "{LATE.database}.*"]
            """
        )
        self.log = root / "run.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.root)
        return self.process

    def calque(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "calque.cli", *arguments, "-c", str(self.config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.root, check=False)

    def status(self) -> Any:
        found = self.calque("status", "--json")
        assert found.returncode == 0, found.stderr
        return read_document("status", found.stdout)

    def page(self, path: str) -> tuple[int, str]:
        """Of the running process: status and content."""
        control = ControlStore(self.root / "state" / "control")
        wait_until(lambda: processes(control))
        [process] = processes(control)
        try:
            with urlopen(process.serves + path, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def wait_for(self, reached: Callable[[Any], object], seconds: float = 240) -> Any:
        """Until the process tells that of its target."""
        deadline = time.monotonic() + seconds
        while not reached(target := read_document("status", self.page("/status")[1])["targets"]["dr"]):
            assert time.monotonic() < deadline, f"{target}\n{self.log.read_text()[-4000:]}"
            time.sleep(0.1)
        return target

    def wait_until_shown(self) -> Any:
        head = self.client.current()
        return self.wait_for(lambda target: target["position"] == head)

    def end(self) -> tuple[int, float]:
        """The exit code, and how long that took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60), time.monotonic() - began


@pytest.fixture
def service(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Service]:
    with asked(servers["target"].uri) as proxy:
        found = Service(tmp_path, servers["source"], servers["target"], proxy)
        yield found
        proxy.answering.set()
        if found.process is not None and found.process.poll() is None:
            found.process.kill()
            found.process.wait(60)


def test_a_process_tells_truly_how_it_is_and_stops_when_it_is_asked_to(service: Service) -> None:
    source = service.source
    source.create_database(FREE.database)
    for name in (FREE, HELD):
        source.create_table(name, (Column("a", "bigint"),), (), external=True)
    assert service.status()["targets"]["dr"]["state"] == "stopped"
    service.proxy.answering.clear()
    process = service.start()
    wait_until(lambda: service.status()["targets"]["dr"]["state"] == "starting")
    wait_until(lambda: "health and metrics at" in service.log.read_text())
    assert service.page("/readyz")[0] == 503
    service.proxy.answering.set()
    service.wait_for(lambda target: target["state"] == "running")
    wait_until(lambda: service.page("/readyz")[0] == 200)
    assert service.page("/healthz") == (200, '{\n  "ok": true,\n  "problems": []\n}\n')
    shown = service.wait_until_shown()["position"]

    assert service.calque("pause", "--tables", f"{HELD}").returncode == 0
    service.wait_for(lambda target: target["set_aside"], 10)
    for name in (FREE, HELD):
        source.insert(name)
    target = service.wait_until_shown()
    [row] = target["set_aside"]
    assert (row["table"], row["state"], row["shows"]) == (str(HELD), "waiting", shown)
    assert files(service, FREE) == 1
    assert files(service, HELD) == 0
    waited = service.calque("wait", "--target", "dr", "--event-id", str(service.client.current()), "--timeout", "20s")
    assert (waited.returncode, str(HELD) in waited.stderr) == (75, True)
    assert service.calque("resume", "--tables", f"{HELD}").returncode == 0
    service.wait_for(lambda target: not target["set_aside"])
    assert files(service, HELD) == 1

    metrics = dict(line.rsplit(" ", 1) for line in service.page("/metrics")[1].splitlines() if line[0] != "#")
    assert float(metrics['calque_target_position_event_id{target="dr"}']) == service.client.current()
    assert float(metrics['calque_target_tables{state="live",target="dr"}']) == 2
    assert float(metrics['calque_files_total{target="dr"}']) == 2

    service.proxy.answering.clear()
    began = time.monotonic()
    told = service.wait_for(lambda target: target["last_error"], 20)
    assert time.monotonic() - began < SEEN_SECONDS + 2
    assert "metastore" in told["last_error"]
    assert service.page("/readyz")[0] == 503
    assert service.page("/healthz")[0] == 200
    service.proxy.answering.set()
    service.wait_for(lambda target: target["last_error"] is None)

    service.proxy.answering.clear()
    source.insert(FREE)
    calls = len(service.proxy.calls)
    wait_until(lambda: len(service.proxy.calls) > calls)
    code, seconds = service.end()
    assert code == 0, service.log.read_text()[-4000:]
    assert seconds < STOP_SECONDS
    assert service.status()["targets"]["dr"]["state"] == "stopped"
    assert process.poll() == 0
    service.proxy.answering.set()


def files(service: Service, name: TableName) -> int:
    """How many data files the target shows."""
    return len(
        [path for path in (service.root / "dr").rglob(f"{name.table}/*") if not path.name.startswith((".", "_"))]
    )


def wait_until(reached: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_second_request_to_stop_ends_it_at_once(service: Service) -> None:
    service.source.create_database(LATE.database)
    service.proxy.answering.clear()
    process = service.start()
    wait_until(lambda: [name for name, _ in service.proxy.calls if name != "getVersion"])
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 4.0
