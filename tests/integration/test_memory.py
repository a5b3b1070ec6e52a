"""What a process holds of heavy messages, as the kernel counts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support.programs import program
from support.services.logserver import log_server
from support.sources.heavy import WideLog

EVENTS, PARTITIONS, MESSAGE = 100, 30, 10_000_000
MOST = 512
"""MiB, of which the modules take 110."""


def test_a_gigabyte_of_messages_of_ten_megabytes_goes_through_half_of_it(tmp_path: Path) -> None:
    with log_server(WideLog(EVENTS, PARTITIONS, MESSAGE)) as server:
        done = subprocess.run(
            [*program("support.sources.heavyflow"), server.uri, str(tmp_path / "journal")],
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
