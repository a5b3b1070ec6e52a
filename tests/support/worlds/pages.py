"""The page of a process that has begun nothing: its targets have tables in memory, and no metastore is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from calque.app import APP
from calque.core.records.lifecycle import State
from calque.engine.sides.table_states import TableStates, TableStatus
from calque.model.names import EventId, TableName
from calque.plugins.page.run.console import PageData
from calque.streams.replicator_process import ReplicatorProcess
from calque.streams.target import TargetReplication
from support.worlds.worlds import World

POSITION: EventId = 812
DATABASES = 100


def page_of(folder: Path, targets: int, text: str = "") -> PageData:
    """The page of a process with so many targets, `t00` and on, whose configuration has `text` at its end."""
    lines = ['[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"', f'[state]\npath = "{folder}/state"']
    for number in range(targets):
        lines.append(
            f'[targets.t{number:02}]\nmetastore = "thrift://127.0.0.1:{2 + number}"\n'
            f'warehouse = "file:{folder}/{number}"'
        )
    file = folder / "calque.toml"
    file.write_text("\n".join([*lines, text]))
    config = APP.load(file)
    names = [f"t{number:02}" for number in range(targets)]
    run = ReplicatorProcess(APP.wiring(config), tuple(names))
    run.stopping.set()  # Nobody misses threads of a process that is to end.
    run.parts = [TargetReplication(run, run.streams["hq"], name) for name in names]
    for part in run.parts:
        world = World(1)
        world.open()
        world.settle()
        part.current.replica, part.supervisor.state = world.replica, "running"  # type: ignore[attr-defined]
    return PageData(run, has_token=False)


def put(part: TargetReplication, rows: Mapping[TableName, TableStatus]) -> None:
    """Give the target these tables, as a ledger gives them, at `POSITION`."""
    assert part.current.replica is not None
    not_live = {name for name, row in rows.items() if row.state is not State.LIVE}
    paused = {name for name, row in rows.items() if row.state is State.PAUSED}
    positions = {name: row.shows or 0 for name, row in rows.items() if row.state is State.WAITING}
    states = TableStates(POSITION, dict(rows), positions, not_live=not_live, paused=paused)
    part.current.replica.tables, part.current.replica.epochs.passed = states, POSITION


def fill(part: TargetReplication, count: int) -> None:
    """Give the target so many tables; one in a thousand is set aside."""
    put(
        part,
        {
            TableName(f"db{number % DATABASES}", f"t{number:06}"): TableStatus(State.LIVE, POSITION)
            if number % 1000
            else TableStatus(State.QUARANTINED, 700, "a view of that name stands there", 700)
            for number in range(count)
        },
    )
