"""Notes beside combined files: a small hidden file that says for which of the source's files they stand.

A note is written last. So a directory without one has no combined files, or has files that a death left half-made. A
note is believed as long as exactly the files that it names lie in the directory, with their sizes and times.
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
"""The word in place of a layout in a note on manifests of a symlink table."""
NAME = re.compile(r"calque-([0-9a-f]{24})-\d{4,}\.(parquet|txt)")
SUFFIXES: Mapping[RowLayout, str] = {RowLayout.PARQUET: "parquet", RowLayout.TEXT: "txt"}


def combined_name(fingerprint: str, number: int, layout: RowLayout) -> str:
    """Return the name of file `number` of those with rows of several files. `fingerprint` is that of the source's
    listing."""
    return f"calque-{fingerprint}-{number:04}.{SUFFIXES[layout]}"


def has_combined_files(listing: Listing) -> bool:
    """Tell whether names of files look combined; only the directory's note says whether they are, and of which
    files."""
    return any(NAME.fullmatch(file.path) for file in listing.files)


def leftovers(listing: Listing) -> list[str]:
    """Return the paths of files with names of combined files."""
    return [file.path for file in listing.files if NAME.fullmatch(file.path)]


def note_of(combination: Combination) -> bytes:
    """Return the content of the note on a combination, as `combination_of` reads it."""
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
    """Return the combination that a note tells of; None for a note that is damaged or of another format, because the
    files that lie there then count as they are."""
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
    """Return the listing of a target's directory with the source's files in place of those that stand for them. A
    listing without a note, or with one that is not believed, stays as it is."""
    combination = combination_of(note) if note is not None else None
    if combination is None or not lies_there(combination, listing):
        return listing
    return replace(listing, files=combination.sources, combination=combination)


def lies_there(combination: Combination, listing: Listing) -> bool:
    return [identity(file) for file in combination.stored] == [identity(file) for file in listing.files]


def identity(file: File) -> tuple[str, int, int]:
    return file.path, file.size, file.modified_ns


def as_stored(listing: Listing) -> Listing:
    """Return the listing with the files that really lie in the directory."""
    return replace(listing, files=listing.stored, combination=None)
