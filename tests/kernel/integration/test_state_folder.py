"""The state folder of a real process: its disk is full, it is damaged, put back as it was, or removed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import calque
from calque.adapters.control import ControlStore
from calque.model.state_places import TargetPlaces
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.mounts import can_mount, seen_by, with_disk

DISK = "48m"
OF_CALQUE = f'File "{Path(calque.__file__).parent}'
"""In a traceback with calque's own code."""
REMOVAL = re.compile(r"`rm -r '([^']+)'`")


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=7)
    made.config.write_text(f'{made.config.read_text()}\n[serve]\naddress = ""\n')
    furnish(made)
    yield made
    made.close()


def furnish(deployment: Deployment) -> None:
    """Tables in both databases, with rows."""
    while len(deployment.source.databases()) < len(deployment.databases):
        deployment.writer.run("create_database")
    for _ in range(2):
        deployment.writer.run("create_table")
    change(deployment)


def change(deployment: Deployment) -> None:
    for operation in ("create_table", "insert", "add_partitions", "overwrite", "alter_table"):
        deployment.writer.run(operation)


def line_of(deployment: Deployment, code: int) -> str:
    """What `run` says when it ends with that code: one line, and no traceback. Python's side of Spark may print one of
    its own while Spark ends."""
    done = deployment.calque("run", "--until", "head", timeout=120)
    assert done.returncode == code, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("calque: ")]
    assert (len(said), OF_CALQUE in done.stderr, "defect" in done.stderr) == (1, False, False), done.stderr
    return said[0]


def test_a_damaged_folder_is_refused_in_one_line_and_an_older_copy_beside_newer_checkpoints_goes_on(
    deployment: Deployment,
) -> None:
    state = deployment.root / "state"
    deployment.start()
    deployment.settle()
    # Spark's Java process may still clear its scratch files away.
    shutil.copytree(state, deployment.root / "copy", ignore=shutil.ignore_patterns("spark"))
    change(deployment)
    deployment.settle()
    assert deployment.end(signal.SIGTERM) == 0, deployment.tail()

    epochs, journal = state / "ledgers" / "dr" / "epochs", state / "journal"
    newest = max((journal / "_delta_log").glob("*.json"))
    # Whatever it says: an event, that others were put together, or were forgotten.
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    line = line_of(deployment, 65)
    assert line.startswith(f"calque: {journal} is damaged. ")
    assert "Put it back from a copy, or say `rm -r" in line
    shutil.rmtree(state)
    shutil.copytree(deployment.root / "copy", state)
    first = min((epochs / "_delta_log").glob("*.json"))
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])
    line = line_of(deployment, 65)
    assert line.startswith(f"calque: {epochs} is damaged. ")
    assert "lost with it is the target's epochs" in line
    shutil.rmtree(named(line))
    change(deployment)
    done = deployment.calque("run", "--until", "head", timeout=120)
    assert done.returncode == 0, done.stderr
    deployment.check_equal()
    assert others_may(state) + others_may(deployment.root / "checkpoints") == []


def named(line: str) -> Path:
    """What the line says is to be removed."""
    match = REMOVAL.search(line)
    assert match is not None, line
    return Path(match[1])


def others_may(folder: Path) -> list[str]:
    """What others may read or write below the folder, but for what Spark has there, and other names of data."""
    paths = [folder, *(path for path in folder.rglob("*") if not {"spark", "pins"} & set(path.parts))]
    return [f"{path} {path.stat().st_mode:o}" for path in paths if path.exists() and path.stat().st_mode & 0o077]


def fill(filler: Path) -> None:
    """The disk has no room for anything."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert not os.statvfs(filler).f_bavail


def until_shown(deployment: Deployment, state: Path) -> None:
    """As the process tells, since a library that reads tables does not find them by that path."""
    head, deadline = deployment.source.current(), time.monotonic() + 120
    control = ControlStore(state / "control")
    while (control.read(TargetPlaces("dr").status_record) or {}).get("position") != head:
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.1)


@pytest.mark.prove
def test_a_full_disk_is_refused_at_the_start_and_later_told_of_and_waited_for_and_a_removed_folder_ends_it(
    deployment: Deployment,
) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here, so none can be full")
    state = deployment.root / "state"
    state.mkdir()
    deployment.inside = with_disk(str(state), "4k")
    deployment.start()
    assert deployment.process is not None
    assert deployment.process.wait(60) == 75
    assert f"calque: {state} can't be used. The disk of {state} is full (No space left on device)" in deployment.tail()

    deployment.inside = with_disk(str(state), DISK)
    deployment.start()
    seen = Path(seen_by(deployment.process.pid, str(state)))
    deployment.config = deployment.root / "seen.toml"
    deployment.config.write_text((deployment.root / "calque.toml").read_text() + f'[state]\npath = "{seen}"\n')
    until_shown(deployment, seen)
    fill(seen / "filler")
    change(deployment)
    deployment.wait_for(lambda status: f"The disk of {seen} is full" in str(status["last_error"]))
    assert deployment.process.poll() is None, deployment.tail()
    (seen / "filler").unlink()
    until_shown(deployment, seen)
    deployment.check_equal()
    assert others_may(seen) == []
    assert [path.name for path in seen.rglob(".*") if not path.name.endswith(".lock")] == []

    shutil.rmtree(seen / "locks")
    assert deployment.process.wait(60) == 75, deployment.tail()
    assert "is gone. " in deployment.tail().splitlines()[-1]
