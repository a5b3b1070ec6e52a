"""Done sets as rows: of `SHOW SETS DONE`, of `calque done`, and for Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from calque.model.names import TableName
from calque.plugins.marks.core import Done, NotDone, Verdict
from calque.plugins.marks.model import Mark

SET_FIELDS = ("table", "partition", "event_id", "marked_at", "expires_at")
"""The fields of a set in a list."""


def set_row(mark: Mark, table: TableName) -> dict[str, Any]:
    """Return a set as a row of JSON values by field. `table` is the name that its table has by now; keys of the
    partition are in lexical order."""
    return {
        "table": str(table),
        "partition": mark.condition,
        "event_id": mark.event_id,
        "marked_at": time_text(mark.marked_at_ns),
        "expires_at": time_text(mark.expires_at_ns),
    }


def verdict_row(table: TableName, condition: str, target: str | None, verdict: Verdict) -> dict[str, Any]:
    """Return the answer to whether a set is done as a row. Its `event_id` is the mark's, its `shows` the event that the
    target shows."""
    done = verdict if isinstance(verdict, Done) else None
    return {
        "table": str(done.table if done else table),
        "partition": condition,
        "target": target,
        "done": done is not None,
        "state": "done" if done else verdict.state if isinstance(verdict, NotDone) else "outside",
        "reason": verdict.reason if isinstance(verdict, NotDone) else "",
        "event_id": verdict.mark.event_id if verdict.mark is not None else None,
        "shows": done.shows if done else None,
        "definitions_only": done.definitions_only if done else False,
    }


def time_text(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")
