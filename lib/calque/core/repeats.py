"""Events of a weak log that share an id: which one row of the journal stands for all of them.

A row says what its events touched, never what they did: in which order they came is not known, so what they touched is
to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from calque.core.keys import keys_of
from calque.model.journal import Event, Keys, Kind
from calque.model.names import TableName

MOST_NAMES = 2
"""A row names so many tables."""
NAMED_ALONE = frozenset({Kind.CREATE_FUNCTION, Kind.DROP_FUNCTION, Kind.DROP_DATABASE})
"""What they did is not found by reading a table or a database of their name."""


def of_one_id(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Events by id, in their order."""
    return (list(found) for _, found in groupby(events, key=lambda event: event.event_id))


def joined(events: Sequence[Event]) -> tuple[Event, Keys] | None:
    """The row for events of one id; None when none can stand for them all. Copies of one event are that event: it
    carries the whole state after it."""
    keyed = [(event, keys_of(event)) for event in dict.fromkeys(events)]
    telling = [(event, keys) for event, keys in keyed if keys.kind is not Kind.NOTHING] or keyed[:1]
    if len(telling) == 1:
        return telling[0]
    if any(keys.table is None or keys.kind in NAMED_ALONE for _, keys in telling):
        return None
    names = list(dict.fromkeys(name for _, keys in telling for name in names_of(keys)))
    if len(names) > MOST_NAMES or (len(names) > 1 and not all(name.table for name in names)):
        return None
    return telling[0][0], Keys(Kind.UNKNOWN, names[0], other=names[1] if len(names) > 1 else None)


def covers(keys: Keys, event: Event) -> bool:
    """Whether a journal's row with these keys stands for the event too."""
    found = keys_of(event)
    if found.kind is Kind.NOTHING:
        return True
    return keys.kind is Kind.UNKNOWN and set(names_of(found)) <= set(names_of(keys)) and found.table is not None


def names_of(keys: Keys) -> list[TableName]:
    return [name for name in (keys.table, keys.other) if name is not None]
