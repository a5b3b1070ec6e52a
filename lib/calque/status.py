"""Where everything is: the document of `calque status --json`, whether `run` runs or not.

Truth comes from the ledgers, the journal and the source; what only the running process knows (tables being read, the
last error) from the record that it refreshes in the state folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calque.core.mended import Mending, own_gap, state_of_own, states_of
from calque.core.standing import NO_OBJECTS
from calque.errors import CalqueError
from calque.model.gaps import Gap
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, Span
from calque.wiring import Wiring

FRESH_SECONDS = 5.0
OUT = (TableState.UNKNOWN, TableState.READING, TableState.STAGING, TableState.WAITING)
Document = dict[str, Any]


def snapshot(wiring: Wiring) -> Document:
    """The whole document. An unreachable source is a fact in it, no error."""
    source = wiring.source()
    try:
        head: EventId | None = source.log.current()
    except CalqueError:
        head = None
    last = source.journal.last()
    return {
        "source": {"name": source.name, "head": head, "reachable": head is not None},
        "journal": {"last": last, "oldest": source.journal.oldest(), "gaps": gaps_of(wiring)},
        "targets": {name: of_target(wiring, name, head) for name in wiring.config.targets},
    }


def gaps_of(wiring: Wiring) -> list[Document]:
    """Where the journal did not continue the log, and what became of it at the targets; then, with the target, where
    the journal did not wait for one. A target that has no ledger yet begins behind them all."""
    gaps = wiring.gaps().found()
    rows = {name: list(wiring.ledger(name).tables().values()) for name in wiring.config.targets}
    states = states_of(gaps, filter(None, rows.values()))
    own = {name: gap for name, found in rows.items() if (gap := own_gap(found)) is not None}
    return [
        *(gap_of(gap, states[gap.number]) for gap in gaps),
        *({**gap_of(gap, state_of_own(gap, gaps, rows[name])), "target": name} for name, gap in own.items()),
    ]


def gap_of(gap: Gap, state: Mending) -> Document:
    first, last = gap.span
    return {"from": first, "to": last, "state": state.value, "cause": gap.cause.value, "found_at": gap.found_at}


def of_target(wiring: Wiring, name: str, head: EventId | None) -> Document:
    ledger = wiring.ledger(name)
    epoch = ledger.last_epoch()
    position = epoch.event_id if epoch else None
    rows = [row for row in ledger.tables().values() if row.kind not in NO_OBJECTS]
    live = running(wiring, name)
    states = dict(live.get("states", {})) if live else {}
    tables = [row for row in rows if row.kind == "table"]
    counts = {state.value: 0 for state in TableState}
    for row in tables:
        counts[states.get(f"{row.database}.{row.table}", row.state.value)] += 1
    newest = max([event for event in (head, wiring.source().journal.last()) if event is not None], default=None)
    lag = max(newest - position, 0) if newest is not None and position is not None else 0
    return {
        "state": state_of(wiring, name, live),
        "position": position,
        "lag_events": lag,
        "lag_seconds": lag_seconds(wiring, position) if lag else 0.0,
        "epoch": epoch.epoch if epoch else None,
        "tables": counts,
        "set_aside": [set_aside(row, states) for row in tables if row.state in OUT],
        "quarantined": [quarantined(row) for row in rows if row.state is TableState.QUARANTINED],
        "bridges": sum(len(found.bridges) for found in ledger.epochs()),
        "copying": live.get("copying") if live else None,
        "reading": live.get("reading") if live else None,
        "last_error": live.get("last_error") if live else None,
    }


def running(wiring: Wiring, name: str) -> Mapping[str, Any] | None:
    """What the running process says of a target; None when none runs."""
    record = wiring.control.read(f"running/{name}")
    if record is None or not isinstance(record.get("at"), float):
        return None
    return record if time.time() - float(str(record["at"])) < FRESH_SECONDS and alive(record.get("pid")) else None


def alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def state_of(wiring: Wiring, name: str, live: Mapping[str, Any] | None) -> str:
    if live is None:
        return "stopped"
    if wiring.control.read(f"paused/{name}") is not None and live.get("state") == "running":
        return "paused"
    return str(live.get("state"))


def lag_seconds(wiring: Wiring, position: EventId | None) -> float:
    """Seconds since the oldest event that the target does not show; what is not captured yet counts from its first."""
    journal = wiring.source().journal
    last = journal.last()
    if position is None or last is None or last <= position:
        return 0.0
    first = journal.oldest()
    if first is None:
        # All that the target lacks was lost in a gap: it counts from when that was found.
        gaps = wiring.gaps().found()
        return round(max(time.time() - seconds_of(gaps[-1]), 0.0), 1) if gaps else 0.0
    oldest = max(position, first - 1)
    entries = journal.entries(Span(oldest, oldest + 1))
    return round(max(time.time() - entries[0].event_time, 0.0), 1) if entries else 0.0


def seconds_of(gap: Gap) -> float:
    return datetime.fromisoformat(gap.found_at).timestamp()


def set_aside(row: TableRow, states: Mapping[str, str]) -> Document:
    name = f"{row.database}.{row.table}"
    return {"table": name, "state": states.get(name, row.state.value), "shows": row.shows, "reason": row.reason}


def quarantined(row: TableRow) -> Document:
    name = f"{row.database}.{row.table}" if row.table else row.database
    return {"table": name, "since_event": row.since_event, "reason": row.reason}
