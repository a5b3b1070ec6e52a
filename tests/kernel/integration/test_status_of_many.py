"""What `calque status` says of a process with six targets, three of which have no metastore, on terminals of several
widths: the process answers, nothing is cut, and no line is longer than the terminal is wide."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from calque.app import APP
from calque.control.status import snapshot
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment

WELL, LOST = ("amsterdam", "berlin", "copenhagen"), ("dublin", "edinburgh", "florence")


class Six(Deployment):
    """A deployment of one source whose database three targets have under names of their own."""

    def text(self, source: Metastore) -> str:
        [target], [database, _] = self.targets, self.databases
        lines = ["[source]", 'name = "hq"', f'metastore = "{source.uri}"', 'poll = "50ms"', '[serve]\naddress = ""']
        for name in (*WELL, *LOST):
            lines += [
                f"[targets.{name}]",
                f'metastore = "{target.uri if name in WELL else "thrift://127.0.0.1:1"}"',
                f'warehouse = "file://{self.root}/{name}"',
                f'include = ["{database}.*"]',
                f'rename = {{ {database} = "{database}_{name}" }}',
            ]
        return "\n".join(lines)


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Six]:
    made = Six(tmp_path, next(NUMBERS), servers["source"], {"any": servers["target"]}, 1)
    yield made
    made.close()


def on_terminal(deployment: Deployment, columns: int, *words: str) -> tuple[int, list[str]]:
    """The exit code of a command, and the lines that it prints on a terminal so many columns wide."""
    ours, its = os.openpty()
    try:
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        command = [sys.executable, "-m", "calque.start", *words, "-c", str(deployment.config)]
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        with subprocess.Popen(command, stdout=its, stderr=subprocess.STDOUT, env=environment) as process:
            os.close(its)
            said = b""
            while part := read(ours):
                said += part
        return process.returncode, said.decode().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    finally:
        os.close(ours)


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_six_targets_of_which_three_fail_are_readable_on_every_terminal(deployment: Six) -> None:
    deployment.write(12)
    deployment.start()
    deployment.settle(names=WELL)
    wiring, deadline = APP.wiring(APP.load(deployment.config)), time.monotonic() + 60
    while [name for name in LOST if snapshot(wiring)["targets"][name]["state"] != "failing"]:
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.1)
    for columns in (60, 80, 120):
        code, lines = on_terminal(deployment, columns, "status")
        assert code == 0
        assert [line for line in lines if len(line) > columns] == []
        said = " ".join(" ".join(lines).split())
        for name in LOST:
            assert f"{name}: No metastore answers at thrift://127.0.0.1:1. " in said
            assert said.count("attempts") >= len(LOST)
        for name in (*WELL, *LOST):
            assert name in said.split()
        assert said.count("running") == len(WELL) + 1  # capture, too
    command = [sys.executable, "-X", "importtime", "-m", "calque.start", "status", "-c", str(deployment.config)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "calque.control.asking" in loaded
    assert not [name for name in ("pydantic", "pyarrow", "calque.wiring.wiring") if f"| {name}\n" in loaded]
    assert deployment.end(signal.SIGTERM) == 0
    code, lines = on_terminal(deployment, 80, "status")
    assert code == 0
    assert [line for line in lines if len(line) > 80] == []
    assert " ".join(lines).count("stopped") == len(WELL) + len(LOST) + 1
