"""The process `calque run` of a demo."""

from __future__ import annotations

import sys
from pathlib import Path

from calque.errors import Unavailable
from calque.sandbox.processes import KeptProcess

SEE_LOG = "See run.log"


def replication(file: Path, directory: Path) -> KeptProcess:
    """Start `calque run` as a child process, with its log in the demo's folder."""
    return KeptProcess([sys.executable, "-m", "calque.cli", "run", "-c", str(file)], directory / "run.log")


def require_running(child: KeptProcess) -> None:
    """Raise `Unavailable` with the last line of its log where the process has ended."""
    if not child.running:
        last = child.output().strip().rpartition("\n")[2]
        raise Unavailable("`calque run` ended by itself", last.removeprefix("calque: "), SEE_LOG)
