"""The JSON objects by which the page knows problems, sources, targets, tables and links."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

from calque.control.actions import OperatorAction
from calque.control.status_records import copying_of, reading_of, rounded
from calque.model.ledger import DatabaseRow, FunctionRow, NotLiveReason, TableRow, TableState
from calque.model.part_states import Failing
from calque.plugins.page.run.folder_facts import SHOWN, seconds_of
from calque.plugins.page.run.table_sizes import TableSize
from calque.ports.records import Json
from calque.serve.advice import aside_advice
from calque.serve.known_facts import AsideObject, LostEvents
from calque.serve.problems import Problem
from calque.serve.samples import CaptureSample, ChannelSample, SourceSample, TargetSample, VerifiedSample
from calque.serve.table_lag import lagging_of
from calque.streams.target import TargetReplication

PROBLEM_FIELDS = tuple(field.name for field in fields(Problem))
NO_CAPTURE = CaptureSample(state="", problem=None, reachable=False, head=None, last=None)


def problem_document(problem: Problem) -> dict[str, Json]:
    document: dict[str, Json] = {name: getattr(problem, name) for name in PROBLEM_FIELDS}
    return {**document, "severity": problem.severity.name.lower(), "failing": failing_document(problem.failing)}


def failing_document(failing: Failing | None) -> Json:
    if failing is None:
        return None
    return {"since": failing.since, "attempts": failing.attempts, "next": failing.next}


def source_document(source: SourceSample) -> dict[str, Json]:
    capture = source.capture or NO_CAPTURE
    return {
        "name": source.name,
        "captured_here": source.capture is not None,
        "state": capture.state or None,
        "problem": capture.problem,
        "failing": failing_document(capture.failing),
        "reachable": capture.reachable if source.capture is not None else None,
        "head": capture.head,
        "journal": capture.last,
        "lag_seconds": round(capture.lag_seconds, 1),
        "newest_at": capture.newest_at,
    }


def channel_document(channel: ChannelSample, at: str) -> dict[str, Json]:
    return {
        "name": channel.name,
        "at": at,
        "state": channel.state,
        "problem": channel.problem,
        "failing": failing_document(channel.failing),
        "lag_events": channel.lag_events,
    }


def target_document(look: TargetSample, part: TargetReplication, source: CaptureSample | None) -> dict[str, Json]:
    """Return the target as the page shows it. Where no replica is open, position, epoch and lag are those that were
    reported last. `as_of` is the time whose source the target shows whole; None while the source does not say what it
    has. A target that never had an epoch has `epoch` None."""
    position, epoch, now = look.position, look.epoch, time.time()
    events, seconds = look.lag_events, look.lag_seconds
    if position is None:
        position, epoch = part.report.last_known()
        events = max((part.stream.head_times.newest() or 0) - position, 0) if position is not None else 0
        seconds = part.stream.head_times.lag_seconds(position, now) if position is not None else 0.0
    is_source_known = source is not None and source.reachable
    return {
        "name": look.name,
        "source": part.stream.name,
        "state": look.state,
        "problem": look.problem,
        "failing": failing_document(look.failing),
        "reachable": look.reachable,
        "position": position,
        "epoch": epoch,
        "published_at": seconds_of(look.published_at) if look.published_at else None,
        "as_of": now - seconds if position is not None and is_source_known else None,
        "lag_events": events,
        "lag_seconds": round(seconds, 1),
        "events_per_second": rounded(look.events_per_second),
        "catches_up_at": look.catches_up_at,
        "tables": dict(look.tables),
        "paused_tables": look.paused_tables,
        "copying": copying_of(look.copying),
        "reading": reading_of(look.reading, look.copying),
        "lagging": lagging_of(look.lagging),
        "verified": verified_document(look.verified),
        "free_bytes": look.free_bytes,
    }


def verified_document(verified: VerifiedSample | None) -> Json:
    return None if verified is None else asdict(verified)


def table_document(part: TargetReplication, row: TableRow, size: TableSize | None) -> dict[str, Json]:
    """Return the table as the page lists it. Its lag counts to the source's newest event."""
    name_at_target, heads = part.current.target.admission().name_at_target(row.name), part.stream.head_times
    newest = heads.newest()
    is_known = row.shows is not None and newest is not None
    return {
        "table": str(row.name),
        "at_target": None if name_at_target == row.name else str(name_at_target),
        "state": row.state.value,
        "shows": row.shows,
        "lag_events": max((newest or 0) - (row.shows or 0), 0) if is_known else None,
        "lag_seconds": round(heads.lag_seconds(row.shows or 0, time.time()), 1) if is_known else None,
        "files": size.files if size is not None else None,
        "bytes": size.bytes if size is not None else None,
        "reason": row.reason,
        "since_event": row.since_event,
    }


def table_advice(target: str, row: TableRow) -> dict[str, Json]:
    """Return what to do about a table that is set aside, and whether its drops are held; empty for any other table."""
    if row.state is not TableState.QUARANTINED:
        return {"what_to_do": "", "command": "", "is_held": False}
    todo, command, _ = aside_advice(aside_table(target, row, None))
    return {"what_to_do": todo, "command": command, "is_held": row.why is NotLiveReason.HELD}


def aside_table(target: str, row: TableRow, since: float | None) -> AsideObject:
    return AsideObject(
        target=target,
        name=str(row.name),
        kind="table",
        reason=row.reason,
        since_event=row.since_event,
        since=since,
        pattern=str(row.name),
        is_held=row.why is NotLiveReason.HELD,
    )


def aside_other(target: str, row: DatabaseRow | FunctionRow, since: float | None) -> AsideObject:
    """Return a database or function that is set aside, with the pattern that releases it."""
    is_function = isinstance(row, FunctionRow)
    return AsideObject(
        target=target,
        name=str(row.name),
        kind="function" if is_function else "database",
        reason=row.reason,
        since_event=row.since_event,
        since=since,
        pattern=str(row.name) if is_function else f"{row.name}.*",
    )


def gap_document(gap: LostEvents) -> dict[str, Json]:
    document: dict[str, Json] = asdict(gap)
    return document


def summary(action: OperatorAction, result: Mapping[str, Any]) -> Json:
    """Return those parts of a comparison's or repair's result that the page shows, lists cut to `SHOWN` entries; None
    for no result."""
    if not result:
        return None
    if action is OperatorAction.REPAIR:
        return {
            "event_id": result["event_id"],
            "tables": list(islice(result["tables"], SHOWN)),
            "left": list(islice(result["left"], SHOWN)),
        }
    return {
        "event_id": result["event_id"],
        "compared": result["compared"].tables,
        "count": len(result["differences"]),
        "differences": list(islice(result["differences"], SHOWN)),
        "set_aside": len(result["set_aside"]),
    }


def documents_of_problems(found: Sequence[Problem], most: int) -> list[Json]:
    return [problem_document(problem) for problem in islice(found, most)]
