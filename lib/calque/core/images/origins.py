"""Objects that came from the target itself: one whose path of origins names the target is not carried there
(docs/topologies.md).

For the target such an object does not exist. An event that leaves a table with a path to the target is a drop of the
table there. A table that loses such a path is read. One that always had it is never there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from calque.core.events.decode import Fields, Undecodable, embedded, fields
from calque.core.events.effects import CARRIES_DEFINITION, DEFINES_TABLE, LACKS_DEFINITION
from calque.core.events.keys import mapping
from calque.core.images.image import ORIGIN
from calque.model.journal import Entry, Event, EventKind, Keys
from calque.model.names import EventId, TableName

PARAMETERS = "9"
"""The number of the field `parameters` in Thrift's struct of a table."""


def path_of(parameters: Mapping[str, str] | None) -> frozenset[str]:
    """Return the names of the sources that an object came through."""
    return frozenset(filter(None, (parameters or {}).get(ORIGIN, "").split(",")))


def path_after(event: Event) -> frozenset[str]:
    """Return the path of the table as an event among `CARRIES_DEFINITION` leaves it; empty where the message does not
    say one."""
    try:
        message = fields(event)
        altered = "tableObjAfterJson" if message.get("tableObjAfterJson") is not None else "tableObjJson"
        table: Fields = embedded(message, altered)
        return path_of({ORIGIN: str(mapping(table, PARAMETERS).get(ORIGIN, ""))})
    except Undecodable:
        return frozenset()


def to_ask(
    entries: Iterable[Entry],
    existed: Callable[[TableName], bool],
    shown_event: Callable[[TableName], EventId],
    takes: Callable[[TableName], bool],
) -> list[EventId]:
    """Return the events whose paths `as_carried` needs: those that define a table, and the first of each table that was
    not there. Parameters are those of `as_carried`."""
    event_ids: list[EventId] = []
    visited_tables: set[TableName] = set()
    for entry in entries:
        name, kind = entry.keys.table, entry.keys.kind
        if name is None or kind not in CARRIES_DEFINITION:
            continue
        if not concerns(entry, takes) or entry.event_id <= shown_event(name):
            continue
        if kind in DEFINES_TABLE or (name not in visited_tables and not existed(name)):
            event_ids.append(entry.event_id)
        visited_tables.add(name)
    return event_ids


def as_carried(
    entries: Sequence[Entry],
    existed: Callable[[TableName], bool],
    shown_event: Callable[[TableName], EventId],
    back: Collection[EventId],
    takes: Callable[[TableName], bool],
) -> list[Entry]:
    """Return the entries in the form that concerns the target.

    `existed` tells which tables are there before, each at the event that `shown_event` gives; entries up to it stay as
    they are. `back` are the events of `to_ask` that leave their table with a path to the target. Entries of tables that
    the policy does not take (`takes`) stay as they are.
    """
    now: dict[TableName, bool] = {}
    carried_entries = []

    def is_there(name: TableName) -> bool:
        return now[name] if name in now else existed(name)

    for entry in entries:
        keys = entry.keys
        name, was, kind = keys.table, keys.other, keys.kind
        if name is None or not concerns(entry, takes) or entry.event_id <= shown_event(name):
            carried_entries.append(entry)
            continue
        before = was if was is not None else name
        if entry.event_id in back:
            if is_there(before) and (was is None or takes(was)):
                carried_entries.append(replace(entry, keys=Keys(EventKind.DROP_TABLE, before, shape=keys.shape)))
            now[before] = now[name] = False
        elif kind in DEFINES_TABLE:
            appears = kind is not EventKind.CREATE_TABLE and takes(before) and not is_there(before)
            carried_entries.append(replace(entry, keys=Keys(EventKind.UNKNOWN, name)) if appears else entry)
            now[before], now[name] = False, True
        elif (kind in LACKS_DEFINITION or (name in now and kind in CARRIES_DEFINITION)) and not is_there(name):
            continue
        else:
            carried_entries.append(entry)
            if kind in CARRIES_DEFINITION or kind is EventKind.DROP_TABLE:
                now[name] = kind is not EventKind.DROP_TABLE
    return carried_entries


def concerns(entry: Entry, takes: Callable[[TableName], bool]) -> bool:
    """Tell whether the policy takes the table, under its name before or after the event."""
    return any(takes(name) for name in (entry.keys.table, entry.keys.other) if name is not None)
