"""The words of statements on a target's tables, kept in the state folder."""

from __future__ import annotations

from collections.abc import Sequence

from calque.config import Config
from calque.errors import Broken
from calque.model.state_places import TargetPlaces
from calque.plugins.clusters.config.secondary_tables import SecondaryTable, amended
from calque.ports.records import Json, Records
from calque.wiring.runtime import Runtime
from calque.wiring.state_folder import StateFolder


def as_statements_have_it(config: Config) -> Config:
    """Return the configuration with what all statements so far say of its targets' tables. Raises `Unavailable`,
    `Broken`."""
    control = StateFolder(config.state, Runtime().guard).control
    return amended(config, {name: secondary_tables(control, name) for name in config.targets})


def secondary_tables(control: Records, target: str) -> Sequence[SecondaryTable]:
    record = TargetPlaces(target).secondary_record
    rows = (control.read(record) or {}).get("tables", [])
    if not isinstance(rows, list):
        raise Broken(f"The record {record} is damaged", "It is no list of tables", "Put it back from a backup")
    return [SecondaryTable(str(name), bool(is_taken), str(partitions)) for name, is_taken, partitions in rows]


def put_secondary_tables(control: Records, target: str, tables: Sequence[SecondaryTable]) -> None:
    """Record the newest word on each table in place of those that were recorded. They are durable when this returns."""
    newest = {one.table: one for one in tables}
    rows: list[Json] = [[one.table, one.is_taken, one.partitions] for one in newest.values()]
    control.put(TargetPlaces(target).secondary_record, {"tables": rows})
