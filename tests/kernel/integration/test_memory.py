"""What a process holds of heavy messages and of long windows, as the kernel counts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from calque.control.window_size import EVENT_BYTES
from support.programs import program
from support.services.logserver import log_server
from support.sources.heavy import WideLog
from support.sources.longwindow import write

EVENTS, PARTITIONS, MESSAGE = 100, 30, 10_000_000
MOST = 512
"""MiB, of which the modules take 110."""
LONG = 120_000


def told_by(module: str, *words: str) -> Any:
    """What a module of `support` tells of its own process."""
    done = subprocess.run([*program(module), *words], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout)


def test_a_gigabyte_of_messages_of_ten_megabytes_goes_through_half_of_it(tmp_path: Path) -> None:
    with log_server(WideLog(EVENTS, PARTITIONS, MESSAGE)) as server:
        told = told_by("support.sources.heavyflow", server.uri, str(tmp_path / "journal"))
    assert told["partitions"] == PARTITIONS
    assert told["captured"] < MOST
    assert told["applied"] < MOST


@pytest.mark.prove
def test_a_dump_of_a_table_of_many_partitions_holds_few_of_them(tmp_path: Path) -> None:
    told = told_by("support.sources.large_dump", str(tmp_path), "20000")
    assert told["megabytes"] < MOST / 2
    assert len(list(Path(told["directory"]).rglob("_files"))) == 20_000


@pytest.mark.prove
def test_an_event_of_a_long_window_takes_no_more_than_the_bound_of_windows_counts_for_it(tmp_path: Path) -> None:
    write(str(tmp_path), LONG)
    told = told_by("support.sources.longwindow", str(tmp_path))
    assert told["partitions"] == 100
    assert told["bytes"] / LONG < EVENT_BYTES
