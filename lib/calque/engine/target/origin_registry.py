"""Under which names the target's own metastore is known where the source is: what came through it is not carried back.

A metastore has an id of its own, whatever its address (`CatalogReader.identity`). Whoever replicates writes down at the
target, before anything else, which name its source has, and what is written down at the source of others: so every
metastore that a path of origins can reach knows the names in it, before the first object with that path is there.
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
from calque.engine.sides.origin_names import OriginNaming
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
    """A source by its name, and the id of its metastore."""

    name: str
    id: str


class OriginLearning:
    """What a target knows of its own origins: looked up at the source's catalog as it is, with all that came back."""

    def __init__(self, source: SourceSide, side: TargetSide) -> None:
        self.source, self.side = source, side
        self.is_done = False

    def learn(self) -> None:
        """Which sources are the target itself may have been written down at the source, and is passed on."""
        meet(self.source, self.side)
        self.is_done = True

    def learn_once(self) -> None:
        if not self.is_done:
            self.learn()


def meet(source: SourceSide, side: TargetSide) -> None:
    """Learn, and tell the target. Where source or target does not answer, a target that was begun with goes by what was
    learned before: what has been written down since then comes as an event. Raises `Unavailable`."""
    before = one_of(side.ledger.records(), OriginNames)
    try:
        announce(source, side, learn(source, side))
    except Unavailable:
        if side.ledger.last_epoch() is None:
            raise
        side.home.names = frozenset(before.names if before is not None else ())
        return
    names = tuple(sorted(side.home.names))
    if names != (before.names if before is not None else ()):
        side.ledger.put_records([OriginNames(names)])


def learn(source: SourceSide, side: TargetSide) -> frozenset[RegisteredSource]:
    """Take over what is written down at the source; all of that. Reads only. Metastores that have no id (before 3.0)
    are not told from others."""
    source_identity, target_identity = source.catalog.identity(), side.catalog.identity()
    registered = known_at(source.catalog) if source_identity and target_identity else frozenset()
    if registered:
        side.home.names = frozenset(
            one.name for one in registered if one.id == target_identity or one.name == source.name
        )
    return registered


def announce(source: SourceSide, side: TargetSide, registered: Iterable[RegisteredSource]) -> None:
    """Write down at the target how its source is called, and `registered`, what the source knows of others. Another
    metastore that has the source's name there may be one that it took the place of."""
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
    """What is written down at a metastore."""
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
    """The hidden view that says it."""
    return TableName(OURS, PREFIX + hashlib.blake2b("\n".join(registered).encode(), digest_size=8).hexdigest())


def tells(entry: Entry) -> bool:
    """Whether the event may have written something down."""
    name = entry.keys.table
    created = entry.keys.kind is EventKind.CREATE_TABLE
    return created and name is not None and name.database == OURS and name.table.startswith(PREFIX)


def carried(journal: Journal, side: TargetSide, tables: TableStates, entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries as they concern the target, which has `tables`."""
    if not side.home.names:
        return entries

    def is_replicated(name: TableName) -> bool:
        return name in tables.rows

    takes = side.admission.takes
    event_ids = to_ask(entries, is_replicated, tables.shown, takes)
    back: set[EventId] = set()
    for event in messages(journal, event_ids):
        if not side.home.names.isdisjoint(path_after(event)):
            back.add(event.event_id)
    return as_carried(entries, is_replicated, tables.shown, back, takes)


class WithoutReturned(ForwardingCatalogReader):
    """The source's catalog, in which tables that came back are not there."""

    def __init__(self, catalog: CatalogReader, home: OriginNaming) -> None:
        super().__init__(catalog)
        self._home = home

    def tables(self, database: str) -> Sequence[str]:
        names = super().tables(database)
        if not self._home.names or database == OURS:
            return names
        returned_names = {
            name for name, table in super().headers(database, names).items() if self._home.has(table.parameters)
        }
        return [name for name in names if name not in returned_names]

    def table(self, name: TableName) -> Table | None:
        table = super().table(name)
        return None if table is not None and self._home.has(table.parameters) else table

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = super().headers(database, names)
        return {name: table for name, table in tables.items() if not self._home.has(table.parameters)}
