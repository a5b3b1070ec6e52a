"""Processes that stand still for a while, as on a machine that is loaded or asleep."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 30.0


@contextmanager
def suspended(*pids: int) -> Iterator[None]:
    """None of their threads runs. The signal alone does not say so: on a loaded machine a thread answers requests
    until the scheduler comes to it."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        deadline = time.monotonic() + SECONDS
        while not all(map(stands_still, pids)):
            assert time.monotonic() < deadline, pids
            time.sleep(0.001)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def stands_still(pid: int) -> bool:
    """Linux tells the state of each thread behind its name, which stands in brackets."""
    stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)
