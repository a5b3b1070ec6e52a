"""What a process holds of heavy messages, as the kernel counts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import heavyflow
from heavy import WideLog
from logserver import log_server

EVENTS, PARTITIONS, MESSAGE = 100, 30, 10_000_000
MOST = 512
"""MiB, of which the modules take 110."""


def test_a_gigabyte_of_messages_of_ten_megabytes_goes_through_half_of_it(tmp_path: Path) -> None:
    with log_server(WideLog(EVENTS, PARTITIONS, MESSAGE)) as server:
        done = subprocess.run(
            [sys.executable, heavyflow.__file__, server.uri, str(tmp_path / "journal")],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    print(told)
    assert told["partitions"] == PARTITIONS
    assert told["captured"] < MOST
    assert told["applied"] < MOST
