"""The times that files of a directory have at their source, noted in object stores, which can't keep them.

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
"""The number of notes of one directory that are merged into one."""

Times = Mapping[tuple[str, int], int]
"""The times of files' last changes at their source, in nanoseconds since the epoch, by (name, size)."""


def is_internal(name: str) -> bool:
    """Return whether an object of this name, without its directory, is a marker of a directory or a note of times, and
    not a file."""
    return name == MARKER or name.startswith(NOTE)


def note_name(now_ns: int) -> str:
    """Return a new name of a note. Names sort by time."""
    return f"{NOTE}{now_ns:020}-{token_hex(4)}"


def written(times: Times) -> bytes:
    files = [[name, size, modified_ns] for (name, size), modified_ns in sorted(times.items())]
    return json.dumps({"version": 1, "files": files}, ensure_ascii=False, separators=(",", ":")).encode()


def read(content: bytes) -> Times:
    """Return the times in the content of a note (an object whose name begins with `NOTE`); an empty mapping where the
    content is no note that this version reads."""
    try:
        match json.loads(content):
            case {"version": 1, "files": list(files)}:
                return {(name, size): modified_ns for name, size, modified_ns in files}
    except (ValueError, TypeError):
        pass
    return {}


def merged(notes: Iterable[tuple[str, Times]]) -> Times:
    """Return the time of each file by the newest of `notes` that names it. `notes` are (name of the note, its times);
    names sort by the time of writing (`note_name`)."""
    newest_times: dict[tuple[str, int], int] = {}
    for _, times in sorted(notes, key=lambda note: note[0]):
        newest_times.update(times)
    return newest_times
