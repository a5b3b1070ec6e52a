"""The bytes that are free where a place on this host lies: `free_at`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from calque.engine.check.host import existing, free_bytes


def free_at(place: str) -> int | None:
    """Return the bytes that a process of this user can still write where `place`, a URI or a path, lies, or will lie
    once it is made. None for a place that is not on this host, and where the system does not say."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    try:
        return free_bytes(existing(Path(unquote(parts.path))))
    except OSError:
        return None
