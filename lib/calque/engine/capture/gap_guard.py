"""A journal that answers nothing once a gap was found: what it says then may belong to another history of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from calque.engine.sides.journal_reads import newest
from calque.engine.sides.sides import SourceSide
from calque.errors import Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.ports import Gaps, Journal

T = TypeVar("T")


def fenced(source: SourceSide) -> SourceSide:
    """The source for readers who know all gaps that were found by now: with the next one their journal is
    `Unavailable`, and stays so."""
    if source.gaps is None:
        return source
    return replace(source, journal=FencedJournal(source.journal, source.gaps, newest(source.gaps)))


class FencedJournal:
    """`journal` as long as there are `number` gaps. A gap is recorded before the journal begins anew, so an answer is
    good when there is no other one after it came."""

    def __init__(self, journal: Journal, gaps: Gaps, number: int) -> None:
        self._journal, self._gaps, self._number = journal, gaps, number

    def last(self) -> EventId | None:
        return self._good(self._journal.last)

    def oldest(self) -> EventId | None:
        return self._good(self._journal.oldest)

    def append(self, rows: pa.Table) -> None:
        self._good(lambda: self._journal.append(rows))

    def entries(self, span: Span) -> Sequence[Entry]:
        return self._good(lambda: self._journal.entries(span))

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        return self._good(lambda: self._journal.events(ids, most))

    def forget(self, upto: EventId) -> int:
        return self._good(lambda: self._journal.forget(upto))

    def restart(self, at: EventId) -> None:
        self._journal.restart(at)

    def _good(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        finally:
            if newest(self._gaps) != self._number:
                raise Unavailable("A gap in the log was found", "The journal begins anew behind it", "Begin anew")
