"""The lists of files and directories whose data a dump only names: `_files`, and the list of external directories.

A line of `_files` is a file as events name it (`core.events.decode.logged_file`). Hive 4 lists external directories in
`_file_list_external`, Hive 3.1 in `_external_tables_info`. The readers here pass over empty lines, and over a line that
repeats the line before, because a writer that appends a line may do so twice.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from calque.core.events.decode import LoggedFile, Undecodable, logged_file
from calque.plugins.dumps.core.layout import DumpLayout

FULL_COPY = "FALLBACK_COPY"
"""Hive's name for a directory that is copied without snapshots."""


@dataclass(frozen=True, slots=True)
class ExternalDirectory:
    """A directory of an external table, or of a partition outside of its table's directory. `target` is empty where the
    dump did not know the base directory: the load then puts the source's path below its own base directory. Only Hive 4
    has `copy_mode` and `snapshot_prefix`."""

    table: str
    source: str
    target: str = ""
    copy_mode: str = FULL_COPY
    snapshot_prefix: str | None = None


def file_lines(files: Iterable[LoggedFile]) -> str:
    """Return the whole text of a `_files`; an empty text for an object without files."""
    return "".join(f"{file_line(file)}\n" for file in files)


def file_line(file: LoggedFile) -> str:
    """Return the line of `_files` for one file. The line has a checksum only together with a root of the change
    manager, because Hive uses neither without the other."""
    if file.checksum is None or file.change_root is None:
        return f"{file.uri}###{file.directory}"
    return f"{file.uri}#{file.checksum}#{file.change_root}#{file.directory}"


def read_files(text: str) -> Iterator[LoggedFile]:
    return map(logged_file, distinct_lines(text))


def external_lines(directories: Iterable[ExternalDirectory], layout: DumpLayout) -> str:
    return "".join(f"{external_line(directory, layout)}\n" for directory in directories)


def external_line(directory: ExternalDirectory, layout: DumpLayout) -> str:
    match layout:
        case DumpLayout.HIVE_4:
            parts = (directory.source, directory.target, directory.table, directory.copy_mode)
            return "#".join([*parts, directory.snapshot_prefix or "null"])
        case DumpLayout.HIVE_3:
            return f"{directory.table},{base64.b64encode(directory.source.encode()).decode()}"
        case _:
            assert_never(layout)


def read_external(text: str, layout: DumpLayout) -> Iterator[ExternalDirectory]:
    """Read the list of external directories of a dump in this layout. Raises `Undecodable`."""
    for line in distinct_lines(text):
        match layout:
            case DumpLayout.HIVE_4:
                yield external_of_four(line)
            case DumpLayout.HIVE_3:
                yield external_of_three(line)
            case _:
                assert_never(layout)


def external_of_four(line: str) -> ExternalDirectory:
    """Return the external directory of one line of Hive 4. Lines of older versions have a source and a target alone.
    Raises `Undecodable`."""
    source, *rest = line.split("#")
    if not source or not rest:
        raise Undecodable("a line of external directories has no target")
    target, table, mode, prefix = [*rest[:4], "", "", ""][:4]
    return ExternalDirectory(table, source, target, mode or FULL_COPY, None if prefix in ("", "null") else prefix)


def external_of_three(line: str) -> ExternalDirectory:
    table, comma, encoded = line.partition(",")
    try:
        source = binascii.a2b_base64(encoded, strict_mode=True).decode()
    except ValueError:
        raise Undecodable(f"the directory of external table {table} is no Base64") from None
    if not comma or not source:
        raise Undecodable("a line of external tables has no directory")
    return ExternalDirectory(table, source)


def distinct_lines(text: str) -> Iterator[str]:
    before = ""
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line and line != before:
            yield line
        before = line
