"""The lag of tables that show less than their target does. Only the few that are farthest behind are told, so that
neither a status nor a metric grows with the number of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from calque.model.names import EventId, TableName
from calque.ports.records import Json
from calque.serve.lag_clock import HeadTimes

MOST = 20
"""The number of tables that are told at most."""


@dataclass(frozen=True, slots=True)
class TableLag:
    """The lag of one table. `events` and `seconds` count from the first event of the log beyond the one that the table
    shows. That event may be of another table: the first one that concerns this table is not looked for."""

    table: str
    shows: EventId
    events: int
    seconds: float


def table_lags(shown: Iterable[tuple[EventId, TableName]], heads: HeadTimes, now: float) -> tuple[TableLag, ...]:
    """Return the lags of those `MOST` tables that are farthest behind the source's newest event, the farthest first.
    `shown` has tables with the events that they show; tables that show the newest event are left out."""
    newest = heads.newest()
    if newest is None:
        return ()
    lagging = nsmallest(MOST, ((event, name) for event, name in shown if event < newest))
    return tuple(TableLag(str(name), event, newest - event, heads.lag_seconds(event, now)) for event, name in lagging)


def lagging_of(lags: Iterable[TableLag]) -> Json:
    """Return the lags as the status record has them."""
    return [
        {"table": lag.table, "shows": lag.shows, "lag_events": lag.events, "lag_seconds": round(lag.seconds, 1)}
        for lag in lags
    ]
