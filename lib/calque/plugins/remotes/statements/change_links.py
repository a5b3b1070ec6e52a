"""The statements `CREATE`, `DROP` and `ALTER REMOTE TABLE | DATABASE`, which write links as parameters into the local
catalog.

A statement is the operator's word: the endpoint that it names is allowed from then on. The state folder records the
endpoint before anything is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.config.places import one_metastore
from calque.core.events.kinds import obstacle
from calque.core.images.image import EVENT, ORIGIN
from calque.core.images.own_parameters import CONNECTED_TO, is_link
from calque.engine.target.origin_registry import known_at
from calque.errors import Refused, Unavailable
from calque.model.hive import Database, Table, is_view
from calque.model.names import TableName, table_name
from calque.plugins.remotes.core.definitions import (
    COPY,
    DATA,
    URIS,
    VIA,
    client_of,
    link_of,
    link_of_parameters,
    parameters_of,
)
from calque.plugins.remotes.core.objects import empty_location, unfilled_table
from calque.plugins.remotes.core.permission import refusal
from calque.plugins.remotes.model import LinkDefinition
from calque.plugins.remotes.run.link_states import NOT_FOLLOWED
from calque.plugins.remotes.run.reconcile_links import drop_link, is_followed, look, objects_of
from calque.plugins.remotes.statements.kinds import (
    CreateRemoteDatabase,
    CreateRemoteTable,
    DropRemoteDatabase,
    DropRemoteTable,
    SetDatabaseProperties,
    SetRemoteData,
    SetTableProperties,
)
from calque.plugins.remotes.wiring.clients import forms
from calque.plugins.remotes.wiring.remotes import RemotesWiring, remotes_at, source_of
from calque.ports import CatalogReader, Conflict
from calque.statements.result import NO_RESULT, Result
from calque.statements.session import Session
from calque.statements.statement import QualifiedTable

DEFAULT = "default"
TRIES = 5
Kind = str
TABLE, DATABASE = "table", "database"


def create_remote_table(statement: CreateRemoteTable, session: Session) -> Result:
    """Execute a CREATE REMOTE TABLE. Raises `Refused` for a link that can't be made, and `Unavailable` where a catalog
    does not answer."""
    remotes = remotes_at(session.wiring)
    local = local_name(statement.table, session)
    connected_to = None
    if statement.connected_to is not None:
        remote = statement.connected_to
        connected_to = str(table_name(remote.database or local.database, remote.table))
    link = link_of(local, connected_to, statement.via, statement.properties, forms())
    if is_there(remotes, local, statement.if_not_exists):
        return NO_RESULT
    catalog = remotes.catalog()
    database = catalog.database(local.database)
    if database is None:
        raise Refused(f"There is no local database {local.database}", "", f"Make it: CREATE DATABASE {local.database}")
    require_permitted(remotes, link)
    remote_catalog = remotes.remote_catalog(link.endpoint)
    require_other(remotes, link)
    table = remote_catalog.table(link.remote)
    if table is None:
        raise missing(link, TABLE)
    if problem := obstacle(table):
        raise Refused(f"{link.remote} can't be linked", problem, "Link another table")
    require_no_ring(remotes, link, table.parameters, remote_catalog)
    grant(remotes, link)
    bare = unfilled_table(local, table, parameters_of(link), empty_location(database, local.table))
    try:
        catalog.create_table(replace(bare, owner=database.owner or table.owner, owner_type=database.owner_type))
    except Conflict as error:
        raise taken(local, error) from error
    look(remotes, [local])
    tell_if_waiting(remotes, local, session)
    return NO_RESULT


def create_remote_database(statement: CreateRemoteDatabase, session: Session) -> Result:
    """Execute a CREATE REMOTE DATABASE. Raises as `create_remote_table`."""
    remotes = remotes_at(session.wiring)
    local = table_name(statement.database)
    link = link_of(local, statement.connected_to, statement.via, statement.properties, forms())
    if is_there(remotes, local, statement.if_not_exists):
        return NO_RESULT
    require_permitted(remotes, link)
    remote_catalog = remotes.remote_catalog(link.endpoint)
    require_other(remotes, link)
    database = remote_catalog.database(link.remote.database)
    if database is None:
        raise missing(link, DATABASE)
    require_no_ring(remotes, link, database.parameters, remote_catalog)
    grant(remotes, link)
    try:
        remotes.catalog().create_database(
            Database(local.database, database.description, None, parameters_of(link), database.owner)
        )
    except Conflict as error:
        raise taken(local, error) from error
    look(remotes, [local])
    tell_if_waiting(remotes, local, session)
    return NO_RESULT


def tell_if_waiting(remotes: RemotesWiring, local: TableName, session: Session) -> None:
    """Say that a new link stays empty, where no process follows links."""
    if not is_followed(remotes):
        session.note(f"{local} is linked, and empty. {NOT_FOLLOWED}. Start one: it fills the link")


def drop_remote_table(statement: DropRemoteTable, session: Session) -> Result:
    """Execute a DROP REMOTE TABLE: the local object is dropped, and nothing changes at the remote catalog. Raises
    `Refused` for an object that is no link, and `Unavailable` where it could not be dropped."""
    remotes = remotes_at(session.wiring)
    local = local_name(statement.table, session)
    if linked_object(remotes, local, statement.if_exists) is None:
        return NO_RESULT
    try:
        remotes.catalog().drop_table(local)
    except Conflict as error:
        if objects_of(remotes.catalog(), [local])[local] is not None:
            raise Unavailable(f"{local} was not dropped", str(error), "Say it again") from error
    look(remotes, [local])
    return NO_RESULT


def drop_remote_database(statement: DropRemoteDatabase, session: Session) -> Result:
    """Execute a DROP REMOTE DATABASE: the linked tables in the database are dropped, and the database with them. Where
    it has other tables, it stays with these, and is no link any more. Raises `Refused` for an object that is no link,
    and `Unavailable`."""
    remotes = remotes_at(session.wiring)
    local = table_name(statement.database)
    if linked_object(remotes, local, statement.if_exists) is None:
        return NO_RESULT
    drop_link(remotes, local)
    look(remotes, [local])
    return NO_RESULT


def set_table_properties(statement: SetTableProperties, session: Session) -> Result:
    """Execute an ALTER REMOTE TABLE SET TBLPROPERTIES. Raises `Refused` for an object that is no link, and for invalid
    settings."""
    return alter(session, local_name(statement.table, session), statement.properties)


def set_database_properties(statement: SetDatabaseProperties, session: Session) -> Result:
    return alter(session, table_name(statement.database), statement.properties)


def set_remote_data(statement: SetRemoteData, session: Session) -> Result:
    """Execute an ALTER REMOTE TABLE SET DATA: the link's files are copied from then on, or read where they are. Raises
    `Refused` where there is no place for copies."""
    remotes = remotes_at(session.wiring)
    local = local_name(statement.table, session)
    linked_object(remotes, local, False)
    if statement.data == COPY and not remotes.keys.warehouse:
        todo = 'Write warehouse = "…" below [remotes], where copies lie'
        raise Refused("There is no place for copies", "[remotes] names no warehouse", todo)
    with remotes.lock():
        registry = remotes.registry()
        copied = registry.copied | {local} if statement.data == COPY else registry.copied - {local}
        remotes.put(replace(registry, copied=copied))
    put_parameters(remotes, local, {DATA: COPY if statement.data == COPY else ""})
    look(remotes, [local])
    return NO_RESULT


def alter(session: Session, local: TableName, properties: Mapping[str, str]) -> Result:
    """Change the settings of the link to those of `properties`; an empty value removes a setting, and settings that are
    not named stay. Raises `Refused` for an object that is no link, for wrong settings, and for an address that is not
    permitted, and `Unavailable`."""
    remotes = remotes_at(session.wiring)
    one = linked_object(remotes, local, False)
    assert one is not None
    before = link_of_parameters(local, one.parameters or {}, forms())
    new = {key: value for key, value in properties.items() if key not in (CONNECTED_TO, VIA)}
    via = properties.get(VIA) or before.endpoint.via
    settings = {**dict(before.endpoint.settings), **new}
    link = link_of(local, properties.get(CONNECTED_TO) or str(before.remote), via, settings, forms())
    if names_address(link, new) or before.endpoint in remotes.registry().granted:
        require_permitted(remotes, link)
        require_other(remotes, link)
        grant(remotes, link)
    else:
        remotes.require_permitted(link.endpoint)
    now = parameters_of(replace(link, data=before.data))
    put_parameters(remotes, local, {**dict.fromkeys(parameters_of(before), ""), **now})
    look(remotes, [local])
    return NO_RESULT


def names_address(link: LinkDefinition, named: Mapping[str, str]) -> bool:
    """Tell whether the statement itself names all settings that say where the link leads. An address that only
    parameters name is not the operator's word, and is not allowed by the statement."""
    client = client_of(link.endpoint.via, forms())
    settings = {client.addresses, client.route, client.path} & dict(link.endpoint.settings).keys()
    return settings <= named.keys()


def put_parameters(remotes: RemotesWiring, local: TableName, parameters: Mapping[str, str]) -> None:
    """Set these parameters of the link; an empty value removes one. A projection may write the object meanwhile: then
    the call tries again. Raises `Unavailable` after `TRIES` attempts."""
    catalog = remotes.catalog()
    for attempt in range(TRIES):
        one = linked_object(remotes, local, False)
        assert one is not None
        merged = {**(one.parameters or {}), **parameters}
        now = {key: value for key, value in merged.items() if value or key not in parameters}
        try:
            if isinstance(one, Table):
                event = (one.parameters or {}).get(EVENT, "")
                catalog.alter_table(local, replace(one, parameters=now), expected_event=event)
            else:
                catalog.alter_database(local.database, replace(one, parameters=now))
        except Conflict as error:
            if attempt + 1 == TRIES:
                raise Unavailable(f"{local} changes all the time", str(error), "Say it again") from error
        else:
            return


# What they share


def local_name(table: QualifiedTable, session: Session) -> TableName:
    return table_name(table.database or session.database or DEFAULT, table.table)


def is_there(remotes: RemotesWiring, local: TableName, if_not_exists: bool) -> bool:
    """Tell whether the link exists already and IF NOT EXISTS permits that. Raises `Refused` for another object of the
    name, and for an existing link without IF NOT EXISTS."""
    one = objects_of(remotes.catalog(), [local])[local]
    if one is None:
        return False
    kind = TABLE if local.table else DATABASE
    if not is_link(one.parameters):
        noun = "view" if isinstance(one, Table) and is_view(one) else kind
        todo = f"Give the remote {kind} another name: CREATE REMOTE {kind.upper()} other CONNECTED TO {local}"
        raise Refused(f"{local} exists already", f"It is a {noun} of the local catalog, and no link", todo)
    if not if_not_exists:
        raise Refused(f"The remote {kind} {local} exists already", "", "Write IF NOT EXISTS, or drop it")
    return True


def linked_object(remotes: RemotesWiring, local: TableName, if_exists: bool) -> Table | Database | None:
    """Return the local object of the name, which is a link; None where there is no object and IF EXISTS permits that.
    Raises `Refused` for an object that is no link, and for a missing one without IF EXISTS."""
    one = objects_of(remotes.catalog(), [local])[local]
    kind = TABLE if local.table else DATABASE
    if one is None:
        if if_exists:
            return None
        raise Refused(f"There is no remote {kind} {local}", "", f"See SHOW REMOTE {kind.upper()}S")
    if not is_link(one.parameters):
        raise Refused(f"{local} is no remote {kind}", "It is the local catalog's own", f"Write DROP {kind.upper()}")
    return one


def require_permitted(remotes: RemotesWiring, link: LinkDefinition) -> None:
    """Raise `Refused` for an endpoint that no statement can allow either, such as the local metastore, and for an
    invalid address."""
    keys = remotes.keys
    client = client_of(link.endpoint.via, forms())
    refused = refusal(link.endpoint, client, {link.endpoint}, keys.allow, keys.lent(), keys.metastore)
    if refused is not None:
        raise refused
    source_of(keys, link.endpoint, far_only=False)


def require_other(remotes: RemotesWiring, link: LinkDefinition) -> None:
    """Raise `Refused` where the remote catalog is the local one under another address, as both have one id."""
    identity = remotes.remote_catalog(link.endpoint).identity()
    if identity and identity == remotes.catalog().identity():
        todo = "Name another metastore, or make a view"
        raise Refused("The link leads to the local metastore itself", "Both have one id", todo)


def require_no_ring(
    remotes: RemotesWiring, link: LinkDefinition, parameters: Mapping[str, str] | None, remote_catalog: CatalogReader
) -> None:
    """Raise `Refused` where the remote object is itself a link into the local catalog, or came from there."""
    own = remotes.catalog().identity()
    own_names = {one.name for one in known_at(remote_catalog) if own and one.id == own}
    addresses = tuple(part.strip() for part in (parameters or {}).get(URIS, "").split(","))
    leads_here = is_link(parameters) and one_metastore(addresses, remotes.keys.metastore)
    if leads_here or own_names & set((parameters or {}).get(ORIGIN, "").split(",")):
        what = f"{link.remote} shows what is here already"
        raise Refused(what, "A link to it would go round in a ring", "Link what it stands for, or make a view")


def grant(remotes: RemotesWiring, link: LinkDefinition) -> None:
    with remotes.lock():
        registry = remotes.registry()
        remotes.put(replace(registry, granted=registry.granted | {link.endpoint}, made=registry.made | {link.local}))


def taken(local: TableName, error: Conflict) -> Refused:
    return Refused(f"{local} was not made", str(error), "Somebody may have made it just now: look, and say it again")


def missing(link: LinkDefinition, kind: Kind) -> Refused:
    settings = dict(link.endpoint.settings)
    where = settings.get(client_of(link.endpoint.via, forms()).addresses, link.endpoint.via)
    return Refused(f"There is no {kind} {link.remote} at {where}", "", "Name one that is there with CONNECTED TO")
