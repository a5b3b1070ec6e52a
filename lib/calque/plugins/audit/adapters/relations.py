"""SQL over the history of targets: the relations of the schema `calque`, over ledgers, journals and kept rows.

A statement sees one version of everything. Each table is opened once, a ledger before its history, so that a row that
moves from one to the other meanwhile is neither lost nor there twice. The engine reads Arrow's data sets: only the
columns and row groups of a table that a statement needs, batch by batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.errors import Refused, StatementSyntaxError, Unavailable
from calque.model.ledger import DatabaseRow, StateRow, shown_event, state_key
from calque.model.names import EventId, Span
from calque.plugins.audit.adapters.history import (
    KEPT_EPOCHS,
    KEPT_EVENTS,
    EventHistory,
    TargetHistory,
    kept_events,
    kept_upto,
)
from calque.plugins.audit.adapters.hop_rows import HOPS, HOPS_OF, connection

RELATIONS = ("epochs", "hops", "events", "tables", "lag")
OF_EVENTS = frozenset({"events", "lag"})
AT_ONCE = 10_000
STATES = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("target", "kind", "database_name", "table_name", "state")),
        pa.field("shows", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("since_event", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class AuditedTarget:
    name: str
    source: str
    ledger: DeltaLedger
    history: TargetHistory


class JournalOfRows(Protocol):
    """A journal of any format, read as Arrow rows."""

    def oldest(self) -> EventId | None: ...

    def last(self) -> EventId | None: ...

    def rows(self, span: Span) -> pa.Table:
        """Return the rows of the span without their messages."""


@dataclass(frozen=True, slots=True)
class AuditedSource:
    """A source with its journal and its kept events. `gap` is the number of the newest gap in its log."""

    name: str
    journal: JournalOfRows
    history: EventHistory
    gap: int = 0


def query(
    text: str,
    parameters: Sequence[object],
    relations: Collection[str],
    targets: Sequence[AuditedTarget],
    sources: Sequence[AuditedSource],
) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
    """Return the columns and the rows of a statement over these relations. Raises `Refused` for a statement that can't
    be carried out, and `Unavailable`, also while rows are read."""
    engine = connection()
    try:
        for statement in definitions(engine, relations, targets, sources):
            engine.execute(statement)
        reader = engine.execute(text, list(parameters)).to_arrow_reader(AT_ONCE)
    except (duckdb.Error, OSError) as error:
        engine.close()
        raise as_own(error) from error
    return tuple(reader.schema.names), rows_of(engine, reader)


def rows_of(engine: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader) -> Iterator[tuple[object, ...]]:
    try:
        for batch in reader:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        raise as_own(error) from error
    finally:
        engine.close()


def as_own(error: Exception) -> Refused | Unavailable:
    """Return the engine's error as an error of calque, with the first line of its text. A syntax error also has the
    engine's picture of the place."""
    first, _, excerpt = str(error).strip().partition("\n")
    kind, _, text = first.rpartition("Error: ")
    match error:
        case duckdb.ParserException():
            todo = "Mend it, or look in docs/audit.md for examples"
            return StatementSyntaxError("The statement can't be parsed", text, todo, excerpt.strip("\n"))
        case duckdb.OutOfMemoryException() | duckdb.IOException() | OSError() | duckdb.InvalidInputException():
            todo = "Ask for less of it, by target, table or time, or try again"
            return Unavailable("The statement was not carried out", text or kind, todo)
    todo = "Look for relations and columns in docs/audit.md"
    return Refused("The statement can't be carried out", text or kind, todo)


def definitions(
    engine: duckdb.DuckDBPyConnection,
    relations: Collection[str],
    targets: Sequence[AuditedTarget],
    sources: Sequence[AuditedSource],
) -> Iterator[str]:
    """Register the data of these relations with the engine, and return the statements that make their views, in
    order."""
    if "tables" in relations or OF_EVENTS & set(relations):
        engine.register("states", pa.Table.from_pylist([*states_of(targets)], schema=STATES))
        yield TABLES
    if relations == {"tables"}:
        return
    yield from of_ledgers(engine, targets)
    if OF_EVENTS & set(relations):
        yield from of_journals(engine, targets, sources)


def of_ledgers(engine: duckdb.DuckDBPyConnection, targets: Sequence[AuditedTarget]) -> Iterator[str]:
    """Return the statements for the views of epochs and hops: those in the ledgers, and older ones that were kept."""
    epochs, hops = [], []
    for number, target in enumerate(targets):
        rows = target.ledger.view()
        kept = kept_upto(target.history.epochs)
        first = max(rows.first, kept + 1)
        registered(
            engine,
            number,
            {
                "epochs": rows.epochs,
                "objects": rows.objects,
                "kept_epochs": target.history.epochs.dataset(target.history.epochs.snapshot()),
                "kept_hops": target.history.hops.dataset(target.history.hops.snapshot()),
            },
        )
        name = quoted(target.name)
        bounds = f"WHERE epoch BETWEEN {first} AND {rows.last}"
        older = f"WHERE epoch < {first} AND epoch <= {rows.last}"
        columns = ", ".join(f'"{column}"' for column in KEPT_EPOCHS.names)
        epochs += [
            f"SELECT {name} AS target, {columns} FROM epochs_{number} {bounds}",
            f"SELECT {name} AS target, {columns} FROM kept_epochs_{number} {older}",
        ]
        hop_columns = ", ".join(f'"{column}"' for column in HOPS.names)
        fresh = HOPS_OF.format(objects=f"objects_{number}", first=first, last=rows.last)
        hops += [
            f"SELECT {name} AS target, {hop_columns} FROM ({fresh})",
            f"SELECT {name} AS target, {hop_columns} FROM kept_hops_{number} {older}",
        ]
    yield f"CREATE VIEW every_epoch AS {' UNION ALL '.join(epochs)}"
    yield f"CREATE VIEW every_hop AS {' UNION ALL '.join(hops)}"
    yield EPOCHS
    yield HOPS_VIEW


def of_journals(
    engine: duckdb.DuckDBPyConnection, targets: Sequence[AuditedTarget], sources: Sequence[AuditedSource]
) -> Iterator[str]:
    """Return the statements for the views of events and lags: events in the journals, and older ones that were kept."""
    events = []
    for number, source in enumerate(sources):
        fresh_rows, first, last = rows_of_journal(source)
        kept_rows = source.history.table.dataset(source.history.table.snapshot())
        registered(engine, number, {"journal": fresh_rows, "kept_events": kept_rows})
        columns = ", ".join(f'"{column}"' for column in KEPT_EVENTS.names)
        followers = ", ".join(quoted(target.name) for target in targets if target.source == source.name)
        both = f"unnest([{followers}]) AS target, {columns}"
        for name, where in (
            (journal_rows(f"journal_{number}", source.gap, isinstance(fresh_rows, ds.Dataset), first, last), ""),
            (f"kept_events_{number}", f"WHERE gap < {source.gap} OR event_id < {first}"),
        ):
            events.append(f"SELECT {quoted(source.name)} AS source, {both} FROM {name} {where}")
    yield f"CREATE VIEW every_event AS {' UNION ALL '.join(events)}"
    yield EVENTS
    yield LAG


def registered(engine: duckdb.DuckDBPyConnection, number: int, data: Mapping[str, object]) -> None:
    for name, rows in data.items():
        engine.register(f"{name}_{number}", rows)


def rows_of_journal(source: AuditedSource) -> tuple[ds.Dataset | pa.Table, int, int]:
    """Return the journal's rows as the engine reads them, the first event that no history keeps, and the journal's last
    event. A Delta journal is read from its files. Of a journal in a topic the events that are not kept are read into
    memory."""
    oldest, last = source.journal.oldest(), source.journal.last()
    if oldest is None or last is None:
        return KEPT_EVENTS.empty_table(), 1, 0
    first = source.history.begin(oldest, source.gap)
    if isinstance(source.journal, DeltaJournal):
        return source.journal.dataset(), first, last
    rows = source.journal.rows(Span(first - 1, last)) if first <= last else None
    return (KEPT_EVENTS.empty_table() if rows is None else kept_events(rows, source.gap)), first, last


def journal_rows(name: str, gap: int, is_whole: bool, first: int, last: int) -> str:
    """Return the SQL for the journal's rows from `first` to `last`, with the columns of kept events."""
    if not is_whole:
        return name
    return f"""(
        SELECT event_id, event_time, event_type, kind, key_database AS database, key_table AS "table", other_database,
               other_table, len(partitions) AS partitions, facets_only, {gap} AS gap
        FROM {name} WHERE event_id BETWEEN {first} AND {last})"""


def states_of(targets: Sequence[AuditedTarget]) -> Iterator[dict[str, object]]:
    for target in targets:
        for row in target.ledger.tables().values():
            yield {"target": target.name, **state_of(row)}


def state_of(row: StateRow) -> dict[str, object]:
    kind, database, name = state_key(row)
    return {
        "kind": kind,
        "database_name": database,
        "table_name": None if isinstance(row, DatabaseRow) else name,
        "state": row.state.value,
        "shows": shown_event(row),
        "reason": row.reason,
        "since_event": row.since_event,
    }


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


TABLES = "CREATE VIEW calque.tables AS SELECT * FROM states"
EPOCHS = """
    CREATE VIEW calque.epochs AS
    SELECT target, epoch, event_id, from_event_id, CAST(published_at AS TIMESTAMP) AS published_at, kind, tables,
           events, hops, calls, files, bytes, bridges, parts, rereads, gap, digest
    FROM every_epoch
"""
HOPS_VIEW = """
    CREATE VIEW calque.hops AS
    SELECT target, epoch, CAST(published_at AS TIMESTAMP) AS published_at, hop.database AS database_name,
           hop."table" AS table_name, hop.event_id, incarnation, changes, objects, hop.files, hop.bytes,
           coalesce(list_contains(list_transform(bridges, lambda one: one."table" || ' ' || one."to"),
                    hop.database || '.' || hop."table" || ' ' || hop.event_id), false) AS bridge
    FROM every_hop AS hop JOIN every_epoch AS epoch USING (target, epoch)
"""
EVENTS = """
    CREATE VIEW calque.events AS
    WITH positions AS (SELECT target, max_by(event_id, epoch) AS position FROM every_epoch GROUP BY target),
    stops AS (
        SELECT target, database_name, table_name, event_id AS stop, min(epoch) AS epoch,
               min(published_at) AS published_at, any_value(changes) AS changes
        FROM calque.hops GROUP BY target, database_name, table_name, event_id
    ),
    joined AS (
        SELECT event.*, stops.stop, stops.epoch, stops.published_at, changes, position, state, shows, reason,
               facets_only OR event.kind = 'facet' AS is_facet
        FROM (SELECT * EXCLUDE (database, "table"), database AS database_name, "table" AS table_name
              FROM every_event) AS event
        ASOF LEFT JOIN stops ON event.target = stops.target AND event.database_name = stops.database_name
             AND event.table_name = stops.table_name AND event.event_id <= stops.stop
        LEFT JOIN positions ON event.target = positions.target
        LEFT JOIN (SELECT * FROM states WHERE kind = 'table') AS row ON event.target = row.target
             AND event.database_name = row.database_name AND event.table_name = row.table_name
    )
    SELECT target, source, gap, event_id, make_timestamp(event_time * 1000000) AS event_time, event_type, kind,
           database_name, table_name, other_database, other_table, partitions,
           CASE WHEN stop = event_id THEN 'shown'
                WHEN stop IS NOT NULL THEN 'passed_over'
                WHEN position IS NULL OR event_id > position OR (state <> 'live' AND coalesce(shows, -1) < event_id)
                     THEN 'waiting'
                WHEN state IS NULL THEN 'not_taken'
                ELSE 'passed_over' END AS fate,
           CASE WHEN stop = event_id THEN ''
                WHEN is_facet AND (stop IS NOT NULL OR state = 'live') THEN
                     'it changes statistics alone, which ride on the next call'
                WHEN stop IS NOT NULL AND changes = 'read' THEN 'the table was read again at event ' || stop
                WHEN stop IS NOT NULL THEN 'one hop goes past it to event ' || stop
                WHEN position IS NULL OR event_id > position OR (state <> 'live' AND coalesce(shows, -1) < event_id)
                     THEN coalesce(nullif(reason, ''), 'its window has not come yet')
                WHEN state IS NULL THEN 'the target has no such table'
                ELSE 'the target shows its effect without an operation of its own' END AS why,
           stop AS shown_by_event, epoch, published_at
    FROM joined
"""
LAG = """
    CREATE VIEW calque.lag AS
    WITH events AS (
        SELECT target, database, "table", event_id, make_timestamp(event_time * 1000000) AS event_time,
               event_id::HUGEINT * 4294967296 AS place
        FROM every_event
    ),
    stops AS (
        SELECT target, database, "table", epoch, event_id::HUGEINT * 4294967296 + epoch AS place FROM every_hop
    ),
    epochs AS (SELECT target, epoch, CAST(published_at AS TIMESTAMP) AS published_at FROM every_epoch)
    SELECT events.target, events.database AS database_name, events."table" AS table_name, events.event_id, event_time,
           epochs.epoch, published_at, epoch_us(published_at - event_time) / 1000000.0 AS lag_seconds
    FROM events
    ASOF JOIN stops ON events.target = stops.target AND events.database = stops.database
         AND events."table" = stops."table" AND events.place <= stops.place
    JOIN epochs ON stops.target = epochs.target AND stops.epoch = epochs.epoch
"""
"""The SQL that makes the relation `calque.lag`: each event with the epoch by which a target showed it, and the seconds
between. That epoch belongs to the first hop on the table that ended at the event or after it; `place` orders hops by
event, then by epoch. An event that no hop has reached yet has no row."""
