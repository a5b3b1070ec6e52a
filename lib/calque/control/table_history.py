"""The recent history of one table at one target, read from the journal and the ledger: for the page and for
commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calque.core.records.table_chain import Link, chain, names_backwards
from calque.model.journal import Entry
from calque.model.ledger import TableRow, TableState, state_key
from calque.model.names import EventId, Span, TableName
from calque.ports import Journal, Ledger

PAGE, MOST_LOOKED_AT, MOST_LINKS = 5_000, 50_000, 200
"""Entries of the journal that are read at once, entries that are read in all, and links of the chain that are told."""
FIELDS = (
    "event_id",
    "kind",
    "event_type",
    "event_time",
    "fate",
    "why",
    "epoch",
    "published_at",
    "changes",
    "files",
    "bytes",
    "bridge",
    "partitions",
    "was",
    "now",
)


def table_history(journal: Journal, ledger: Ledger, name: TableName) -> Mapping[str, Any]:
    """Return what the target showed of the table, as a JSON object. Its `links` are the table's events, newest last.
    `looked_back_to` is the event up to which the journal was not looked at; `cut` counts older links that are left
    out."""
    row = ledger.tables().get(state_key(TableRow(*name, TableState.LIVE)))
    last = ledger.last_epoch()
    position = last.event_id if last is not None else None
    looked_back_to, entries = newest_entries(journal, name)
    own, spans = names_backwards(entries, name)
    rows = ledger.rows_of({span.name for span in spans}, last.epoch) if last is not None else ()
    state, shows, reason = "gone", position, ""
    if isinstance(row, TableRow):
        state, reason = row.state.value, row.reason
        shows = position if row.state is TableState.LIVE else row.shows
    every_link = chain(own, rows, ledger.epochs(), spans, shows, reason)
    is_whole = looked_back_to < (journal.oldest() or 0)
    links = [link for link in every_link if is_whole or link.event_id > looked_back_to]
    return {
        "table": str(name),
        "state": state,
        "shows": shows,
        "position": position,
        "reason": reason,
        "looked_back_to": looked_back_to,
        "cut": max(len(links) - MOST_LINKS, 0),
        "links": [link_document(link) for link in links[-MOST_LINKS:]],
    }


def newest_entries(journal: Journal, name: TableName) -> tuple[EventId, Sequence[Entry]]:
    """Return the journal's newest entries, and the event before them. They reach back to where `MOST_LINKS` of them may
    concern the table, at most `MOST_LOOKED_AT` events."""
    last, oldest = journal.last(), journal.oldest()
    if last is None or oldest is None:
        return last or 0, ()
    pages: list[Sequence[Entry]] = []
    after, count = last, 0
    while after >= oldest and last - after < MOST_LOOKED_AT and count < MOST_LINKS:
        before = max(after - PAGE, oldest - 1)
        page = journal.entries(Span(before, after))
        pages.append(page)
        count += sum(name in (entry.keys.table, entry.keys.other) for entry in page)
        after = before
    return after, [entry for page in reversed(pages) for entry in page]


def link_document(link: Link) -> Mapping[str, Any]:
    return {field: getattr(link, field) for field in FIELDS}
