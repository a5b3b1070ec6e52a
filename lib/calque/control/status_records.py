"""What a process tells of its parts in the state folder, for `calque status`: one record for each, kept fresh.

A record is good while its process lives. The last one of a part that failed stays, so that its reason can be read.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calque.control.process_locks import holder
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
FAILED = "failed"
HELD_BACK = ("starting", "bootstrapping", "running")
"""States in which a target that an operator holds back is paused."""


UNREAD = "unread"
"""Tables of a catalog without a log that can't be looked at, each with the reason."""


def tell(control: Records, name: str, state: str, last_error: str | None, **details: Json) -> None:
    """Write the record of that name. `state` is one of the contract's."""
    record: dict[str, Json] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "at": time.time(),
        "state": state,
        "last_error": last_error,
    }
    control.put(name, record | details)


def target_record(wiring: Wiring, target: str) -> Mapping[str, Any]:
    places = TargetPlaces(target)
    return current_record(wiring, places.status_record, places.role)


def position_of(wiring: Wiring, target: str, epoch: Epoch | None) -> EventId | None:
    """The target's position: the ledger's, or what a process told, even one that is gone, of events of calque's own
    that came after that epoch."""
    if epoch is None:
        return None
    record: Mapping[str, Any] = wiring.control.read(TargetPlaces(target).status_record) or {}
    passed = record.get("position") if record.get("epoch") == epoch.epoch else None
    return max(epoch.event_id, passed or 0)


def is_running(wiring: Wiring, target: str) -> bool:
    """Whether a process replicates to the target now."""
    return target_record(wiring, target)["state"] not in ("stopped", FAILED)


def capture_record(wiring: Wiring, source: SourcePlaces) -> Mapping[str, Any]:
    return current_record(wiring, source.status_record, source.role)


def current_record(wiring: Wiring, name: str, role: str) -> Mapping[str, Any]:
    """The record, at least `state` and `last_error`, as it is true now: a process that is gone has stopped, whatever it
    told last, and one that has told nothing yet is starting."""
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
    """Where a file can't be written there, because of that."""
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
    """What the status tells of exact reads. Bytes count when their table is shown; known are those, and what is being
    copied."""
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
    """What the status tells of copies; `ends_at` is in seconds since the epoch."""
    if progress is None:
        return None
    return {
        "files": progress.files,
        "bytes": progress.bytes,
        "files_done": progress.files_done,
        "bytes_done": progress.bytes_done,
        "ends_at": None if progress.ends_ns is None else round(progress.ends_ns / 1e9, 1),
    }
