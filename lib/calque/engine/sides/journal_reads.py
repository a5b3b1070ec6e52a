"""Go through messages of the journal without holding more than a bounded weight of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calque.model.journal import Event
from calque.model.names import EventId
from calque.ports import Journal

AT_ONCE = 32 << 20
"""Bytes of messages that one reader holds."""


def messages(journal: Journal, ids: Iterable[EventId], most: int = AT_ONCE) -> Iterator[Event]:
    """The events with these ids, ascending. Few or light ones are one call."""
    wanted = sorted(set(ids))
    while wanted:
        found = journal.events(wanted, most)
        yield from found.values()
        wanted = wanted[len(found) :]
