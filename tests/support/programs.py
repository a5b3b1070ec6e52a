"""Modules of `support` that run in a process of their own."""

from __future__ import annotations

import sys
from pathlib import Path

from support.places import TESTS


def program(module: str) -> list[str]:
    """The command that runs the module; its arguments may follow."""
    path = f"import sys; sys.path.insert(0, {str(TESTS)!r})"
    return [sys.executable, "-c", f"{path}; import runpy; runpy.run_module({module!r}, None, '__main__', True)"]


def peak_megabytes() -> float:
    """The most memory that this process had, in MiB. (`ru_maxrss` counts what had it before the program began, too.)"""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
