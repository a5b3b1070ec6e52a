"""Which tables show less than their target does, and for how long? The few that are farthest behind, so that neither a
status nor a metric grows with the number of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from calque.model.names import EventId, TableName
from calque.ports.records import Json
from calque.serve.lag_clock import HeadTimes

MOST = 20


@dataclass(frozen=True, slots=True)
class TableLag:
    """`events` and `seconds` count from the first event of the log behind the one that the table shows, of whatever
    table that is: nobody looks for the first one that concerns it."""

    table: str
    shows: EventId
    events: int
    seconds: float


def table_lags(shown: Iterable[tuple[EventId, TableName]], heads: HeadTimes, now: float) -> tuple[TableLag, ...]:
    """Of tables and the events that they show, the `MOST` that are farthest behind the source's newest event, the
    farthest first."""
    newest = heads.newest()
    if newest is None:
        return ()
    lagging = nsmallest(MOST, ((event, name) for event, name in shown if event < newest))
    return tuple(TableLag(str(name), event, newest - event, heads.lag_seconds(event, now)) for event, name in lagging)


def lagging_of(lags: Iterable[TableLag]) -> Json:
    """What the status tells of tables that show less than their target does."""
    return [
        {"table": lag.table, "shows": lag.shows, "lag_events": lag.events, "lag_seconds": round(lag.seconds, 1)}
        for lag in lags
    ]
