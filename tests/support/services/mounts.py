"""File systems of a test's own, which may be full: mounted where one process and its children alone see them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

MOUNTING = ("unshare", "--mount", "--map-root-user")
"""The words before a command that may mount."""


def can_mount() -> bool:
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run([*MOUNTING, "true"], capture_output=True, check=False).returncode
    )


def with_disk(folder: str, size: str) -> Sequence[str]:
    """The words before a command that has a disk of that size at the folder."""
    script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
    return (*MOUNTING, "sh", "-c", script, "sh", size, folder)


def seen_by(process: int, path: str) -> str:
    """A path as a process sees it, for whoever does not."""
    return f"/proc/{process}/root{path}"


@contextmanager
def filled(filler: Path) -> Iterator[None]:
    """A disk without room for anything."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert not os.statvfs(filler).f_bavail
    yield
    filler.unlink()
