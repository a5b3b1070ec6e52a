"""The bytes that are free where a folder of this host lies: `free_bytes`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit


def free_bytes(place: str) -> int | None:
    """Return the bytes that a process of this user can still write where `place`, a URI or a path, lies, or will lie
    once it is made. None for a place that is not on this host, and where the system does not say."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    path = Path(unquote(parts.path))
    try:
        there = next((folder for folder in (path, *path.parents) if folder.exists()), None)
        if there is None:
            return None
        system = os.statvfs(there)
    except OSError:
        return None
    return system.f_bavail * system.f_frsize
