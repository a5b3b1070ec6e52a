"""A table's rows as its engine reads them, from the definition alone: with no rule of the product's own.

Spark takes the place of a table with a provider from the SerDe's `path`, Hive that of every table from its location,
and both take those of partitions from these. A view is its text, and its unqualified names are those of the database
that its engine keeps beside it. Text, JSON lines and CSV are read. Avro's bytes are not: of such a table the schema
files and lines of text are read.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from calque.model.hive import Partition, Table
from calque.model.names import TableName
from calque.ports.source import CatalogReader

Row = tuple[str, ...]
FROM = re.compile(r"\bFROM\s+`?(\w+)`?(?:\s*\.\s*`?(\w+)`?)?", re.IGNORECASE)
CURRENT = ("view.catalogAndNamespace.part.1", "view.default.database")
SCHEMA = "avro.schema.url"


@dataclass(frozen=True, slots=True)
class Reading:
    """`rows` are sorted. `places` are those that the engine went to, by what named them. `behind` are the views that
    led to the definition that names them."""

    rows: tuple[Row, ...]
    places: Mapping[str, str]
    behind: tuple[TableName, ...] = ()


def read(catalog: CatalogReader, name: TableName) -> Reading:
    """Raises `LookupError` where an engine would say that there is no such table."""
    table = catalog.table(name)
    if table is None:
        raise LookupError(str(name))
    parts: Mapping[str, Partition] = {}
    if table.partition_keys:
        parts = catalog.partitions(name, catalog.partition_names(name))
    if table.type == "VIRTUAL_VIEW":
        inner = read(catalog, named_by(table))
        values = [part.values for part in parts.values()]
        return Reading(tuple(sorted([*values, *inner.rows])), inner.places, (name, *inner.behind))
    places = dict(places_of(table, parts))
    rows = [row for key, place in places.items() for row in rows_behind(key, place, table, parts)]
    return Reading(tuple(sorted(rows)), places)


def named_by(view: Table) -> TableName:
    """The table that the view reads."""
    found = FROM.search(view.view_expanded_text or view.view_original_text or "")
    assert found is not None, view
    parameters = view.parameters or {}
    current = next((parameters[key] for key in CURRENT if key in parameters), view.database)
    first, second = found.groups()
    return TableName(first, second) if second else TableName(current, first)


def places_of(table: Table, parts: Mapping[str, Partition]) -> Iterator[tuple[str, str]]:
    parameters = table.parameters or {}
    storage = table.storage
    assert storage is not None
    serde = (storage.serde.parameters if storage.serde else None) or {}
    paths = {key.lower(): value for key, value in serde.items()}
    is_spark = "spark.sql.sources.provider" in parameters
    if not table.partition_keys:
        yield ("path", paths["path"]) if is_spark else ("location", storage.location or "")
    for values, key in ((parameters, f"parameters.{SCHEMA}"), (serde, f"serde.{SCHEMA}")):
        if SCHEMA in values:
            yield key, values[SCHEMA]
    for number, file in enumerate(json.loads(parameters.get("files", "[]"))):
        yield f"files.{number}", file
    for name, part in parts.items():
        held = part.storage
        assert held is not None
        yield name, held.location or ""
        schema = ((held.serde.parameters if held.serde else None) or {}).get(SCHEMA)
        if schema:
            yield f"{name}#{SCHEMA}", schema


def rows_behind(key: str, place: str, table: Table, parts: Mapping[str, Partition]) -> Iterator[Row]:
    if key.endswith(SCHEMA):
        yield ("schema", path_of(place).read_text())
        return
    part = parts.get(key)
    held = part.storage if part is not None else table.storage
    width = len((held.columns if held else None) or ())
    form = (table.parameters or {}).get("spark.sql.sources.provider", "hive").lower()
    for file in files_behind(place):
        for row in lines(file.read_text(), form, width):
            yield (*row, *(part.values if part is not None else ()))


def files_behind(place: str) -> list[Path]:
    """What a reader of the place finds: the file itself, or those below the directory that are not hidden."""
    top = path_of(place)
    if top.is_file():
        return [top]
    found = (path for path in top.rglob("*") if path.is_file())
    return sorted(path for path in found if not any(map(is_hidden, path.relative_to(top).parts)))


def is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def path_of(place: str) -> Path:
    return Path(re.sub(r"^file:/*", "/", place))


def lines(content: str, form: str, width: int) -> Iterator[Row]:
    match form:
        case "json":
            for line in content.splitlines():
                yield tuple(str(value) for value in json.loads(line).values())
        case "csv":
            yield from map(tuple, csv.reader(content.splitlines()))
        case "text":
            yield from ((line,) for line in content.splitlines())
        case _:
            yield from (tuple(line.split("\x01")[:width]) for line in content.splitlines())
