"""A catalog that is a JSON file, and the client that makes its tables remote tables: all that a third party writes.

{"shop": {"orders": {"version": "1", "location": "file:/shop/orders", "columns": {"x": "int"},
                     "keys": {"p": "string"}, "partitions": {"1": "file:/shop/orders/p=1"}}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName, partition_name
from calque.remotes import ClientForm, RemoteAccess

FILE = "shelf.file"
FORM = ClientForm("shelf", frozenset({"ShelfClientFactory"}), frozenset({FILE}), frozenset({FILE}), FILE)
TEXT = Storage(
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
)


@dataclass(frozen=True)
class ShelfClient:
    form = FORM

    def require(self, settings: Mapping[str, str]) -> None:
        if not settings[FILE].endswith(".json"):
            raise Refused(f"'{FILE}' = '{settings[FILE]}' is no shelf", "One is a file of JSON", "Name it")

    def connect(self, settings: Mapping[str, str], access: RemoteAccess) -> ShelfCatalog:  # noqa: ARG002
        return ShelfCatalog(Path(settings[FILE]))


@dataclass(frozen=True)
class ShelfCatalog:
    path: Path

    def identity(self) -> str:
        return str(self.path)

    def databases(self) -> Sequence[str]:
        return sorted(self._read())

    def database(self, name: str) -> Database | None:
        return Database(name, parameters={}) if name in self._read() else None

    def versions(self, database: str) -> Mapping[str, str]:
        return {name: table["version"] for name, table in self._read().get(database, {}).items()}

    def table(self, name: TableName) -> Table | None:
        found = self._read().get(name.database, {}).get(name.table)
        if found is None:
            return None
        if ":" not in found["location"]:
            raise Refused(f"'{found['location']}' is no place", f"{name} should lie there", "Write a URL")
        return Table(
            name.table,
            name.database,
            storage=storage(found["location"], found["columns"]),
            partition_keys=columns(found.get("keys", {})),
            parameters={"EXTERNAL": "TRUE"},
            type="EXTERNAL_TABLE",
        )

    def partitions(self, table: Table) -> Mapping[str, Partition]:
        found = self._read().get(table.database, {}).get(table.name, {})
        names = [column.name for column in table.partition_keys or ()]
        return {
            partition_name(names, value.split("/")): Partition(
                tuple(value.split("/")),
                table.database,
                table.name,
                storage=storage(place, found["columns"]),
                parameters={},
            )
            for value, place in found.get("partitions", {}).items()
        }

    def close(self) -> None:
        """Nothing is held open."""

    def _read(self) -> dict[str, Any]:
        try:
            shelf: dict[str, Any] = json.loads(self.path.read_text())
        except (OSError, ValueError) as error:
            raise Unavailable(f"The shelf {self.path} can't be read", str(error), "Put it there") from error
        return shelf


def columns(types: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in types.items())


def storage(location: str, types: Mapping[str, str]) -> Storage:
    return Storage(columns(types), location, TEXT.input_format, TEXT.output_format, serde=TEXT.serde, parameters={})


CLIENT = ShelfClient()
