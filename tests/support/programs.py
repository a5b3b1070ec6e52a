"""Modules of `support` that run in a process of their own."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def program(module: str) -> list[str]:
    """The command that runs the module; its arguments may follow."""
    path = f"import sys; sys.path.insert(0, {str(TESTS)!r})"
    return [sys.executable, "-c", f"{path}; import runpy; runpy.run_module({module!r}, None, '__main__', True)"]
