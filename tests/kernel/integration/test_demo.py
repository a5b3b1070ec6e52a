"""`calque demo` as a user starts it: it ends with equal targets, stays where that is asked, leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from calque.app import APP
from calque.demo import configuration
from calque.resources import cache_folder
from calque.sandbox import manifest
from support.judges.documents import read_document
from support.places import ROOT

DEMO = (sys.executable, "-m", "calque.cli", "demo")
IGNORING = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""Starts a command as a shell starts what runs in the background: it ignores interrupts unless it says otherwise."""
MARK = "CALQUE_TEST_MARK"
PAGE = "the page is at"
LAST_LINE = "SHOW REMOTE TABLES"
EXPECTED = {
    " status ": "mirror",
    "SHOW TARGETS": "shop.orders",
    " history ": "shop.orders at mirror is live",
    " verify ": "mirror equals the source at event",
    " pause ": "dr: paused",
    " resume ": "",
    "notices tail": "demo.notices",
    "done mark": "of shop.orders is marked",
    "done wait": "of shop.orders is done at mirror",
    "REPL DUMP": "last_repl_id",
    "REPL LOAD": "last_repl_id",
    "EXPORT": "",
    "IMPORT": "",
    "CREATE REMOTE": "",
    "SHOW REMOTE": "default.linked_orders",
}
"""By a part of each line that a demo invites to: a part of what the line prints."""
SAMPLES = 6
"""Of the lag, before it is shown."""
PICTURES = os.environ.get("CALQUE_PICTURES", "")
"""Where those of the page go, if they are wanted; `test_page.py` looks at the page itself."""
VIEWS = (
    ("flow", "", "Lag over time", (1280, 700), "light"),
    ("phone", "", "Lag over time", (390, 844), "dark"),
    ("tables", "tables", "1 to ", (1280, 620), "light"),
    ("chain", "table/mirror/", "Its chain, newest first", (1280, 1000), "light"),
    ("problems", "problems", "Gaps of the log so far", (1280, 420), "light"),
)
"""Name of the picture, path of the view (of one table without its name), a text on it, size and colours of the
screen."""
ENDED_SECONDS = 30.0


@pytest.fixture
def demo_cache(tmp_path: Path) -> Path:
    """A cache with what the demo would fetch, and nothing else: neither what is made of it nor what tests need."""
    cache, full = tmp_path / "cache", cache_folder()
    for artifact in dict.fromkeys(manifest.OF_THE_DEMO):
        artifact.path(cache).parent.mkdir(parents=True, exist_ok=True)
        artifact.path(cache).symlink_to(artifact.path(full))
    return cache


@pytest.mark.timeout(400)
def test_the_demo_puts_its_servers_in_place_and_ends_with_every_target_equal(tmp_path: Path, demo_cache: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--seconds", "8", "--json", "--keep", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=False,
        timeout=380,
        env={**os.environ, "CALQUE_CACHE": str(demo_cache)},
    )
    assert done.stdout, done.stderr
    first = done.stderr.splitlines()[0]
    assert first == f"Putting what the servers need into {demo_cache}, once: the metastore's database"
    found = read_document("demo", done.stdout)
    problems = {
        name: (target["problems"], target["verify"].get("differences"), target["verify"].get("set_aside"))
        for name, target in found["targets"].items()
        if not target["equal"]
    }
    assert problems == {}
    assert (done.returncode, found["equal"]) == (0, True)
    assert [target["position"] >= found["source"]["head"] for target in found["targets"].values()] == [True, True]
    assert all(target["verify"]["compared"]["files"] for target in found["targets"].values())


@pytest.mark.parametrize(
    ("ended_by", "after", "journal"),
    [
        (signal.SIGTERM, PAGE, "delta"),
        pytest.param(signal.SIGTERM, "metastores in", "delta", marks=pytest.mark.prove),
        pytest.param(signal.SIGKILL, "the writer writes", "delta", marks=pytest.mark.prove),
        pytest.param(signal.SIGINT, "the writer writes", "kafka", marks=pytest.mark.prove),
    ],
)
def test_a_demo_that_is_ended_leaves_no_process(ended_by: signal.Signals, after: str, journal: str) -> None:
    with running_demo("--targets", "1", "--journal", journal, "--seconds", "600") as demo:
        said = demo.read_until(after)
        folder = demo.folder()
        assert folder.is_dir()
        if after == PAGE and PICTURES:
            take_pictures(said.split()[-1], Path(PICTURES))
        demo.process.send_signal(ended_by)
        code = demo.process.wait(120)
        demo.leave_no_process()
    if ended_by is signal.SIGKILL:
        assert code == -signal.SIGKILL
        shutil.rmtree(folder)
    else:
        assert (code, folder.exists()) == (130, False)


def test_ctrl_c_ends_a_demo_that_is_to_stay_with_0_while_it_still_starts() -> None:
    with running_demo("--stay", "--targets", "1", "--json") as demo:
        line = demo.read_error_until("Starting ")
        demo.process.send_signal(signal.SIGINT)
        output, _ = demo.process.communicate(timeout=120)
        demo.leave_no_process()
    assert demo.process.returncode == 0
    assert (read_document("demo", output)["equal"], Path(line.split()[-1]).exists()) == (False, False)


def test_a_demo_whose_replication_dies_keeps_its_folder_and_names_it() -> None:
    with running_demo("--targets", "1", "--seconds", "600") as demo:
        demo.read_until("the writer writes")
        folder = demo.folder()
        (replication,) = [pid for pid in demo.marked() if b"\0run\0-c\0" in command_line(pid)]
        os.kill(replication, signal.SIGKILL)
        _, errors = demo.process.communicate(timeout=120)
        demo.leave_no_process()
    assert demo.process.returncode == 75
    assert errors.startswith("calque: `calque run` ended by itself.")
    assert errors.endswith(f"The demo's files and logs are kept in {folder}.\n")
    assert (folder / "run.log").is_file()
    shutil.rmtree(folder)


@pytest.mark.timeout(900)
def test_every_line_that_a_demo_invites_to_works_until_ctrl_c_ends_it_in_order(tmp_path: Path) -> None:
    with running_demo("--stay", "--seconds", "2") as demo:
        demo.read_until(LAST_LINE)
        folder = demo.folder()
        lines = [line[2:] for line in demo.lines if line.startswith("  /")]
        answers = {line: answered(line, tmp_path) for line in lines}
        assert {line: answer for line, answer in answers.items() if answer.returncode} == {}
        said = {word: answer.stdout for line, answer in answers.items() for word in EXPECTED if word in line}
        assert {word: text for word, text in said.items() if EXPECTED[word] not in text} == {}
        assert said.keys() == EXPECTED.keys()
        page, token = demo.value("The page: "), demo.value("Its token: ")
        opened = Request(f"{page}api/tables?target=mirror&state=live", headers={"Authorization": f"Bearer {token}"})
        with urlopen(opened, timeout=30) as answer:
            assert "shop.orders" in [row["table"] for row in json.load(answer)["tables"]]
        demo.process.send_signal(signal.SIGINT)
        code = demo.process.wait(120)
        demo.leave_no_process()
    assert (code, folder.exists()) == (0, False)


def answered(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line as it was printed, in another terminal and another folder."""
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=300, cwd=folder)


def test_without_a_network_the_demo_says_what_it_can_not_fetch_and_starts_nothing(
    tmp_path: Path, demo_cache: Path
) -> None:
    missing = manifest.HIVE_3_JARS[0]
    missing.path(demo_cache).unlink()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with socket.socket() as silent:  # bound, and nobody listens
        silent.bind(("127.0.0.1", 0))
        proxy = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={silent.getsockname()[1]}"
        done = subprocess.run(
            DEMO,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            env={
                **os.environ,
                "CALQUE_CACHE": str(demo_cache),
                "TMPDIR": str(temporary),
                "JDK_JAVA_OPTIONS": f"{proxy} {proxy.replace('https', 'http')}",
            },
        )
    assert done.stdout == f"Putting what the servers need into {demo_cache}, once: 1 file\n"
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"calque: {missing} can't be downloaded. ")
    assert last.endswith(" Check the network, and run this again.")
    assert done.returncode == 75
    assert list(temporary.glob("calque-demo-*")) == []


def take_pictures(address: str, folder: Path) -> None:
    """Of each view of the page: those that docs/tour.md shows."""
    from support.services.browser import browser

    said = (ROOT / "docs/tour.md").read_text()
    with browser() as chromium:
        chromium.wait(lambda: samples(address) >= SAMPLES)
        for name, view, text, size, scheme in VIEWS:
            chromium.show(size, scheme)
            chromium.driver.get("about:blank")
            name_of_one = any_table(address) if view.endswith("/") else ""
            chromium.driver.get(f"{address}#/{view}{name_of_one}")
            chromium.wait_for_text(text)
            if not view:
                chromium.wait(lambda: chromium.run("return document.querySelector('#lags canvas') !== null"))
            assert chromium.driver.save_screenshot(str(folder / f"{name}.png"))
            assert f"(pictures/{name}.png)" in said
        assert chromium.complaints() == []
    assert said.count("(pictures/") == len(VIEWS)


def any_table(address: str) -> str:
    """One with partitions, unless the writer has dropped or renamed it."""
    found = [row["table"] for row in asked(address, "tables?target=mirror&state=live")["tables"]]
    return "web.clicks" if "web.clicks" in found else str(found[0])


def asked(address: str, path: str) -> Any:
    with urlopen(f"{address}api/{path}", timeout=30) as answer:
        return json.load(answer)


def samples(address: str) -> int:
    """Of a target's lag that are known."""
    targets = asked(address, "lags?since=0")["targets"].values()
    return max((sum(lag is not None for lag in columns[1]) for columns in targets if columns), default=0)


def test_a_folder_that_holds_something_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = subprocess.run([*DEMO, "--keep", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith(f"calque: {tmp_path} is not empty. ")


@pytest.mark.parametrize("targets", [1, 2, 4, 9])
def test_the_configuration_that_the_demo_writes_is_valid(tmp_path: Path, targets: int) -> None:
    addresses = {name: f"thrift://127.0.0.1:{10000 + index}" for index, name in enumerate(configuration.names(targets))}
    configuration.write(tmp_path / "calque.toml", "thrift://127.0.0.1:9999", addresses)
    assert list(APP.load(str(tmp_path / "calque.toml")).targets) == list(addresses)
    assert len(addresses) == targets


def test_the_configuration_of_a_demo_on_kafka_names_its_broker(tmp_path: Path) -> None:
    file = tmp_path / "calque.toml"
    configuration.write(file, "thrift://127.0.0.1:9999", {"mirror": "thrift://127.0.0.1:9998"}, "127.0.0.1:9092")
    config = APP.load(str(file))
    source = config.only_source()
    assert (source.journal.format, source.journal.brokers, source.topic()) == ("kafka", "127.0.0.1:9092", "demo.events")


class RunningDemo:
    """A demo that was started as a shell starts what runs in the background, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], mark: str) -> None:
        self.process, self.mark = process, mark
        self.lines: list[str] = []

    def read_until(self, text: str) -> str:
        """The first line with this text."""
        assert self.process.stdout is not None
        while not self.lines or text not in self.lines[-1]:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the demo ended by itself: {self.lines} {self.process.communicate()[1]}")
            self.lines.append(line.rstrip("\n"))
        return self.lines[-1]

    def read_error_until(self, text: str) -> str:
        """The first line of standard error with this text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return line.rstrip("\n")
        raise AssertionError(f"the demo ended by itself: {self.process.communicate()[0]}")

    def folder(self) -> Path:
        return Path(next(line for line in self.lines if line.startswith("Starting ")).split()[-1])

    def value(self, heading: str) -> str:
        (line,) = [line for line in self.lines if line.startswith(heading)]
        return line.removeprefix(heading)

    def marked(self) -> list[int]:
        """The living processes that inherited the mark in their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def leave_no_process(self) -> None:
        deadline = time.monotonic() + ENDED_SECONDS
        while self.marked() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.marked() == []


@contextmanager
def running_demo(*arguments: str) -> Iterator[RunningDemo]:
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [*IGNORING, *DEMO, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
    )
    with process:
        try:
            yield RunningDemo(process, mark)
        finally:
            process.terminate()


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
