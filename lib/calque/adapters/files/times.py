"""Which times the files of a directory have at their source, where their own store can't keep them.

A directory that calque writes in an object store holds small hidden objects, `NOTE` and the moment of writing, written
before the files that they name. A file has the time that the newest note with its name and size says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from secrets import token_hex

from calque.model.names import OURS

NOTE = f"{OURS}_times."
MARKER = ".calque"
"""The empty object that stands for a directory."""
MANY = 8
"""So many notes of one directory are merged into one."""

Times = Mapping[tuple[str, int], int]
"""By (name, size): nanoseconds since the epoch."""


def is_internal(name: str) -> bool:
    """Whether an object of this name, without its directory, tells of the directory instead of lying in it."""
    return name == MARKER or name.startswith(NOTE)


def note_name(now_ns: int) -> str:
    """A new name; names sort by time."""
    return f"{NOTE}{now_ns:020}-{token_hex(4)}"


def written(times: Times) -> bytes:
    files = [[name, size, modified_ns] for (name, size), modified_ns in sorted(times.items())]
    return json.dumps({"version": 1, "files": files}, ensure_ascii=False, separators=(",", ":")).encode()


def read(content: bytes) -> Times:
    """What a note says; nothing where it is none."""
    try:
        match json.loads(content):
            case {"version": 1, "files": list(files)}:
                return {(name, size): modified_ns for name, size, modified_ns in files}
    except (ValueError, TypeError):
        pass
    return {}


def merged(notes: Iterable[tuple[str, Times]]) -> Times:
    """Of notes by name: what the newest says of each file."""
    newest_times: dict[tuple[str, int], int] = {}
    for _, times in sorted(notes, key=lambda note: note[0]):
        newest_times.update(times)
    return newest_times
