"""`calque demo` as a user starts it: it ends with equal targets, or leaves nothing when it is ended before."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from calque.app import APP
from calque.demo import configuration
from calque.resources import cache_folder
from calque.sandbox import manifest, unpacked
from support.judges.documents import read_document
from support.places import ROOT

DEMO = (sys.executable, "-m", "calque.cli", "demo")
IGNORING = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""Starts a command as a shell starts what runs in the background: it ignores interrupts unless it says otherwise."""
MARK = "CALQUE_TEST_MARK"
PAGE = "the page is at"
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
    """A cache with what `make install` brings, and nothing that only tests need."""
    cache, full = tmp_path / "cache", cache_folder()
    for artifact in dict.fromkeys(manifest.OF_THE_DEMO):
        artifact.path(cache).parent.mkdir(parents=True, exist_ok=True)
        artifact.path(cache).symlink_to(artifact.path(full))
    for made in (unpacked.hive_3_jars, partial(unpacked.template, "3.1.3")):
        made(cache).parent.mkdir(parents=True, exist_ok=True)
        made(cache).symlink_to(made(full))
    return cache


@pytest.mark.timeout(400)
def test_the_demo_ends_with_every_target_equal(tmp_path: Path, demo_cache: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--seconds", "8", "--json", "--keep", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=False,
        timeout=380,
        env={**os.environ, "CALQUE_CACHE": str(demo_cache)},
    )
    assert done.stdout, done.stderr
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
    mark = uuid.uuid4().hex
    demo = subprocess.Popen(
        [*IGNORING, *DEMO, "--targets", "1", "--journal", journal, "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
    )
    with demo:
        assert demo.stdout is not None
        first = said = demo.stdout.readline()
        while after not in said:
            said = demo.stdout.readline()
            assert said, "the demo ended by itself"
        folder = Path(first.split()[-1])
        assert folder.is_dir()
        if after == PAGE and PICTURES:
            take_pictures(said.split()[-1], Path(PICTURES))
        demo.send_signal(ended_by)
        code = demo.wait(120)
    deadline = time.monotonic() + ENDED_SECONDS
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked(mark) == []
    if ended_by is signal.SIGKILL:
        assert code == -signal.SIGKILL
        shutil.rmtree(folder)
    else:
        assert (code, folder.exists()) == (130, False)


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


def marked(mark: str) -> list[int]:
    """The living processes that inherited the mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
