"""A running process as those see it who look after it: its status, its endpoint, and how it stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from calque.adapters.control import ControlStore
from calque.cli import main
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
            token_file = "{root}/token"
            metrics_token_file = "{root}/metrics-token"
            [log]
            format = "json"
            [targets.dr]
            metastore = "{proxy.uri}"
            warehouse = "file://{root}/dr"
            include = ["{FREE.database}.*", "{LATE.database}.*"]
            """
        )
        for name in ("token", "metrics-token"):
            (root / name).write_text(f"{name} of {root}\n")
            (root / name).chmod(0o600)
        self.log = root / "run.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.root)
        return self.process

    def calque(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command's end. `run` has a process of its own; others would spend a second of a processor on imports."""
        command = [*arguments, "-c", str(self.config)]
        if arguments[0] == "run":
            alone = [sys.executable, "-m", "calque.cli", *command]
            return subprocess.run(alone, capture_output=True, text=True, timeout=60, cwd=self.root, check=False)
        said, told = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = main(command)
        return subprocess.CompletedProcess(command, code, said.getvalue(), told.getvalue())

    def status(self) -> Any:
        found = self.calque("status", "--json")
        assert found.returncode == 0, found.stderr
        return read_document("status", found.stdout)

    def lines(self) -> list[dict[str, Any]]:
        """The whole log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def page(self, path: str, accept: str = "*/*", token: str = "token") -> tuple[int, str]:
        """Of the running process, for who has that token: status and content."""
        control = ControlStore(self.root / "state" / "control")
        wait_until(lambda: processes(control))
        [process] = processes(control)
        try:
            request = Request(
                process.serves + path, headers={"Accept": accept, "Authorization": f"Bearer {token} of {self.root}"}
            )
            with urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def act(self, action: str, tables: list[str]) -> int:
        """Ask for it on the page; the answer's status."""
        [process] = processes(ControlStore(self.root / "state" / "control"))
        content = json.dumps({"action": action, "target": "dr", "tables": tables}).encode()
        headers = {"Authorization": f"Bearer token of {self.root}", "Content-Type": "application/json"}
        try:
            with urlopen(Request(f"{process.serves}/api/actions", content, headers), timeout=30) as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code

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
    [lag] = service.wait_for(lambda target: target["lagging"])["lagging"]
    assert (lag["table"], lag["shows"], lag["lag_events"]) == (str(HELD), shown, service.client.current() - shown)
    assert f'calque_table_lag_seconds{{table="{HELD}",target="dr"}}' in service.page("/metrics")[1]
    waited = service.calque("wait", "--target", "dr", "--event-id", str(service.client.current()), "--timeout", "20s")
    assert (waited.returncode, str(HELD) in waited.stderr) == (75, True)
    assert service.calque("resume", "--tables", f"{HELD}").returncode == 0
    service.wait_for(lambda target: not target["set_aside"])
    assert files(service, HELD) == 1

    overview = json.loads(service.page("/api/overview")[1])
    assert [one["name"] for one in overview["targets"]] == ["dr"]
    assert overview["may_act"] is True
    found = json.loads(service.page(f"/api/tables?target=dr&q={FREE}")[1])
    assert (found["total"], found["tables"][0]["state"]) == (1, "live")
    chain = json.loads(service.page(f"/api/table?target=dr&name={FREE}")[1])["links"]
    assert chain[-1]["fate"] == "shown"
    assert chain[-1]["files"] == 1
    for action, tables in (("pause", [str(HELD)]), ("resume", [str(HELD)]), ("verify", []), ("release", ["a.*"])):
        assert service.act(action, tables) == 200
        wait_until(lambda: json.loads(service.page("/api/overview")[1])["actions"][0]["state"] != "running")
    told = {one["action"]: one for one in json.loads(service.page("/api/overview")[1])["actions"]}
    assert {one["state"] for one in told.values()} == {"done"}
    assert (told["verify"]["result"]["count"], told["verify"]["result"]["compared"]) == (0, 2)
    assert [service.act("pause", ["sales"]), service.act("stop", [])] == [400, 400]
    history = service.calque("history", str(FREE), "--json")
    told = read_document("history", history.stdout)
    assert ({link["fate"] for link in told["links"]}, told["shows"]) == ({"shown"}, target["position"])
    drawn = service.calque("history", str(FREE)).stdout.splitlines()
    assert (len(drawn), drawn[-1][:26]) == (len(told["links"]) + 1, f"{FREE} at dr is live")
    assert service.calque("history", "healthy.fre").returncode == 65
    assert service.page("/api/tables?target=dt")[0] == 400
    assert service.page("/api/lags")[0] == 200

    metrics = dict(line.rsplit(" ", 1) for line in service.page("/metrics")[1].splitlines() if line[0] != "#")
    assert float(metrics['calque_target_position_event_id{target="dr"}']) == service.client.current()
    assert float(metrics['calque_target_tables{state="live",target="dr"}']) == 2
    assert float(metrics['calque_files_total{target="dr"}']) == 2
    opened = {path: service.page(path, token="metrics-token")[0] for path in ("/metrics", "/status")}
    assert opened == {"/metrics": 200, "/status": 401}
    assert service.page("/metrics", token="no")[0] == 401

    turned_away = service.calque("run", "--until", "head")
    [line] = [json.loads(line) for line in turned_away.stderr.splitlines() if "exit_code" in line]
    assert (turned_away.returncode, line["level"], line["fields"]) == (75, "error", {"exit_code": 75})

    [*_, published] = [line for line in service.lines() if "epoch" in line["fields"]]
    epoch = published["fields"]["epoch"]
    assert published["fields"] == {
        "source": "hq",
        "target": "dr",
        "window": published["fields"]["window"],
        "event": target["position"] if target["epoch"] == epoch else published["fields"]["event"],
        "epoch": epoch,
    }
    assert published["fields"]["window"].startswith(f"dr-{epoch}-")
    assert published["fields"]["window"] in service.page("/metrics", "application/openmetrics-text; version=1.0.0")[1]
    assert service.calque("epochs", "show", str(epoch)).returncode == 0
    assert str(service.status()["targets"]["dr"]["window"]).startswith("dr-")

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
    assert f"token of {service.root}" not in service.log.read_text()
    assert {line["level"] for line in service.lines()} >= {"info", "warning"}
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
    assert service.lines()
    assert time.monotonic() - began < 4.0
