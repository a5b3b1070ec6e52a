"""The document of `calque status --json`: where sources, journals and targets are, whether `run` runs or not.

Truth comes from the ledgers, the journal and the source; what only the running process knows (tables being read, the
last error) from the record that it refreshes in the state folder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import datetime
from typing import Any

from calque.control.identity import recorded
from calque.control.pause_rules import is_paused as is_target_paused
from calque.control.processes import processes
from calque.control.status_records import capture_record, position_of, target_record
from calque.control.sweep_record import SweepRecord
from calque.control.verify_record import newest_verification
from calque.core.records.gap_states import GapState, TargetGaps, states_of
from calque.core.records.reached_state import is_paused
from calque.errors import CalqueError, StateUnusable, Unavailable
from calque.model.gaps import Gap
from calque.model.ledger import StateRow, TableRow, TableState, count_bridges, count_parts, count_rereads
from calque.model.names import EventId, Span, TableName
from calque.model.part_states import HELD_BACK
from calque.ports import EventLog, Ledger
from calque.wiring.source import SourceWiring
from calque.wiring.wiring import Wiring

OUT = (TableState.UNKNOWN, TableState.READING, TableState.STAGING, TableState.WAITING)
"""The states of tables that the status lists as set aside."""
PATIENCE_SECONDS = 3.0
Document = dict[str, Any]
StatusParts = Mapping[str, Callable[[Wiring], Mapping[str, Any]]]
"""Functions that make further values of the document, by its keys."""


def snapshot(wiring: Wiring, parts: StatusParts | None = None) -> Document:
    """Return the whole document, with the keys of plugins. A source that does not answer is waited for at most
    `PATIENCE_SECONDS`, and is a fact in the document, no error."""
    with ExitStack() as stack:
        logs = {
            name: stack.enter_context(closing(source.impatient_log(PATIENCE_SECONDS)))
            for name, source in wiring.sources.items()
        }
        return document(wiring, logs, parts or {})


def document(wiring: Wiring, logs: Mapping[str, EventLog], parts: StatusParts) -> Document:
    """Return the whole document; `logs` are the sources' logs by their names. `source`, `capture` and `journal`
    describe the first source, as a rule the only one; null where there is no source, as before the first link."""
    sources = [of_source(wiring, source, logs[name]) for name, source in wiring.sources.items()]
    heads = {name: source["source"]["head"] for name, source in zip(wiring.sources, sources, strict=True)}
    targets: Document = {}
    for name in wiring.config.targets:
        source_name = wiring.config.source_of(name).name
        of_one = of_target(wiring, name, heads[source_name], logs[source_name])
        targets[name] = {"source": source_name, **of_one}
    return {
        **(sources[0] if sources else dict.fromkeys(("source", "capture", "journal"))),
        "sources": sources,
        "targets": targets,
        "identity": recorded(wiring),
        **{key: part(wiring) for key, part in parts.items()},
        "processes": [
            {"pid": one.pid, "host": one.host, "targets": list(one.targets), "serves": one.serves or None}
            for one in processes(wiring.control)
        ],
    }


def of_source(wiring: Wiring, source: SourceWiring, log: EventLog) -> Document:
    """Return what is known of one source, its capture and its journal."""
    try:
        head: EventId | None = log.current()
    except CalqueError:
        head = None
    capture = capture_record(wiring, source.places)
    inserts = source.tells_inserts(log) if head is not None else None
    return {
        "source": {"name": source.plug.name, "head": head, "reachable": head is not None, "dml_events": inserts},
        "capture": {
            "state": capture["state"],
            "last_error": capture["last_error"],
            "failing": capture.get("failing"),
            "newest_at": capture.get("newest_at"),
            "pinned_bytes": capture.get("pinned_bytes"),
            "pins": capture.get("pins"),
            "kept_seconds": capture.get("kept_seconds"),
        },
        "journal": of_journal(wiring, source),
    }


def of_journal(wiring: Wiring, source: SourceWiring) -> Document:
    """Return the ends of the journal and its gaps; null for the ends, and the reason, where the journal can't be
    read."""
    journal = source.side().journal
    try:
        facts = {"last": journal.last(), "oldest": journal.oldest(), "gaps": gaps_of(wiring, source)}
    except (Unavailable, StateUnusable) as error:
        return {"last": None, "oldest": None, "gaps": [], "last_error": str(error)}
    return {**facts, "last_error": None}


def gaps_of(wiring: Wiring, source: SourceWiring) -> list[Document]:
    """Return the gaps in the source's log, each with its state over all targets; then, with their targets, gaps of one
    target whose events the journal let go of before the target had them. A target without a ledger begins behind all
    gaps."""
    gaps = source.gaps().recorded()
    ledgers = {name: wiring.ledger(name) for name in wiring.config.targets_of(source.plug.name)}
    targets = {
        name: gaps_at_target for name, ledger in ledgers.items() if (gaps_at_target := target_gaps(ledger)) is not None
    }
    states = states_of(gaps, targets.values())
    return [
        *(gap_of(gap, states[gap.number]) for gap in gaps),
        *(
            {**gap_of(target.own, target.state_of_own(target.own, gaps)), "target": name}
            for name, target in targets.items()
            if target.own is not None
        ),
    ]


def target_gaps(ledger: Ledger) -> TargetGaps | None:
    """Return the gaps as the target's ledger knows them; None for a target that has no ledger yet."""
    records, rows = ledger.records(), ledger.tables()
    return TargetGaps.of(records, rows.values()) if records or rows else None


def gap_of(gap: Gap, state: GapState) -> Document:
    """Return a gap as a JSON object. `from` is the lower event id, also where the log went back."""
    first, last = sorted(gap.span)
    return {"from": first, "to": last, "state": state.value, "cause": gap.cause.value, "found_at": gap.found_at}


def of_target(wiring: Wiring, name: str, head: EventId | None, log: EventLog) -> Document:
    """Return what is known of a target. Values that only the ledger or the journal knows are null where these can't be
    read."""
    try:
        return as_recorded(wiring, name, head, log)
    except (Unavailable, StateUnusable) as error:
        report = target_record(wiring, name)
        return {
            "state": state_of(wiring, name, report),
            **dict.fromkeys(("position", "lag_events", "lag_seconds", "epoch", "published_at")),
            "tables": dict.fromkeys(state.value for state in TableState),
            "set_aside": [],
            "quarantined": [],
            **dict.fromkeys(("bridges", "parts", "rereads", "disarmed")),
            "paused_tables": None,
            **as_told(report),
            **swept(wiring, name),
            "verified": newest_verification(wiring.control, name),
            "last_error": report["last_error"] or str(error),
        }


def as_recorded(wiring: Wiring, name: str, head: EventId | None, log: EventLog) -> Document:
    """Return what the ledger and the process's record say of a target. Raises `Unavailable` and `StateUnusable`."""
    target = wiring.target(name)
    ledger, source = target.ledger(), target.source
    epoch, epochs = ledger.last_epoch(), ledger.epochs()
    position = position_of(wiring, name, epoch)
    rows = ledger.tables().values()
    report = target_record(wiring, name)
    busy = report.get("states", {})
    tables = [row for row in rows if isinstance(row, TableRow)]
    states = {row: state_of_table(row, busy) for row in tables}
    counts = {state.value: 0 for state in TableState} | Counter(states.values())
    newest = max([event for event in (head, source.side().journal.last()) if event is not None], default=None)
    lag = max(newest - position, 0) if newest is not None and position is not None else 0
    return {
        "state": state_of(wiring, name, report),
        "position": position,
        "lag_events": lag,
        "lag_seconds": lag_seconds(source, position, head, log) if lag else 0.0,
        "epoch": epoch.epoch if epoch else None,
        "tables": counts,
        "set_aside": [set_aside(row, states[row]) for row in tables if row.state in OUT],
        "quarantined": [quarantined(row) for row in rows if row.state is TableState.QUARANTINED],
        "bridges": count_bridges(epochs),
        "parts": count_parts(epochs),
        "rereads": count_rereads(epochs),
        "disarmed": sum(len(epoch.disarmed) for epoch in epochs),
        "paused_tables": sum(is_paused(row) for row in tables),
        "published_at": epoch.published_at if epoch else None,
        **as_told(report),
        **swept(wiring, name),
        "verified": newest_verification(wiring.control, name),
        "last_error": report["last_error"],
    }


def as_told(report: Mapping[str, Any]) -> Document:
    """Return those values of a target's document that only its running process tells; null where it tells none."""
    keys = ("failing", "events_per_second", "catches_up_at", "free_bytes", "copying", "reading", "window")
    return {**{key: report.get(key) for key in keys}, "lagging": report.get("lagging", [])}


def swept(wiring: Wiring, name: str) -> Document:
    """Return what the last sweep found below the target's warehouse and left there: unknown directories with their
    bytes, and the number of records that wait. All numbers are 0 before the first sweep."""
    record = SweepRecord.of_json(wiring.control.read(wiring.target(name).places.sweep_record))
    unknown = {"directories": record.unknown, "bytes": record.unknown_bytes}
    return {"unknown": unknown, "records": record.records}


def tables_at(wiring: Wiring, name: str, takes: Callable[[TableName], bool]) -> list[Document]:
    """Return the tables of the target's ledger that `takes` wants, in the order of their names at the source.
    `at_target` is the name at the target where it differs, else null."""
    busy = target_record(wiring, name).get("states", {})
    admission = wiring.config.target(name).admission()
    rows = [row for row in wiring.ledger(name).tables().values() if isinstance(row, TableRow) and takes(row.name)]
    return [
        {
            **set_aside(row, state_of_table(row, busy)),
            "at_target": None if (at_target := admission.name_at_target(row.name)) == row.name else str(at_target),
            "since_event": row.since_event,
        }
        for row in sorted(rows, key=lambda row: row.name)
    ]


def state_of(wiring: Wiring, name: str, report: Mapping[str, Any]) -> str:
    """Return the state that the process tells of the target; "paused" where one runs and an operator has paused the
    target."""
    state = str(report["state"])
    return "paused" if state in HELD_BACK and is_target_paused(wiring.control, name) else state


def lag_seconds(source: SourceWiring, position: EventId | None, head: EventId | None, log: EventLog) -> float:
    """Return how many seconds ago the oldest event came that the target does not show; 0 where it shows all. Events
    that are not captured yet count from the first of them."""
    journal = source.side().journal
    last = journal.last()
    if position is None:
        return 0.0
    if last is None or last <= position:
        return since_logged(log, position) if head is not None and head > position else 0.0
    first = journal.oldest()
    if first is None:
        # All that the target lacks was lost in a gap: it counts from when that was found.
        gaps = source.gaps().recorded()
        return round(max(time.time() - seconds_of(gaps[-1]), 0.0), 1) if gaps else 0.0
    oldest = max(position, first - 1)
    entries = journal.entries(Span(oldest, oldest + 1))
    return round(max(time.time() - entries[0].event_time, 0.0), 1) if entries else 0.0


def since_logged(log: EventLog, position: EventId) -> float:
    """Return how many seconds ago the source logged the first event after `position`; 0 where it does not answer."""
    try:
        events = log.read(position, 1)
    except CalqueError:
        return 0.0
    return round(max(time.time() - events[0].event_time, 0.0), 1) if events else 0.0


def seconds_of(gap: Gap) -> float:
    return datetime.fromisoformat(gap.found_at).timestamp()


def state_of_table(row: TableRow, busy: Mapping[str, str]) -> str:
    """Return the table's state: "waiting" where an operator has paused it, else what the process tells that works on
    it, else what the ledger says."""
    if is_paused(row):
        return TableState.WAITING.value
    return busy.get(str(row.name), row.state.value)


def set_aside(row: TableRow, state: str) -> Document:
    return {"table": str(row.name), "state": state, "shows": row.shows, "reason": row.reason}


def quarantined(row: StateRow) -> Document:
    return {"table": str(row.name), "since_event": row.since_event, "reason": row.reason}
