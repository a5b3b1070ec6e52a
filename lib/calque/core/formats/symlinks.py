"""Symlink tables: each file in their directory is a manifest, whose lines are the paths of the files with the rows.

Hive's `SymlinkTextInputFormat` reads such tables, and the manifests of Delta, Presto and Athena have the same form. At
a target the files that manifests name lie below a hidden directory of the manifests' own, and the manifests name them
there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from calque.core.formats.iceberg import calls_iceberg
from calque.core.formats.layout import join, place
from calque.errors import AlterationRefused, Refused
from calque.model.hive import Partition, Table, is_delta, is_view
from calque.model.names import OURS

INPUT = "symlinktextinputformat"
"""The end of the input format's class name, in lower case."""
COPIES = f"{OURS}_named"
"""The directory below the manifests' own that holds copies of the files that they name."""
IN_NO_DUMP = "symlink tables are in no dump: their directories have files that name the files with the rows"
PATTERN = re.compile(r"[*?\[{\\]")
"""Characters that make a path a pattern for Hadoop."""
LINE_ENDS = re.compile("\r\n|\r|\n")
TODO = "Write the manifest again, and release the table from quarantine"


@dataclass(frozen=True, slots=True)
class Line:
    """A file that a manifest names, on line `number`. `copy` is the path of its copy, below the directory of manifests
    at a target. Lines that name one file have one copy."""

    number: int
    path: str
    copy: str


def is_symlinks(thing: Table | Partition) -> bool:
    """Tell whether the files in the object's directory are manifests, which name the files with its rows."""
    if isinstance(thing, Table) and (is_view(thing) or is_delta(thing) or calls_iceberg(thing.parameters)):
        return False
    return thing.storage is not None and reads_symlinks(thing.storage.input_format)


def reads_symlinks(input_format: str | None) -> bool:
    return (input_format or "").lower().endswith(INPUT)


def require_same_reading(before: Table | Partition, after: Table | Partition) -> None:
    """Raise `AlterationRefused` where only one of the two definitions of an object, whose files stay, is read by
    manifests."""
    if is_symlinks(before) != is_symlinks(after):
        raise AlterationRefused(
            f"{after.database}.{after.table if isinstance(after, Partition) else after.name} changes its input format",
            "Its files name files with rows only before or only after that",
            "Nothing is to be done: the table is read",
        )


def lines_of(manifest: str, content: bytes) -> list[Line]:
    """Return the files that a manifest names, as Hadoop reads it. `manifest` is its full path. Raises `Refused`, with
    the number of the first line that names no file."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        number = len(LINE_ENDS.findall(content[: error.start].decode())) + 1
        raise refused(manifest, number, "It is not UTF-8") from error
    texts = LINE_ENDS.split(text)
    if not texts[-1]:
        texts.pop()
    return [line_of(manifest, number, text) for number, text in enumerate(texts, 1)]


def line_of(manifest: str, number: int, text: str) -> Line:
    """Return the file that one line names. A path without a scheme lies in the file system of the manifest. Raises
    `Refused`, which names the manifest and the line, for a pattern, a path that is not absolute, and a directory."""
    if PATTERN.search(text):
        raise refused(manifest, number, f"{shortened(text)} may stand for several files")
    try:
        named = place(text)
    except Refused as error:
        raise refused(manifest, number, f"{shortened(text)} is no absolute path") from error
    if text.startswith("/"):
        own = place(manifest)
        named = replace(named, scheme=own.scheme, authority=own.authority)
    directory, _, name = str(named).rpartition("/")
    if not name or text.endswith("/"):
        raise refused(manifest, number, f"{shortened(text)} is no file")
    digest = hashlib.blake2b(directory.encode(), digest_size=12).hexdigest()
    return Line(number, str(named), f"{COPIES}/{digest}/{name}")


def refused(manifest: str, number: int, why: str) -> Refused:
    return Refused(f"Line {number} of {manifest} names no file that can be copied", why, TODO)


def shortened(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


def moved(lines: Iterable[Line], location: str) -> bytes:
    """Return the content of the manifest for a directory at a target: each line names the copy."""
    own = str(place(location))
    return "".join(f"{join(own, line.copy)}\n" for line in lines).encode()
