"""A reader of Delta logs, for readers in worlds: it knows the Delta transaction log protocol, and by their names the
domains in which a replica's log says what a metastore lists. Nothing of the code that writes such logs is in it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from calque.core.events import decode
from calque.model.hive import Partition, Storage, Table, location_of
from calque.model.names import partition_name

Action = Mapping[str, Any]
MAPS = frozenset({"partitionValues", "tags", "configuration"})
PARTITION = "calque.partition/"
TYPES = {"integer": "int", "string": "string"}
"""Hive's names for types of Delta: those that a world's writer uses."""


@dataclass
class Snapshot:
    """What the log's newest version says."""

    version: int = -1
    metadata: Action = field(default_factory=dict)
    files: dict[str, Action] = field(default_factory=dict)
    """What added them, by path below the root."""
    domains: dict[str, str] = field(default_factory=dict)

    def play(self, row: Action) -> None:
        if add := row.get("add"):
            self.files[unquote(add["path"])] = add
        elif remove := row.get("remove"):
            self.files.pop(unquote(remove["path"]), None)
        elif metadata := row.get("metaData"):
            self.metadata = metadata
        elif domain := row.get("domainMetadata"):
            if domain["removed"]:
                self.domains.pop(domain["domain"], None)
            else:
                self.domains[domain["domain"]] = domain["configuration"]

    def columns(self) -> list[tuple[str, str]]:
        """Names and Hive's types, partition columns last."""
        fields = json.loads(self.metadata["schemaString"])["fields"]
        return [(one["name"], TYPES[one["type"]]) for one in fields]


def snapshot(read: Callable[[str], bytes | None], names: Sequence[str], root: str) -> Snapshot:
    """The newest version of the log at the root, in which the files with these names lie: from its newest checkpoint
    on. Raises `AssertionError` for a log with holes."""
    log = f"{root}/_delta_log"
    found, checkpoints = Snapshot(), sorted(name for name in names if name.endswith(".checkpoint.parquet"))
    if checkpoints:
        content = read(f"{log}/{checkpoints[-1]}")
        assert content is not None
        for row in pq.read_table(io.BytesIO(content)).to_pylist():
            found.play({name: maps_as_objects(action) for name, action in row.items() if action is not None})
        found.version = int(checkpoints[-1][:20])
    commits = sorted(int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit())
    for version in (one for one in commits if one > found.version):
        assert version == found.version + 1, f"version {found.version + 1} is missing in {log}"
        content = read(f"{log}/{version:020}.json")
        assert content is not None
        for line in content.decode().splitlines():
            found.play(json.loads(line))
        found.version = version
    return found


def maps_as_objects(action: Action) -> Action:
    return {key: dict(value) if isinstance(value, list) and key in MAPS else value for key, value in action.items()}


@dataclass(frozen=True)
class DeltaTable:
    """What readers see at a root: the definition, and partitions by their values as a metastore would list them.
    `files` are the paths of each, by its
    location and below it."""

    table: Table
    partitions: Mapping[tuple[str, ...], Partition]
    files: Mapping[str, Sequence[str]]


def delta_table(found: Snapshot, root: str, at_metastore: Table) -> DeltaTable:
    """The table under its name at the metastore. Raises `AssertionError` where the log contradicts itself."""
    table = decode.thrift_object(Table, found.domains["calque.table"])
    table = replace(table, database=at_metastore.database, name=at_metastore.name)
    keys = [(key.name, key.type) for key in table.partition_keys or ()]
    storage = table.storage or Storage()
    assert found.columns() == [*((column.name, column.type) for column in storage.columns or ()), *keys]
    assert found.metadata["partitionColumns"] == [name for name, _ in keys]
    partitions = {}
    for domain, text in found.domains.items():
        if domain.startswith(PARTITION):
            said, name = json.loads(text), domain.removeprefix(PARTITION)
            own = decode.thrift_object(Storage, said["storage"]) if "storage" in said else storage
            partition = decode.thrift_object(Partition, said["partition"])
            assert name == partition_name([key for key, _ in keys], partition.values)
            own = replace(own, location=f"{root}/{said['location']}".rstrip("/"))
            partitions[partition.values] = replace(partition, database=table.database, table=table.name, storage=own)
    locations = {values: location_of(one) or "" for values, one in partitions.items()}
    locations |= {} if keys else {(): location_of(table) or ""}
    assert len({*locations.values()}) == len(locations), "two partitions have one location"
    files: dict[str, list[str]] = {location: [] for location in locations.values()}
    for path, add in sorted(found.files.items()):
        values = tuple(add["partitionValues"][key] or "" for key, _ in keys)
        assert values in locations, f"rows of {values}, which is not listed"
        location = locations[values]
        assert f"{root}/{path}".startswith(f"{location}/"), f"{path} is not in {location}"
        files[location].append(f"{root}/{path}".removeprefix(f"{location}/"))
    return DeltaTable(table, partitions, files)
