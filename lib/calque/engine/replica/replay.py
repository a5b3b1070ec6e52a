"""The replay of the events after one (`calque replay`): what was recorded after that event counts for nothing, and all
that was touched since is read again, its files too, and goes on from what the source has now. Nothing goes back: what
the target shows stays until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calque.core.events.effects import OF_FUNCTIONS, OF_NO_TABLE
from calque.core.states.fold import groups, names_in
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases, is_of_database
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads.coordinator import ExactReads
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import Refused
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName
from calque.model.records import ReadMode


@dataclass(frozen=True, slots=True)
class Replay:
    """The means to have what was touched after an event read again at one target."""

    source: SourceSide
    side: TargetSide
    databases: Databases
    functions: Functions
    reads: ExactReads

    def tables(self, after: EventId, takes: Callable[[TableName], bool], reason: str) -> list[TableName]:
        """Have the chosen tables read again that events after `after` touched, under all the names that the tables had,
        and return them. Databases and functions are made anew as the newest event that is shown has them. Called
        between windows only. Raises `Refused` where the journal does not reach back."""
        cursor = self.reads.tables.cursor
        entries = touched(self.source, after, max(cursor, self.source.journal.last() or 0))
        shown_entries = [entry for entry in entries if entry.event_id <= cursor]
        not_tables = [entry for entry in shown_entries if is_of_database(entry) or entry.keys.kind in OF_FUNCTIONS]
        chosen_entries = [
            entry for entry in not_tables if entry.keys.table is not None and is_chosen(entry.keys.table, takes)
        ]
        self.databases.before(chosen_entries, AppliedChanges())
        self.functions.apply(chosen_entries, AppliedChanges())
        names = self.side.admission.taken(tables_of(entries, takes))
        self.reads.ask(names, reason, ReadMode.LOOK)
        return names


def is_chosen(name: TableName, takes: Callable[[TableName], bool]) -> bool:
    """Tell whether `takes` chooses the object. A database is chosen when it would choose a table named `*` in it."""
    return takes(name) if name.table else takes(TableName(name.database, "*"))


def tables_of(entries: Sequence[Entry], takes: Callable[[TableName], bool]) -> set[TableName]:
    """Return the tables that the entries touch; tables that renames link are chosen together."""
    of_tables = [entry for entry in entries if entry.keys.kind not in OF_NO_TABLE and not is_of_database(entry)]
    named_entries = [entry for entry in of_tables if entry.keys.table is not None]
    linked_names = (names_in(group) for group in groups(named_entries))
    return {name for names in linked_names if any(map(takes, names)) for name in names}


def touched(source: SourceSide, after: EventId, upto: EventId) -> list[Entry]:
    """Return the journal's entries after the event, and scans since. Raises `Refused` where the journal does not reach
    back to the event."""
    require_journal(source, after)
    entries = list(source.journal.entries(Span(after, upto))) if upto > after else []
    scans = source.scans.entries(0) if source.scans is not None else ()
    return [*entries, *(entry for entry in scans if entry.event_id >= after)]


def require_journal(source: SourceSide, after: EventId) -> None:
    """Raise `Refused` unless the journal has every event after `after`, as far as it goes."""
    what, last, oldest = f"Events after {after} can't be replayed", source.journal.last(), source.journal.oldest()
    if last is None:
        raise Refused(what, "The journal has no events yet", "Let `calque run` capture some first")
    if after > last:
        raise Refused(what, f"The journal ends at event {last}", "Name an earlier event")
    first = oldest if oldest is not None else last + 1
    lost = [gap for gap in (source.gaps.recorded() if source.gaps is not None else ()) if gap.span[1] > after]
    if first > after + 1 or lost:
        why = (
            f"The journal has a gap up to event {lost[-1].span[1]}"
            if lost
            else f"The journal begins with event {first}"
        )
        raise Refused(what, why, "Name a later event, or use `calque bootstrap`")
