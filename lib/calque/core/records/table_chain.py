"""The recent chain of one table: the events that a target shows, those that it passed over and why, those that it
awaits.

The chain is made of journal entries that touch the table and of rows of the ledger. Both forget, so the chain's
beginning is not the table's own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calque.model.journal import Entry, EventKind
from calque.model.ledger import Epoch, ObjectRow
from calque.model.names import EventId, TableName

MAX_EVENT = 2**63 - 1
READ = "read"
"""The kind of a link without an event of the journal: the table was read exactly, at that event id."""


class Fate(StrEnum):
    """The fate of an event at a target."""

    SHOWN = "shown"
    PASSED_OVER = "passed_over"
    WAITING = "waiting"
    BEFORE = "before"
    """The event is older than what the ledger remembers of the table."""


@dataclass(frozen=True, slots=True)
class Link:
    """An event of the table, or an exact read of it. `epoch` is the number of the epoch that tells of a shown event, or
    in which the target passed another one; None where the ledger does not remember it. For a shown event `changes`
    counts the operations of the hop that ends here, and `files` and `bytes` are totals over the hop's objects."""

    event_id: EventId
    kind: str
    fate: Fate
    why: str = ""
    event_type: str = ""
    event_time: int = 0
    partitions: int = 0
    was: str = ""
    """The name before a rename."""
    now: str = ""
    """The table's new name, where a rename took it away from the chain's names."""
    epoch: int | None = None
    published_at: str = ""
    changes: Mapping[str, int] | None = None
    files: int = 0
    bytes: int = 0
    bridge: bool = False


@dataclass(frozen=True, slots=True)
class NameSpan:
    """The name that the table had at events in (after, upto]."""

    name: TableName
    after: EventId
    upto: EventId

    def has(self, row: ObjectRow) -> bool:
        """Tell whether a row of the ledger has the name at an event of the span."""
        return TableName(row.database, row.table) == self.name and self.after < row.event_id <= self.upto


def names_backwards(entries: Sequence[Entry], name: TableName) -> tuple[Sequence[Entry], Sequence[NameSpan]]:
    """Return the entries (ascending) of the table that is called `name` after the last of `entries`, and the table's
    names, the newest first. Entries of an earlier table that had one of these names are among them."""
    found, spans, current, upto = [], [], name, MAX_EVENT
    for entry in reversed(entries):
        keys = entry.keys
        if keys.kind is EventKind.RENAME_TABLE and keys.table == current and keys.other is not None:
            found.append(entry)
            spans.append(NameSpan(current, entry.event_id - 1, upto))
            current, upto = keys.other, entry.event_id - 1
        elif current in (keys.table, keys.other) or (
            keys.kind is EventKind.DROP_DATABASE and keys.table == TableName(current.database)
        ):
            found.append(entry)
    return found[::-1], [*spans, NameSpan(current, -1, upto)]


def chain(
    entries: Sequence[Entry],
    rows: Iterable[ObjectRow],
    epochs: Sequence[Epoch],
    spans: Sequence[NameSpan],
    shows: EventId | None,
    reason: str,
) -> Sequence[Link]:
    """Return the links of the chain, ascending. `entries` are the table's events; `rows` are the ledger's, of which
    those count that have one of the table's names (`spans`); `epochs` are those that the ledger remembers; `shows` is
    the event of the table that the target shows, and `reason` says why it shows no newer one."""
    hops: dict[EventId, list[ObjectRow]] = {}
    for row in rows:
        if not any(span.has(row) for span in spans):
            continue
        hops.setdefault(row.event_id, []).append(row)
    stops = sorted(hops)
    events = {entry.event_id: entry for entry in entries}
    links = []
    for event_id in sorted(events.keys() | hops.keys()):
        entry, hop = events.get(event_id), hops.get(event_id)
        links.append(link(event_id, entry, hop, stops, epochs, spans, shows, reason))
    return links


def link(
    event_id: EventId,
    entry: Entry | None,
    hop: Sequence[ObjectRow] | None,
    stops: Sequence[EventId],
    epochs: Sequence[Epoch],
    spans: Sequence[NameSpan],
    shows: EventId | None,
    reason: str,
) -> Link:
    """Return the link for one event id. An event at which a hop of the ledger ended, whose rows are `hop`, is shown;
    any other gets the fate that `fate_of` finds with `stops`, `shows` and `reason`. `entry` is the event as the journal
    has it, None where it does not; `spans` are the names that the table had, and `epochs` are in order."""
    event = {"kind": READ} if entry is None else event_fields(entry, {span.name for span in spans})
    if hop is not None:
        epoch = epoch_of(event_id, epochs)
        name = str(TableName(hop[0].database, hop[0].table))
        return Link(
            event_id,
            fate=Fate.SHOWN,
            epoch=None if epoch is None else epoch.epoch,
            published_at="" if epoch is None else epoch.published_at,
            changes=dict(sorted(Counter(row.change for row in hop).items())),
            files=sum(len(row.files) for row in hop),
            bytes=sum(file.size for row in hop for file in row.files),
            bridge=epoch is not None and any(b.table == name and b.to_event == event_id for b in epoch.bridges),
            **event,
        )
    fate, why = fate_of(event_id, entry, stops, shows, reason)
    passing = None if fate is Fate.WAITING else epoch_of(event_id, epochs)
    if passing is None or event_id <= passing.from_event_id:
        return Link(event_id, fate=fate, why=why, **event)
    return Link(event_id, fate=fate, why=why, epoch=passing.epoch, published_at=passing.published_at, **event)


def event_fields(entry: Entry, names: Collection[TableName]) -> dict[str, Any]:
    """Return the fields of a `Link` that come from the event. `names` are all names that the table had."""
    keys = entry.keys
    went_away = keys.other is not None and keys.table not in names
    return {
        "kind": keys.kind.value,
        "event_type": entry.event_type,
        "event_time": entry.event_time,
        "partitions": len(keys.partitions),
        "was": "" if went_away or keys.other is None else str(keys.other),
        "now": str(keys.table) if went_away else "",
    }


def fate_of(
    event_id: EventId, entry: Entry | None, stops: Sequence[EventId], shows: EventId | None, reason: str
) -> tuple[Fate, str]:
    """Return the fate, and the reason for it, of an event at which no hop ended. `stops` are the events at which hops
    ended, ascending."""
    if shows is None or event_id > shows:
        return Fate.WAITING, reason or "its window has not come yet"
    if entry is not None and (entry.keys.facets_only or entry.keys.kind is EventKind.FACET):
        return Fate.PASSED_OVER, "it changes statistics alone, which ride on the next call"
    place = bisect_left(stops, event_id)
    if place < len(stops):
        if place == 0:
            return Fate.BEFORE, "the ledger remembers nothing of the table so far back"
        return Fate.PASSED_OVER, f"one hop goes from event {stops[place - 1]} to event {stops[place]}"
    return Fate.PASSED_OVER, "the target shows its effect without an operation of its own"


def epoch_of(event_id: EventId, epochs: Sequence[Epoch]) -> Epoch | None:
    """Return the first remembered epoch that shows the event; None where none does. `epochs` are in order."""
    place = bisect_left(epochs, event_id, key=lambda epoch: epoch.event_id)
    return epochs[place] if place < len(epochs) else None
