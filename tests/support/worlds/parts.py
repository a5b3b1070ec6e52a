"""A world whose replica belongs to a part of a process, without Spark."""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.policy import Policy
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.target import TargetReplication
from calque.wiring.wiring import Wiring
from support.memory.metastore import HIVE_3
from support.worlds.worlds import World


def open_world() -> World:
    """An open replica of a source that has nothing yet."""
    world = World(1, HIVE_3, Policy("dr", "hq", include=("d*.*",), warehouse="file:/target"))
    world.open()
    world.settle()
    return world


def wiring_of(folder: Path, more: str, of_source: str = "") -> Wiring:
    """Of a target "dr" with `more` in its section, and in sections behind it, and `of_source` in that of the source."""
    text = f'[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n{of_source}\n'
    text += f'[state]\npath = "{folder / "state"}"\n'
    text += f'[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n{more}\n'
    (folder / "calque.toml").write_text(text)
    return APP.wiring(APP.load(str(folder / "calque.toml")))


def part_of(world: World, folder: Path, max_events: int) -> TargetReplication:
    """The target's part of a process, with windows of so many events."""
    run = ReplicatorProcess(wiring_of(folder, f"[window]\nmax_events = {max_events}"), ["dr"])
    part = TargetReplication(run, run.streams["hq"], "dr")
    part.current.replica = world.replica
    return part


def create_tables(world: World, count: int) -> None:
    world.source.create_database(Database("d1"))
    for number in range(count):
        storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
        world.source.create_table(Table(f"t{number}", "d1", storage=storage, parameters={}))
    world.capture_all()
