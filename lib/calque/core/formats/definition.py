"""Texts, for the ledger, of the part of a table's definition that a reader of its files must know.

A text is JSON with sorted keys: `input_format`, `serde`, `serde_parameters` of tables and partitions; of a table also
its `type`, `columns` and `partition_keys` (pairs of name and type), and those of its `parameters` on which it depends
how files are read. Equal definitions give one text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from calque.model.hive import PROVIDER, Column, Partition, Storage, Table, is_delta

TELLING = frozenset(
    {
        "skip.header.line.count",
        "skip.footer.line.count",
        "serialization.null.format",
        "table_type",
        "metadata_location",
        "storage_handler",
        PROVIDER,
        "transactional",
        "calque.rows",
    }
)
"""Parameters of a table on which it depends how its files are read."""


@dataclass(frozen=True, slots=True)
class Format:
    """The Hive classes that read files, with the SerDe's parameters."""

    input_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """A table in the form that readers of its files need. `columns` and `keys` are pairs of a name and Hive's type."""

    type: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[tuple[str, str], ...]
    parameters: Mapping[str, str]
    format: Format


def text_of_table(table: Table) -> str:
    """Return the text of a table's definition."""
    parameters = table.parameters or {}
    keys = () if is_delta(table) else table.partition_keys or ()
    storage = table.storage or Storage()
    return text(
        {
            **record_of(storage),
            "type": table.type or "",
            "columns": [pair(column) for column in storage.columns or ()],
            "partition_keys": [pair(column) for column in keys],
            "parameters": {key: value for key, value in parameters.items() if key in TELLING},
        }
    )


def text_of_partition(partition: Partition) -> str:
    """Return the text of a partition's definition, which is its format alone."""
    storage = partition.storage or Storage()
    serde = storage.serde
    parameters = tuple(sorted((serde.parameters or {}).items())) if serde else ()
    return text_of_format(storage.input_format or "", (serde.class_name if serde else None) or "", parameters)


@lru_cache(1024)
def text_of_format(input_format: str, serde: str, parameters: tuple[tuple[str, str], ...]) -> str:
    """Return the text of a format. Partitions of one format share one text object."""
    return text({"input_format": input_format, "serde": serde, "serde_parameters": dict(parameters)})


def record_of(storage: Storage) -> dict[str, object]:
    serde = storage.serde
    return {
        "input_format": storage.input_format or "",
        "serde": (serde.class_name if serde else None) or "",
        "serde_parameters": dict((serde.parameters or {}) if serde else {}),
    }


def pair(column: Column) -> list[str]:
    return [column.name, column.type]


def text(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def definition_of(text: str) -> Definition:
    """Return the definition in a text that `text_of_table` wrote."""
    record = json.loads(text)
    return Definition(
        record["type"],
        tuple((name, kind) for name, kind in record["columns"]),
        tuple((name, kind) for name, kind in record["partition_keys"]),
        record["parameters"],
        format_of(text),
    )


def format_of(text: str) -> Format:
    """Return the format in a text that `text_of_table` or `text_of_partition` wrote."""
    record = json.loads(text)
    return Format(record["input_format"], record["serde"], record["serde_parameters"])
