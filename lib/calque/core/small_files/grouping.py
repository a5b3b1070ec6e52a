"""Grouping of a new partition's files: `group_files` decides which are combined on their way to a target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calque.model.files import File, RowLayout
from calque.model.hive import Partition, SerDe, Storage, Table
from calque.model.policy import SmallFilesRule

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
LINES_APART = ("skip.header.line.count", "skip.footer.line.count", "textinputformat.record.delimiter")
"""Parameters that give the lines of a text file a meaning by their place, or end lines at other characters."""
PLAIN_ENCODINGS = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"})
"""Encodings in which the byte of a line's end is a part of no other character."""
PROVIDER = "spark.sql.sources.provider"
SPARK_BUCKETS = "spark.sql.sources.schema.numBuckets"
PLAIN_TEXT = re.compile(r"[^.]*|.*\.(txt|text|csv|tsv|psv|json|jsonl|ndjson|log|dat|data|tbl|c000|\d+)", re.IGNORECASE)
"""Names of text files that no reader takes for compressed ones. Only known endings are among them, because Hadoop's
settings decide which endings mean a codec."""
WORTH = 2
"""The factor by which combining must at least lower the number of files."""


class Unfit(Exception):
    """The error for files that can't be combined; its text says why."""


@dataclass(frozen=True, slots=True)
class GroupedFiles:
    """The files of a partition in groups. Each group lies at the target as one file, with its rows in order; a group of
    one file is a copy."""

    layout: RowLayout
    groups: tuple[tuple[File, ...], ...]


def layout_of(table: Table, partition: Partition) -> RowLayout | None:
    """Return the layout of rows in the partition's files. None where a file means more than its rows, as in bucketed or
    skewed tables, and for other formats than Parquet and plain text."""
    storage = partition.storage
    if storage is None or has_places(storage) or (table.storage is not None and has_places(table.storage)):
        return None
    parameters = [(table.parameters or {}), (partition.parameters or {}), (storage.parameters or {})]
    parameters += [serde.parameters or {} for serde in serdes(table.storage, storage)]
    if any(SPARK_BUCKETS in each for each in parameters):
        return None
    if storage.input_format == PARQUET_INPUT:
        return RowLayout.PARQUET
    if storage.input_format == TEXT_INPUT and not any(map(gives_lines_a_meaning, parameters)):
        return RowLayout.TEXT
    return None


def has_places(storage: Storage) -> bool:
    """Tell whether a file's name or directory says which rows are in it: buckets, skewed values, sub-directories."""
    skewed = storage.skew is not None and bool(storage.skew.columns)
    return (storage.buckets or 0) > 0 or skewed or bool(storage.sub_directories)


def serdes(*storages: Storage | None) -> list[SerDe]:
    return [storage.serde for storage in storages if storage is not None and storage.serde is not None]


def gives_lines_a_meaning(parameters: Mapping[str, str]) -> bool:
    r"""Tell whether parameters make the lines of a text file depend on their place in it, or end elsewhere than at
    `\n`."""
    if any(parameters.get(key, "0").strip() not in ("", "0") for key in LINES_APART):
        return True
    other_ends = parameters.get("line.delim", "\n") not in ("\n", "10")
    encoding = parameters.get("serialization.encoding", "").strip().lower()
    return other_ends or encoding not in PLAIN_ENCODINGS or parameters.get(PROVIDER, "hive").lower() != "hive"


def group_files(rule: SmallFilesRule, layout: RowLayout | None, files: Sequence[File]) -> GroupedFiles | None:
    """Return the partition's files in groups: those smaller than `rule.below` bytes, by name, in groups of at most that
    many bytes, and each larger file alone.

    None where fewer than `rule.files` are small, where the number of files would not fall by the factor `WORTH`, where
    files lie in directories of their own, and where a text file may be compressed.
    """
    if layout is None:
        return None
    small = sorted(file for file in files if file.size < rule.below)
    if len(small) < rule.files or any("/" in file.path for file in files):
        return None
    if layout is RowLayout.TEXT and not all(PLAIN_TEXT.fullmatch(file.path) for file in files):
        return None
    groups: list[list[File]] = []
    room = 0
    for file in small:
        if not groups or file.size > room:
            groups.append([])
            room = rule.below
        groups[-1].append(file)
        room -= file.size
    groups += [[file] for file in files if file.size >= rule.below]
    return GroupedFiles(layout, tuple(map(tuple, groups))) if len(groups) * WORTH <= len(files) else None
