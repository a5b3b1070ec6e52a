"""Answers for users about the states of all of one target's tables. They are not exact while windows run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import nsmallest

from calque.core.records.lifecycle import ASIDE, RECORDED
from calque.engine.sides.table_states import TableStates
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, TableName


def counts(tables: TableStates) -> dict[str, int]:
    """Return the number of tables in each state that users know. Not exact while windows run."""
    counts_by_state = dict.fromkeys((state.value for state in TableState), 0)
    others = [status for name in tuple(tables.not_live) if (status := tables.rows.get(name)) is not None]
    for status in others:
        counts_by_state[RECORDED[status.state].value] += 1
    counts_by_state[TableState.LIVE.value] = len(tables.rows) - len(others)
    return counts_by_state


def behind(tables: TableStates, position: EventId) -> list[tuple[EventId, TableName]]:
    """Return the tables that are not live and show a state before `position`, each with the event that it shows. Not
    exact while windows run."""
    shown_names = [name for name in tuple(tables.not_live) if (row := tables.rows.get(name)) and row.shows is not None]
    shown = ((tables.shown_or_none(name), name) for name in shown_names)
    return [(event, name) for event, name in shown if event is not None and event < position]


def ahead(tables: TableStates) -> list[TableName]:
    """Return the tables that show an event beyond the cursor."""
    return [name for name in tables.rows if tables.state(name) not in ASIDE and tables.shown(name) > tables.cursor]


def find(
    tables: TableStates, takes: Callable[[TableName], bool], state: str, offset: int, limit: int
) -> tuple[int, list[TableRow]]:
    """Return the number of tables that `takes` is true of and that are in `state` (as users know it; empty: in any),
    and `limit` of their rows behind the first `offset`, in the order of names. A row of a live table shows the cursor
    or a later event. Not exact while windows run."""
    found = names_in(tables, takes, state)
    return len(found), rows_of(tables, nsmallest(offset + limit, found)[offset:])


def find_all(tables: TableStates, takes: Callable[[TableName], bool], state: str) -> list[TableRow]:
    """Return the rows of all tables that `find` counts, in no order. Not exact while windows run."""
    return rows_of(tables, names_in(tables, takes, state))


def names_in(tables: TableStates, takes: Callable[[TableName], bool], state: str) -> list[TableName]:
    known = tuple(tables.rows) if state in ("", TableState.LIVE.value) else tuple(tables.not_live)
    named = ((name, tables.rows.get(name)) for name in known if takes(name))
    return [name for name, row in named if row and state in ("", RECORDED[row.state].value)]


def rows_of(tables: TableStates, names: Iterable[TableName]) -> list[TableRow]:
    chosen = ((name, tables.rows.get(name)) for name in names)
    return [replace(row.row(name), shows=tables.shown_or_none(name)) for name, row in chosen if row]


def recorded(tables: TableStates, names: Iterable[TableName] | None = None) -> list[TableRow]:
    """Return the rows of the tables `names` as users know them; without names those of all tables."""
    items = list(tables.rows.items()) if names is None else [(name, tables.rows[name]) for name in names]
    return [status.row(name) for name, status in items]
