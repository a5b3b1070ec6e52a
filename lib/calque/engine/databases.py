"""Databases at the target: made before their tables, changed with the source's, dropped after all that was in them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from calque.core import decode
from calque.core.image import SOURCE, is_ours, same_definition
from calque.core.layout import natural_location
from calque.engine.apply import Applied
from calque.engine.world import SourceSide, TargetSide
from calque.model.hive import Database
from calque.model.journal import Entry, Kind
from calque.model.names import EventId, TableName, table_name
from calque.ports import Conflict


class Databases:
    """A database that exists and is not ours is used as it is: its parameters are not touched, it is never dropped."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.lock = threading.Lock()
        self.known: set[str] = set()

    def bootstrap(self, event_id: EventId) -> None:
        """Make every admitted database as the source has it now; later events say what changed since."""
        for name in self.source.catalog.databases():
            if self.side.admission.takes_database(name) and (found := self.source.catalog.database(name)) is not None:
                self.put(found, event_id, Applied())

    def before(self, entries: Iterable[Entry], applied: Applied) -> None:
        """Databases that the window's events leave in place, as their newest image has them."""
        for entry in last_of(entries, self.side):
            if entry.keys.kind is not Kind.DROP_DATABASE:
                event = self.source.journal.events([entry.event_id])[entry.event_id]
                self.put(decode.database_after(event), entry.event_id, applied)

    def after(self, entries: Iterable[Entry], applied: Applied) -> None:
        """Databases that are gone at the window's end; one that still holds something of somebody stays."""
        for entry in last_of(entries, self.side):
            if entry.keys.kind is not Kind.DROP_DATABASE or self.side.policy.drops == "keep":
                continue
            assert entry.keys.table is not None
            at = self.side.admission.name_at_target(entry.keys.table).database
            there = self.side.catalog.database(at)
            if there is not None and is_ours(there.parameters, self.side.policy.source):
                try:
                    self.side.catalog.drop_database(at)
                    applied.calls += 1
                except Conflict:
                    pass
                self.known.discard(at)

    def ensure(self, table: TableName) -> None:
        """The target's database for the source's `table` exists."""
        at = self.side.admission.name_at_target(table).database
        with self.lock:
            if at in self.known:
                return
            if self.side.catalog.database(at) is None:
                found = self.source.catalog.database(table.database) or Database(name=table.database)
                self.create(at, found, 0, Applied())
            self.known.add(at)

    def put(self, database: Database, event_id: EventId, applied: Applied) -> None:
        at = self.side.admission.name_at_target(table_name(database.name)).database
        there = self.side.catalog.database(at)
        if there is None:
            self.create(at, database, event_id, applied)
        elif is_ours(there.parameters, self.side.policy.source):
            wanted = self.side.imaging.database(database, event_id, there.location)
            if not same_definition(there, wanted):
                self.side.catalog.alter_database(at, wanted)
                applied.calls += 1

    def create(self, at: str, database: Database, event_id: EventId, applied: Applied) -> None:
        location = natural_location(self.side.policy.warehouse, at)
        image = replace(self.side.imaging.database(database, event_id, location), name=at)
        try:
            self.side.catalog.create_database(image)
            applied.calls += 1
        except Conflict:
            pass

    def left_over(self, found: set[TableName]) -> list[TableName]:
        """Tables of ours at the target whose source is not among `found`: by their source's names."""
        left: list[TableName] = []
        mine = f"{self.side.policy.source}:"
        for at in self.side.catalog.databases():
            source_database = self.side.admission.source_of(TableName(at))
            if source_database is None:
                continue
            for table in self.side.catalog.tables(at):
                name = self.side.admission.source_of(table_name(at, table))
                if name is None or name in found:
                    continue
                there = self.side.catalog.table(table_name(at, table))
                if there is not None and (there.parameters or {}).get(SOURCE, "").startswith(mine):
                    left.append(name)
        return left


DATABASE_KINDS = frozenset({Kind.CREATE_DATABASE, Kind.ALTER_DATABASE, Kind.DROP_DATABASE})


def last_of(entries: Iterable[Entry], side: TargetSide) -> Sequence[Entry]:
    """The newest database event of each admitted database."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        name = entry.keys.table
        if entry.keys.kind in DATABASE_KINDS and name is not None and side.admission.takes_database(name.database):
            newest[name.database] = entry
    return list(newest.values())
