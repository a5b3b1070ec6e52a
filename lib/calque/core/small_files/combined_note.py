"""What lies beside combined files and says for which of the source's they stand: a small hidden file.

It is written last, so that a directory without one is none of combined files, or one that a death left half-made. It is
believed as long as exactly the files lie there that it names, with their sizes and times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calque.model.files import Combination, CombinedFile, File, Listing, RowLayout
from calque.model.names import OURS

NOTE = f"{OURS}_combined.json"
FORMAT = 1
MANIFESTS = "manifests"
"""What a note says in the place of a layout where the files are manifests of a symlink table."""
NAME = re.compile(r"calque-([0-9a-f]{24})-\d{4,}\.(parquet|txt)")
SUFFIXES: Mapping[RowLayout, str] = {RowLayout.PARQUET: "parquet", RowLayout.TEXT: "txt"}


def combined_name(fingerprint: str, number: int, layout: RowLayout) -> str:
    """Of a file with rows of several; the fingerprint is the source's listing's."""
    return f"calque-{fingerprint}-{number:04}.{SUFFIXES[layout]}"


def has_combined_files(listing: Listing) -> bool:
    """Whether names say so; what a directory says to be must be read in its note."""
    return any(NAME.fullmatch(file.path) for file in listing.files)


def leftovers(listing: Listing) -> list[str]:
    """Paths of combined files, by their names."""
    return [file.path for file in listing.files if NAME.fullmatch(file.path)]


def note_of(combination: Combination) -> bytes:
    files = [
        {**record(combined.file), "row_digest": combined.row_digest, "sources": list(combined.sources)}
        for combined in combination.files
    ]
    sources = [record(file) for file in combination.sources]
    layout = combination.layout.value if combination.layout is not None else MANIFESTS
    document = {"format": FORMAT, "layout": layout, "sources": sources, "files": files}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def record(file: File) -> dict[str, Any]:
    return {"path": file.path, "size": file.size, "modified_ns": file.modified_ns, "checksum": file.checksum}


def file_of(record: Mapping[str, Any]) -> File:
    return File(record["path"], record["size"], record["modified_ns"], record["checksum"])


def combination_of(note: bytes) -> Combination | None:
    """None where it is of another format, or damaged: what lies there then counts as it is."""
    try:
        document = json.loads(note)
        if document["format"] != FORMAT:
            return None
        files = tuple(
            CombinedFile(file_of(each), tuple(each["sources"]), each["row_digest"]) for each in document["files"]
        )
        layout = None if document["layout"] == MANIFESTS else RowLayout(document["layout"])
        return Combination(layout, tuple(map(file_of, document["sources"])), files)
    except (ValueError, KeyError, TypeError):
        return None


def understood(listing: Listing, note: bytes | None) -> Listing:
    """The listing of a target's directory with the files of the source that its files stand for."""
    combination = combination_of(note) if note is not None else None
    if combination is None or not lies_there(combination, listing):
        return listing
    return replace(listing, files=combination.sources, combination=combination)


def lies_there(combination: Combination, listing: Listing) -> bool:
    return [identity(file) for file in combination.stored] == [identity(file) for file in listing.files]


def identity(file: File) -> tuple[str, int, int]:
    return file.path, file.size, file.modified_ns


def as_stored(listing: Listing) -> Listing:
    """The listing of what really lies there."""
    return replace(listing, files=listing.stored, combination=None)
