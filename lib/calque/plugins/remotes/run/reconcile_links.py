"""The registry of links, kept up to date with the local catalog: which objects are links, which are set aside, and why.

`look` reads the catalog, records, and writes nothing into the catalog. `settle` makes objects fit the record: a link
that stands for another remote object than before is emptied, and an object that is no link any more loses its marks, or
is dropped. `settle` must not run while a projection writes the same objects: `run` calls it while the projections of
these names are ended.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from calque.control.process_locks import holder
from calque.core.images.image import SOURCE, source_mark
from calque.core.images.own_parameters import CONNECTED_TO, is_link, without_link
from calque.engine.target.armed_tables import disarmed, is_armed
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import Database, Table, is_view, location_of
from calque.model.names import OURS, EventId, TableName
from calque.plugins.remotes.core.definitions import (
    COPY,
    DATA,
    VIA,
    client_of,
    endpoint_name,
    is_of_endpoint,
    link_of_parameters,
    parameters_of,
)
from calque.plugins.remotes.core.objects import empty_location, unmarked
from calque.plugins.remotes.core.permission import refusal
from calque.plugins.remotes.core.registry import placed
from calque.plugins.remotes.engine.linked_catalog import empty
from calque.plugins.remotes.model import LinkDefinition, LinkRecord, LinkRegistry
from calque.plugins.remotes.wiring.clients import forms
from calque.plugins.remotes.wiring.remotes import ROLE, RemotesWiring, source_of
from calque.ports import Catalog, Conflict, parts_of

LOG = logging.getLogger(__name__)
DROP, UNMARK = "drop", "unmark"
SETTLED_SECONDS = 60.0
"""Seconds within which a running process does what a statement asks of it."""
FAR = 1000
"""The most events of the local log that are looked at again after a death."""
Objects = Mapping[TableName, Table | Database | None]
"""The local object of each name; None where there is none."""


def look(remotes: RemotesWiring, names: Iterable[TableName] | None, position: int | None = None) -> LinkRegistry:
    """Record what the local catalog says of the objects `names` (None: of all objects), and `position`, the event up to
    which it was looked at. Return the registry. Raises `Unavailable`."""
    catalog = remotes.catalog()
    objects = everything(catalog) if names is None else objects_of(catalog, names)
    owners = Owners(catalog)
    with remotes.lock():
        before = remotes.registry()
        warehouse = before.warehouse or warehouse_of(catalog)
        links, leaving = dict(before.links), dict(before.leaving)
        if names is None:
            objects = {**objects_of(catalog, links.keys() - objects.keys()), **objects}
        absent, missing_links = (
            [name for name, one in objects.items() if one is None and name in links],
            remotes.missing_links(),
        )
        held = {name for name in absent if name in missing_links}
        # A link that is missing and not in hand may have been in hand when the catalog was read: read it again.
        objects = {**objects, **objects_of(catalog, [name for name in absent if name not in held])}
        for name, one in objects.items():
            if one is not None and is_link(one.parameters) and leaving.get(name) != DROP:
                links[name] = record_of(remotes, before, name, one, owners)
                leaving.pop(name, None)
            elif name in links and name not in held:
                was = links.pop(name)
                if one is not None and not was.reason:
                    leaving.setdefault(name, UNMARK)
        position = before.position if position is None else position
        now = placed(replace(before, position=position, warehouse=warehouse, links=links, leaving=leaving), before)
        if replace(now, position=before.position) != before or is_far(position, before.position):
            remotes.put(now)
    for name in sorted(now.links):
        if now.links[name].reason and now.links[name] != before.links.get(name):
            LOG.warning("the link %s is set aside: %s", name, now.links[name].reason)
    return now


def is_far(position: EventId | None, recorded: EventId | None) -> bool:
    """Tell whether `position` is so many events after `recorded` that it is worth a record of its own: at least `FAR`,
    so that a death costs at most so many events that are looked at again."""
    return position is not None and (recorded is None or not recorded <= position < recorded + FAR)


def everything(catalog: Catalog) -> Objects:
    """Return all links of the local catalog, and no other objects."""
    objects: dict[TableName, Table | Database | None] = {}
    for name in catalog.databases():
        database = catalog.database(name)
        if database is None or name.startswith(OURS):
            continue
        if is_link(database.parameters):
            objects[TableName(name)] = database
        tables = catalog.headers(name, catalog.tables(name))
        objects |= {TableName(name, key): table for key, table in tables.items() if is_link(table.parameters)}
    return objects


def objects_of(catalog: Catalog, names: Iterable[TableName]) -> Objects:
    objects: dict[TableName, Table | Database | None] = {}
    by_database: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        if name.database.startswith(OURS):
            continue
        if name.table:
            by_database[name.database].append(name.table)
        else:
            objects[name] = catalog.database(name.database)
    for database, tables in by_database.items():
        headers = catalog.headers(database, tables)
        objects |= {TableName(database, table): headers.get(table) for table in tables}
    return objects


def warehouse_of(catalog: Catalog) -> str:
    database = catalog.database("default")
    return (database.location or "") if database is not None else ""


@dataclass(slots=True)
class Owners:
    """The owners of local databases, each read once."""

    catalog: Catalog
    known: dict[str, str] = field(default_factory=dict)

    def owner(self, database: str) -> str:
        if database not in self.known:
            found = self.catalog.database(database)
            self.known[database] = (found.owner or "") if found is not None else ""
        return self.known[database]


def record_of(
    remotes: RemotesWiring, registry: LinkRegistry, name: TableName, one: Table | Database, owners: Owners
) -> LinkRecord:
    """Return the record of an object that says it is a link: taken, or set aside with the reason."""
    parameters = one.parameters or {}
    connected_to, via = parameters.get(CONNECTED_TO, ""), parameters.get(VIA, "")
    try:
        definition = link_of_parameters(name, parameters, forms())
    except Refused as refused:
        return LinkRecord(connected_to, via, None, str(refused))
    record = LinkRecord(str(definition.remote), definition.endpoint.via, definition)
    try:
        require_permitted(remotes, registry, definition)
        if name not in registry.made:
            require_owner(name, one, owners)
        if definition.data == COPY and name not in registry.copied:
            what = f"'{DATA}' = '{COPY}' was not said by a statement"
            raise Refused(what, "Copies take room", f"Write ALTER REMOTE TABLE {name} SET DATA COPY")
        if isinstance(one, Table):
            require_own(remotes, definition, one)
    except CalqueError as error:
        return replace(record, reason=str(error))
    return record


def require_permitted(remotes: RemotesWiring, registry: LinkRegistry, definition: LinkDefinition) -> None:
    """Raise `Refused` where calque may not connect to the link's endpoint, or the endpoint is invalid."""
    keys, endpoint = remotes.keys, definition.endpoint
    client = client_of(endpoint.via, forms())
    refused = refusal(endpoint, client, registry.granted, keys.allow, keys.lent(), keys.metastore)
    if refused is not None:
        raise refused
    source_of(keys, endpoint, far_only=True)


def require_owner(name: TableName, one: Table | Database, owners: Owners) -> None:
    """Raise `Refused` for a table that an engine made a link, where its owner is not the owner of the local database,
    or the database has no owner. Databases pass, and so do filled links, because a filled link has the remote table's
    owner."""
    if not isinstance(one, Table) or (one.parameters or {}).get(SOURCE):
        return
    owner = owners.owner(name.database)
    if not owner:
        todo = f"Set one: ALTER DATABASE {name.database} SET OWNER USER …; or make the link by CREATE REMOTE"
        raise Refused(f"The database {name.database} has no owner", "Its owner makes links in it", todo)
    if one.owner != owner:
        what = f"{one.owner} does not own the database {name.database}" if one.owner else f"{name} has no owner"
        raise Refused(what, f"Its owner, {owner}, makes links in it", "Have it made by the owner, or by CREATE REMOTE")


def require_own(remotes: RemotesWiring, definition: LinkDefinition, table: Table) -> None:
    """Raise `Refused` where the table can't become a link without a loss: it is a replica of another stream, no
    external table, or it has partitions or files of its own. Raises `Unavailable`."""
    local, mark = definition.local, (table.parameters or {}).get(SOURCE, "")
    if mark:
        if not is_of_endpoint(mark.partition(":")[0]):
            what = f"{local} is a replica of {mark}"
            raise Refused(what, "Another stream writes it", f"Remove '{CONNECTED_TO}', or that replica")
        return
    why, todo = "A link shows the remote table in its place", "Make the link under another name"
    if is_view(table) or table.type != "EXTERNAL_TABLE":
        raise Refused(f"{local} is no external table", why, "Write CREATE EXTERNAL TABLE")
    if remotes.catalog().partition_names(local):
        raise Refused(f"{local} has partitions of its own", why, todo)
    location = location_of(table)
    if location and remotes.storage().list([location])[location].files:
        raise Refused(f"{local} has files of its own in {location}", why, todo)


def settle(remotes: RemotesWiring, names: Collection[TableName] | None = None) -> None:
    """Make the objects of these names (None: of all links) fit the registry. No other process may write them meanwhile.
    Raises `Unavailable`."""
    catalog, registry = remotes.catalog(), remotes.registry()
    taken = {name: link for name, link in registry.taken().items() if names is None or name in names}
    for name, one in objects_of(catalog, taken).items():
        if one is not None:
            with suppress(Conflict):
                fit(remotes, catalog, taken[name], one)
    leaving = [name for name in registry.leaving if names is None or name in names]
    done = [name for name in leaving if leave(remotes, registry, name)]
    if done:
        with remotes.lock():
            now = remotes.registry()
            still_leaving = {name: what for name, what in now.leaving.items() if name not in done}
            remotes.put(replace(now, leaving=still_leaving))


def is_followed(remotes: RemotesWiring) -> bool:
    """Tell whether a process follows the links."""
    return holder(remotes.folder.path, ROLE) is not None


def drop_link(remotes: RemotesWiring, database: TableName, seconds: float = SETTLED_SECONDS) -> None:
    """End the link of a database, and drop its tables. Where a process follows the links, that process drops them, and
    this call waits for it for at most `seconds`. Raises `Unavailable` where tables are still there after that time."""
    with remotes.lock():
        registry = remotes.registry()
        links = {name: record for name, record in registry.links.items() if name != database}
        remotes.put(replace(registry, links=links, leaving={**registry.leaving, database: DROP}))
    deadline = time.monotonic() + seconds
    while True:
        followed = is_followed(remotes)
        if not followed:
            settle(remotes, (database,))
        if database not in remotes.registry().leaving:
            return
        if time.monotonic() > deadline:
            what = f"{database} is no link any more, but its tables are still there"
            if followed:
                raise Unavailable(what, "`calque run` drops them", "See its log")
            raise Unavailable(what, "Somebody changes them all the time", "Say it again, or start `calque run`")
        time.sleep(0.05 if followed else 0.5)


def fit(remotes: RemotesWiring, catalog: Catalog, link: LinkDefinition, one: Table | Database) -> None:
    """Empty the link where it is filled from another remote object than the registry says."""
    mark = (one.parameters or {}).get(SOURCE, "")
    expected = source_mark(endpoint_name(link.endpoint, client_of(link.endpoint.via, forms())), link.remote)
    if not mark or mark == expected:
        return
    parameters = parameters_of(link)
    if isinstance(one, Database):
        drop_tables(catalog, link.local.database, mark.partition(":")[0])
        catalog.alter_database(one.name, replace(one, parameters={**unmarked(one.parameters), **parameters}))
        return
    database = catalog.database(link.local.database) or Database(link.local.database)
    location = empty_location(database, link.local.table)
    make_directories = remotes.storage().make_directories
    empty(parts_of(catalog), link.local, one, parameters, location, make_directories, remotes.missing_links())


def leave(remotes: RemotesWiring, registry: LinkRegistry, name: TableName) -> bool:
    """Drop or unmark an object that was a link, as the registry says. Return whether nothing is left to be done for it;
    False asks for another call."""
    if name in registry.links:
        return True
    catalog = remotes.catalog()
    what, one = registry.leaving[name], objects_of(catalog, [name])[name]
    if one is None:
        return True
    source = (one.parameters or {}).get(SOURCE, "").partition(":")[0]
    is_filled = is_of_endpoint(source)
    parameters = unmarked(one.parameters) if is_filled else dict(one.parameters or {})
    try:
        if isinstance(one, Table):
            if is_filled:
                catalog.alter_table(name, replace(one, parameters=parameters))
            return True
        if is_filled:
            (drop_tables if what == DROP else unmark_tables)(catalog, name.database, source)
            if what == DROP and tables_of(catalog, name.database, source):
                LOG.warning("%s was a link, and some of its tables could not be dropped: they are tried again", name)
                return False
        if what == DROP:
            parameters = without_link(parameters)
            for function in remotes.functions(source, name.database) if is_filled else ():
                with suppress(Conflict):
                    catalog.drop_function(function)
            with suppress(Conflict):
                catalog.drop_database(name.database)
                return True
        catalog.alter_database(name.database, replace(one, parameters=parameters))
    except Conflict as error:
        LOG.warning("%s was a link, and is looked at again: %s", name, error)
        return False
    return True


def tables_of(catalog: Catalog, database: str, source: str) -> Mapping[TableName, Table]:
    """Return the tables of the database that are replicas from `source`, without tables that are links themselves."""
    tables = catalog.headers(database, catalog.tables(database))
    return {
        TableName(database, name): table
        for name, table in tables.items()
        if (table.parameters or {}).get(SOURCE, "").startswith(f"{source}:") and not is_link(table.parameters)
    }


def drop_tables(catalog: Catalog, database: str, source: str) -> None:
    tables = tables_of(catalog, database, source)
    for name in sorted(tables, key=lambda name: (not is_view(tables[name]), name)):
        with suppress(Conflict):
            catalog.drop_table(name)


def unmark_tables(catalog: Catalog, database: str, source: str) -> None:
    for name, table in tables_of(catalog, database, source).items():
        with suppress(Conflict):
            catalog.alter_table(name, replace(table, parameters=unmarked(table.parameters)))


def disarm(remotes: RemotesWiring, names: Iterable[TableName]) -> None:
    """Take back parameters that users set on filled links and that would have the local metastore act on the remote's
    files. Raises `Unavailable`."""
    catalog = remotes.catalog()
    for name, one in objects_of(catalog, names).items():
        marked = isinstance(one, Table) and is_of_endpoint((one.parameters or {}).get(SOURCE, "").partition(":")[0])
        if isinstance(one, Table) and marked and is_armed(one):
            with suppress(Conflict):
                catalog.alter_table(name, disarmed(one))
                LOG.warning("%s is a link: its parameters would reach the remote's files, and are taken back", name)
