"""The names under which the target's own metastore is known as a source. Objects that came through the target are not
carried back to it.

A metastore has an id of its own, which does not depend on its address (`CatalogReader.identity`). A writer records at
the target, before anything else, the name of its source, and all that is recorded at that source about other sources.
So every metastore that a path of origins can reach knows the names in the path, before the first object with that path
arrives.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from calque.core.images.origins import as_carried, path_after, to_ask
from calque.engine.sides.calque_database import ensure_own_database, own_view
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.origin_names import OriginNameRegistry
from calque.errors import Unavailable
from calque.model.hive import Table
from calque.model.journal import Entry, EventKind
from calque.model.names import OURS, EventId, TableName
from calque.model.records import OriginNames, one_of
from calque.ports import Catalog, CatalogReader, Conflict, Journal
from calque.ports.forwarding import ForwardingCatalogReader

if TYPE_CHECKING:
    from calque.engine.sides.sides import SourceSide, TargetSide
    from calque.engine.sides.table_states import TableStates

LOG = logging.getLogger(__name__)
PREFIX = f"{OURS}_source_"
NAME, ID = "calque.metastore.source", "calque.metastore.id"


class RegisteredSource(NamedTuple):
    """A source's name with the id of its metastore, as it is recorded at a metastore."""

    name: str
    id: str


class OriginDiscovery:
    """The state of a target's knowledge of its own origins. It reads the source's full catalog, with the tables that
    came back."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.is_done = False

    def read_origins(self) -> None:
        """Learn which names the target has as a source, and pass on to the target what is recorded at the source."""
        exchange_origins(self.source, self.side)
        self.is_done = True

    def read_origins_once(self) -> None:
        if not self.is_done:
            self.read_origins()


def exchange_origins(source: SourceSide, side: TargetSide) -> None:
    """Learn from the source and tell the target. If one of the two does not answer, a target that has begun uses the
    names that it learned before; what was recorded since then comes as an event. Raises `Unavailable` for a target
    without an epoch."""
    before = one_of(side.ledger.records(), OriginNames)
    try:
        announce(source, side, read_origins(source, side))
    except Unavailable:
        if side.ledger.last_epoch() is None:
            raise
        side.origins.names = frozenset(before.names if before is not None else ())
        return
    names = tuple(sorted(side.origins.names))
    if names != (before.names if before is not None else ()):
        side.ledger.put_records([OriginNames(names)])


def read_origins(source: SourceSide, side: TargetSide) -> frozenset[RegisteredSource]:
    """Read what is recorded at the source, set the target's own names by it, and return it. Nothing is written.
    Metastores without an id (before Hive 3.0) can't be told apart, so nothing is learned from them."""
    source_identity, target_identity = source.catalog.identity(), side.catalog.identity()
    registered = known_at(source.catalog) if source_identity and target_identity else frozenset()
    if registered:
        side.origins.names = frozenset(
            one.name for one in registered if one.id == target_identity or one.name == source.name
        )
    return registered


def announce(source: SourceSide, side: TargetSide, registered: Iterable[RegisteredSource]) -> None:
    """Record at the target the name and id of its source, and `registered`, which is what the source has recorded about
    others. Another metastore with the source's name there is logged: the source may have taken its place."""
    identity = source.catalog.identity()
    if not identity:
        return
    registered_at_target = known_at(side.catalog)
    own_registration = RegisteredSource(source.name, identity)
    if own_registration not in registered_at_target and any(one.name == source.name for one in registered_at_target):
        LOG.warning('%s: source "%s" is another metastore than before', side.policy.target, source.name)
    for one in sorted({*registered, own_registration} - registered_at_target):
        put(side.catalog, side.policy.warehouse, one)


def known_at(catalog: CatalogReader) -> frozenset[RegisteredSource]:
    """Return the sources that are recorded at a metastore."""
    names = [name for name in catalog.tables(OURS) if name.startswith(PREFIX)]
    views = catalog.headers(OURS, names) if names else {}
    pairs = ((table.parameters or {}) for table in views.values())
    return frozenset(RegisteredSource(pair[NAME], pair[ID]) for pair in pairs if NAME in pair and ID in pair)


def put(catalog: Catalog, warehouse: str, registered: RegisteredSource) -> None:
    ensure_own_database(catalog, warehouse)
    view = own_view(record_of(registered), {NAME: registered.name, ID: registered.id})
    with suppress(Conflict):
        catalog.create_table(view)
        LOG.info("%s is written down as the metastore of source %s", registered.id, registered.name)


def record_of(registered: RegisteredSource) -> TableName:
    """Return the name of the hidden view that records the source."""
    return TableName(OURS, PREFIX + hashlib.blake2b("\n".join(registered).encode(), digest_size=8).hexdigest())


def tells(entry: Entry) -> bool:
    """Tell whether the event may have recorded a source."""
    name = entry.keys.table
    created = entry.keys.kind is EventKind.CREATE_TABLE
    return created and name is not None and name.database == OURS and name.table.startswith(PREFIX)


def carried(journal: Journal, side: TargetSide, tables: TableStates, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries as they concern the target, which has `tables`. An event that gives a table a path through the
    target is left out, or becomes a drop where the table is there (`core.images.origins.as_carried`)."""
    if not side.origins.names:
        return entries

    def is_replicated(name: TableName) -> bool:
        return name in tables.rows

    takes = side.admission.takes
    event_ids = to_ask(entries, is_replicated, tables.shown, takes)
    back: set[EventId] = set()
    for event in messages(journal, event_ids):
        if not side.origins.names.isdisjoint(path_after(event)):
            back.add(event.event_id)
    return as_carried(entries, is_replicated, tables.shown, back, takes)


class CatalogWithoutOwnTables(ForwardingCatalogReader):
    """The source's catalog without the tables that came back."""

    def __init__(self, catalog: CatalogReader, origins: OriginNameRegistry) -> None:
        super().__init__(catalog)
        self._origins = origins

    def tables(self, database: str) -> Sequence[str]:
        names = super().tables(database)
        if not self._origins.names or database == OURS:
            return names
        returned_names = {
            name for name, table in super().headers(database, names).items() if self._origins.has(table.parameters)
        }
        return [name for name in names if name not in returned_names]

    def table(self, name: TableName) -> Table | None:
        table = super().table(name)
        return None if table is not None and self._origins.has(table.parameters) else table

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = super().headers(database, names)
        return {name: table for name, table in tables.items() if not self._origins.has(table.parameters)}
