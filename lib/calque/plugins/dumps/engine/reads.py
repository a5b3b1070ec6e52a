"""All tables of a dump, exact at one event id, while the source goes on changing.

Each object is read exactly at an event id of its own. So the read is true from the last event before that touched the
object up to the next one. The dump's event id is an id at which the reads of all objects are true. Where there is no
such id, the objects that were overtaken first are read again, and the reads of all others stay:

    `a` is read at event 90, and `b` at event 95. Events 80 and 93 touched `a`, event 94 touched `b`.
    The read of `a` is true from 80 up to 92, that of `b` from 94 on. There is no common id, and `a` is read again.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.core.events.effects import OF_DATABASES, OF_FUNCTIONS
from calque.engine.sides.journal_reads import entries_in
from calque.engine.sides.sides import SourceSide
from calque.engine.source.exact_read import TableIsTooBusy
from calque.errors import Refused, Unavailable, nearest
from calque.model.hive import Database, Function
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.plugins.dumps.core.scope import Scope
from calque.plugins.dumps.engine.table_read import ReadTable, TableReader
from calque.plugins.dumps.engine.troubles import DumpTroubles

LOG = logging.getLogger(__name__)
ROUNDS = 200
ONE_BY_ONE = 3
"""Rounds that read only the objects that were overtaken first. After them all touched objects are read at once: where
several tables are written all the time, reads of one moment are the likeliest to be true together."""
NEVER = -1
"""An id below that of every event."""
READERS = 4


@dataclass(slots=True)
class Touches:
    """The ids of the events on one object, ascending; `facets` are those of them on its statistics and constraints."""

    events: list[EventId] = field(default_factory=list)
    facets: list[EventId] = field(default_factory=list)

    def valid_from(self, at: EventId) -> EventId:
        place = bisect_right(self.events, at)
        return self.events[place - 1] if place else 0

    def valid_upto(self, table: ReadTable, high: EventId) -> EventId:
        """Return the id of the last event, at most `high`, at which the read of the table is still true. Return `NEVER`
        where an event came while the table was read, so that the read may or may not have its change."""
        read_loosely = self.events if table.is_header_only else self.facets
        if next_after(read_loosely, table.began_at, high) < min(table.ended_at, high):
            return NEVER
        return min(next_after(self.events, table.exact_at, high), next_after(self.facets, table.began_at, high))


def next_after(events: Sequence[EventId], at: EventId, high: EventId) -> EventId:
    """Return the id before the first of `events` that is greater than `at`; `high` where there is none."""
    place = bisect_right(events, at)
    return events[place] - 1 if place < len(events) else high


@dataclass(slots=True)
class DumpReads:
    """The reads of all objects of a dump of one database. `takes` says which tables belong to it. With `whole` the
    database and its functions belong to it, too. `report` is called with texts that say how far the reading is."""

    source: SourceSide
    scope: Scope
    takes: Callable[[TableName], bool]
    reader: TableReader
    report: Callable[[str], None]
    whole: bool = True
    database: Database | None = None
    tables: dict[TableName, ReadTable] = field(default_factory=dict)
    functions: dict[TableName, Function] = field(default_factory=dict)
    began_at: EventId = 0
    ended_at: EventId = 0
    """The newest events before and after the database's header and functions were read."""
    touched: dict[TableName, Touches] = field(default_factory=dict)
    around: Touches = field(default_factory=Touches)
    """The events on the database's header and functions."""
    scanned: EventId = 0
    stale: set[TableName] = field(default_factory=set)
    troubles: DumpTroubles = field(default_factory=DumpTroubles)

    def begin(self, names: Iterable[TableName] | None = None) -> None:
        """Read the database's header, and the tables `names` (None: all that `takes` takes), once. Raises `Refused`
        where there is no such database, and as `read` does."""
        self.scanned = self.source.log.current()
        self.read_around()
        if names is None:
            database = self.scope.database
            present = (TableName(database, table) for table in self.source.catalog.tables(database))
            names = [name for name in present if self.takes(name)]
        self.read(sorted(names))

    def read_around(self) -> None:
        self.began_at = self.source.log.current()
        name = self.scope.database
        self.database = self.source.catalog.database(name)
        if self.database is None:
            raise no_database(self.source, name)
        if self.whole:
            functions = (TableName(name, function.lower()) for function in self.source.catalog.functions(name))
            self.functions = {}
            for each in functions:
                with self.troubles.of(f"function {each}"):
                    function = self.source.catalog.function(each)
                    if function is not None:
                        self.functions[each] = function
        self.ended_at = self.source.log.current()

    def consolidate(self) -> EventId:
        """Return the first event id that is found at which the reads of all objects are true; objects that events
        overtook are read again until there is one. Raises `Unavailable` after `ROUNDS` rounds, naming the tables that
        are overtaken again and again."""
        for attempt in range(ROUNDS):
            self.refresh()
            high = self.scan()
            unread = {name for name in self.touched if name not in self.tables and self.takes(name)}
            low, upto = self.true_from(), self.true_upto(high)
            if not unread and low <= upto:
                return upto
            if attempt >= ONE_BY_ONE:
                self.source.clock.sleep(min(0.01 * attempt, 0.2))
                low = high = self.scan()
            self.stale |= unread | {name for name in self.tables if self.table_upto(name, high) < low}
        self.fail(self.stale)
        raise AssertionError

    def mark_stale(self, names: Iterable[TableName]) -> None:
        """Have these tables read again as a whole, because their files are not what was read any more."""
        for name in names:
            self.tables[name].only_again = False
            self.stale.add(name)

    def refresh(self) -> None:
        if self.whole and self.around_upto(self.scanned) < self.true_from():
            self.read_around()
        if self.stale:
            names, self.stale = sorted(self.stale), set()
            self.read(names)

    def true_from(self) -> EventId:
        lows = [self.touches(name).valid_from(table.exact_at) for name, table in self.tables.items()]
        return max([self.around.valid_from(self.ended_at) if self.whole else 0, *lows])

    def true_upto(self, high: EventId) -> EventId:
        return min([self.around_upto(high), *(self.table_upto(name, high) for name in self.tables)])

    def around_upto(self, high: EventId) -> EventId:
        """Return the id of the last event, at most `high`, at which the database's header and functions are as they
        were read; `NEVER` where an event touched them while they were read."""
        upto = next_after(self.around.events, self.began_at, high) if self.whole else high
        return upto if upto >= min(self.ended_at, high) else NEVER

    def table_upto(self, name: TableName, high: EventId) -> EventId:
        return self.touches(name).valid_upto(self.tables[name], high)

    def touches(self, name: TableName) -> Touches:
        return self.touched.get(name) or Touches()

    def scan(self) -> EventId:
        """Note the objects that events touched since the last scan. Return the log's newest event id."""
        high = self.source.log.current()
        for entry in entries_in(self.source, Span(self.scanned, high)):
            self.note(entry)
        self.scanned = high
        return high

    def note(self, entry: Entry) -> None:
        keys, database = entry.keys, self.scope.database
        if keys.kind is EventKind.UNKNOWN and keys.table is None:
            self.around.events.append(entry.event_id)
            for each in self.tables:
                self.touched.setdefault(each, Touches()).events.append(entry.event_id)
        for name in {keys.table, keys.other}:
            if name is None or name.database != database:
                continue
            if keys.kind in OF_FUNCTIONS or keys.kind in OF_DATABASES or not name.table:
                self.around.events.append(entry.event_id)
            elif keys.kind is not EventKind.NOTHING:
                touches = self.touched.setdefault(name, Touches())
                touches.events.append(entry.event_id)
                if keys.kind is EventKind.FACET:
                    touches.facets.append(entry.event_id)

    def read(self, names: Sequence[TableName]) -> None:
        """Read these tables, `READERS` at a time. Raises `Refused` and `Unavailable` as `DumpTroubles.require_none`
        does, and `Unavailable` for tables that change faster than they are read."""
        done = 0
        busy: list[TableName] = []
        with ThreadPoolExecutor(READERS, thread_name_prefix="dump") as pool:
            for name, table in zip(names, pool.map(self.read_one, names), strict=True):
                done += 1
                if table is None:
                    busy.append(name)
                else:
                    self.tables[name] = table
                self.report(f"{self.scope.database}: {done} of {len(names)} tables are read")
        self.troubles.require_none()
        if busy:
            self.fail(busy)

    def read_one(self, name: TableName) -> ReadTable | None:
        with self.troubles.of(str(name), TableIsTooBusy):
            try:
                return self.reader.read(name, self.tables.get(name))
            except TableIsTooBusy as error:
                LOG.debug("%s", error)
        return None

    def fail(self, names: Iterable[TableName]) -> None:
        shown = ", ".join(map(str, sorted(names)[:10])) or self.scope.database
        raise Unavailable(
            f"{shown} can't be read at one event",
            f"They change faster than they are read: {ROUNDS} rounds did not settle them",
            "Try again when less is written, or leave them out",
        )


def no_database(source: SourceSide, name: str) -> Refused:
    names = [known for known in source.catalog.databases() if not known.startswith("_")]
    return Refused(f"The source has no database {name}", nearest(name, names), "Dump one that there is")
