"""The records in which a process tells `calque status` of its parts: one for each part, kept fresh in the state folder.

A record is good while its process lives. The last one of a part that failed stays, so that its reason can be read.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calque.control.process_locks import holder
from calque.model.part_states import FAILED, Failing
from calque.model.state_places import SourcePlaces, TargetPlaces
from calque.ports.records import Json, Records
from calque.state_files import require_room, state_error
from calque.wiring.wiring import Wiring

if TYPE_CHECKING:
    from calque.engine.exact_reads.progress import ReadTotals
    from calque.engine.sides.copy_progress import Progress
    from calque.model.ledger import Epoch
    from calque.model.names import EventId

FRESH_SECONDS = 5.0
"""Seconds after which a record that was not refreshed says that its process is silent, or gone."""
UNREAD = "unread"
"""The key for tables of a catalog without a log that can't be looked at, each with the reason."""


def tell(control: Records, name: str, state: str, last_error: str | None, **details: Json) -> None:
    """Write the record called `name`, with this process's id and the time. `state` is one of the states that the status
    contract has."""
    record: dict[str, Json] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "at": time.time(),
        "state": state,
        "last_error": last_error,
    }
    control.put(name, record | details)


def iso(at: float | None) -> str | None:
    """Return the time `at` (seconds since 1970) in UTC as ISO 8601; None for None."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def rounded(number: float | None) -> float | None:
    """Return the number with one digit behind the point; None for None."""
    return None if number is None else round(number, 1)


def failing_of(failing: Failing | None) -> Json:
    """Return what the status says of a part that fails; None for one that does not."""
    if failing is None:
        return None
    return {"since": iso(failing.since), "attempts": failing.attempts, "next": iso(failing.next)}


def target_record(wiring: Wiring, target: str) -> Mapping[str, Any]:
    places = TargetPlaces(target)
    return current_record(wiring, places.status_record, places.role)


def position_of(wiring: Wiring, target: str, epoch: Epoch | None) -> EventId | None:
    """Return the target's position; None before its first epoch.

    It is the event of the last epoch, `epoch`, or a later event that a process has told for that same epoch: events of
    calque's own objects move the position without an epoch. The process may be gone.
    """
    if epoch is None:
        return None
    record: Mapping[str, Any] = wiring.control.read(TargetPlaces(target).status_record) or {}
    passed = record.get("position") if record.get("epoch") == epoch.epoch else None
    return max(epoch.event_id, passed or 0)


def is_running(wiring: Wiring, target: str) -> bool:
    """Tell whether a process replicates to the target now."""
    return target_record(wiring, target)["state"] not in ("stopped", FAILED)


def capture_record(wiring: Wiring, source: SourcePlaces) -> Mapping[str, Any]:
    return current_record(wiring, source.status_record, source.role)


def current_record(wiring: Wiring, name: str, role: str) -> Mapping[str, Any]:
    """Return a part's record, with at least `state` and `last_error`, as it is true now.

    A part whose process is gone has stopped, unless it failed. A process that has the role and has told nothing yet is
    starting. A silent one gets the silence as its error.
    """
    record: Mapping[str, Any] = wiring.control.read(name) or {}
    age = time.time() - float(record.get("at", 0))
    pid = holder(wiring.state, role)
    if record.get("host") == socket.gethostname() or not record:
        if pid is None:
            return ended(record)
        if record.get("pid") != pid:
            return {"state": "starting", "last_error": None}
        if age > FRESH_SECONDS:
            silent = f"Process {pid} has told nothing for {age:.0f} s: {why_silent(wiring.state)}"
            return {**record, "last_error": record["last_error"] or silent}
        return record
    return record if age < FRESH_SECONDS else ended(record)


def why_silent(state: Path) -> str:
    """Return why a process on this host may have told nothing: the state folder can't be written, or the process
    hangs."""
    try:
        require_room(state)
    except OSError as error:
        return str(state_error(f"Nothing can be written below {state}", state, error.strerror or str(error), error))
    return "it hangs, or can't write to the state folder"


def ended(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if record.get("state") == FAILED:
        return {"state": FAILED, "last_error": record.get("last_error")}
    return {"state": "stopped", "last_error": None}


def reading_of(headway: ReadTotals | None, copying: Progress | None) -> Json:
    """Return what the status says of exact reads; None where none is under way. Bytes count as done once their table is
    shown. The known total is these bytes and those of copies under way."""
    if headway is None:
        return None
    bytes_to_copy = copying.bytes - copying.bytes_done if copying is not None else 0
    return {
        "tables": headway.tables,
        "tables_done": headway.tables_done,
        "partitions": headway.partitions,
        "partitions_done": headway.partitions_done,
        "bytes": headway.bytes_done + bytes_to_copy,
        "bytes_done": headway.bytes_done,
        "ends_at": None if headway.ends_ns is None else round(headway.ends_ns / 1e9, 1),
    }


def copying_of(progress: Progress | None) -> Json:
    """Return what the status says of copies; None where none is under way. `ends_at` is an estimate in seconds since
    1970."""
    if progress is None:
        return None
    return {
        "files": progress.files,
        "bytes": progress.bytes,
        "files_done": progress.files_done,
        "bytes_done": progress.bytes_done,
        "ends_at": None if progress.ends_ns is None else round(progress.ends_ns / 1e9, 1),
    }
