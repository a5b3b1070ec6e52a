"""Small files of a dump that say how far dumping and loading got.

`_finished_dump` and `_finished_load` are empty. `_events_dump` counts the events of an increment. `_tables/<db>` names
the tables in scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from calque.core.events.decode import Undecodable, parsed
from calque.model.names import EventId

FINISHED = b""


@dataclass(frozen=True, slots=True)
class EventsDump:
    """The progress of an increment: the id of the newest event that it considered, and the number of events in it."""

    last_event: EventId
    events: int
    batched: bool = True


def events_dump_text(progress: EventsDump) -> str:
    fields = {
        "lastReplId": progress.last_event,
        "eventsDumpedCount": progress.events,
        "eventsBatched": progress.batched,
    }
    return orjson.dumps(fields).decode() + "\n"


def read_events_dump(content: bytes) -> EventsDump:
    """Return the content of an `_events_dump`. Raises `Undecodable`."""
    fields = parsed(content, "_events_dump")
    last, count = fields.get("lastReplId"), fields.get("eventsDumpedCount", 0)
    if type(last) is not int or type(count) is not int:
        raise Undecodable("_events_dump has no lastReplId")
    return EventsDump(last, count, fields.get("eventsBatched") is True)


def tables_text(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(names))


def read_tables(text: str) -> frozenset[str]:
    return frozenset(line.strip().lower() for line in text.splitlines() if line.strip())
