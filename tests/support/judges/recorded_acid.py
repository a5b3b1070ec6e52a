"""The recorded history of ACID tables: statements of Hive 4.0.1 on a metastore 4.2.0, each state that they left, and
the warehouse as it was at the end."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calque.core.acid.write_ids import ValidWriteIds
from calque.model.journal import Event
from calque.model.names import TableName
from support.places import ROOT

FOLDER = ROOT / "tests" / "golden" / "acid"


@dataclass(frozen=True, slots=True)
class RecordedState:
    """What Hive and its metastore said of a table after an event. `valid` is None for a table without write ids of its
    own, `rows` are texts as Hive printed them; `files` are below the table's location."""

    after: int
    table: TableName
    location: str
    valid: ValidWriteIds | None
    files: tuple[str, ...]
    rows: tuple[str, ...] | None
    parameters: Mapping[str, str]

    @property
    def is_insert_only(self) -> bool:
        return self.parameters.get("transactional_properties") == "insert_only"


def events(name: str) -> list[Event]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [event_of(json.loads(line)) for line in lines if line.strip()]


def event_of(row: Mapping[str, Any]) -> Event:
    names = (row[name] or "" for name in ("cat_name", "db_name", "table_name"))
    return Event(row["event_id"], row["event_time"], row["event_type"], *names, row["message_format"], row["message"])


def states() -> list[RecordedState]:
    lines = (FOLDER / "hive-4.2-acid-history.jsonl").read_text(encoding="utf-8").splitlines()
    return [state_of(row) for row in map(json.loads, lines) if row["kind"] == "state"]


def state_of(row: Mapping[str, Any]) -> RecordedState:
    rows = row["rows"] if isinstance(row["rows"], list) else None
    files = tuple(text.rsplit(" ", 1)[0] for text in row["files"])
    valid = valid_of(row["valid"]) if isinstance(row["valid"], dict) else None
    table = TableName("w", row["table"])
    return RecordedState(
        row["after"], table, row["location"], valid, files, None if rows is None else tuple(rows), row["parameters"]
    )


def valid_of(said: Mapping[str, Any]) -> ValidWriteIds:
    """The metastore's answer: the invalid ids, and a bit for each that says whether it was aborted."""
    bits = int.from_bytes(bytes.fromhex(said["aborted"]), "little")
    aborted = frozenset(write_id for place, write_id in enumerate(said["invalid"]) if bits >> place & 1)
    return ValidWriteIds(said["hwm"], frozenset(said["invalid"]) - aborted, aborted)


def unpack_warehouse(folder: Path) -> Path:
    """Unpack the files that were left at the end; the warehouse's folder."""
    with tarfile.open(FOLDER / "hive-4.2-acid-files.tgz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def place_of(state: RecordedState, warehouse: Path) -> Path:
    return warehouse / state.location.removeprefix("file:/lab/warehouse/")


def is_there(state: RecordedState, warehouse: Path) -> bool:
    """Whether all files of the state were left at the end."""
    place = place_of(state, warehouse)
    return bool(state.files) and all((place / name).exists() for name in state.files)


def partitions_of(state: RecordedState) -> Sequence[str]:
    """The names of the partitions that have files; one empty name for a table without partitions."""
    first = {name.split("/")[0] for name in state.files}
    return sorted(first) if any("=" in name for name in first) else [""]
