"""The local catalog as a projection of links writes it: an object that is a link stays a link, even when the remote
object that it stands for is dropped or renamed.

The engine does not know of links. It drops, makes and renames what the remote catalog drops, makes and renames. These
parts change its calls: a link that would be dropped is emptied, a link that would be made is filled, and a rename
leaves an empty link behind. For the engine a link that is not filled is missing. No call here makes a link that does
not exist, because a user who drops a link has ended it. Some changes take the catalog several calls, between which the
link is missing. `MissingLinks` records the link before them, so that the process that follows links does not take the
missing object for the end of the link.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from calque.core.images.own_parameters import is_link
from calque.core.images.views import names_in, parsed
from calque.core.plan.limits import batches
from calque.errors import CalqueError, Refused
from calque.model.files import Listing
from calque.model.hive import Database, Table, is_partitioned, is_view
from calque.model.names import OURS, TableName
from calque.plugins.remotes.core.objects import (
    Parameters,
    as_link,
    can_become,
    empty_location,
    is_unfilled_link,
    unfilled_table,
    unmarked,
    without_this,
)
from calque.ports import Conflict, Databases, TableCommit, Tables, TargetParts

LOG = logging.getLogger(__name__)
AT_ONCE = 1000
"""The most partitions that one call drops."""


class MissingLinks(Protocol):
    """The links that are missing for a moment while calls change them, each as it is when it is not filled. The record
    survives the death of the process."""

    def put(self, link: Table) -> None: ...

    def remove(self, name: TableName) -> None: ...

    def __contains__(self, name: TableName) -> bool: ...

    def __iter__(self) -> Iterator[Table]: ...


def linked_parts(
    parts: TargetParts,
    links: Mapping[TableName, Parameters],
    is_linked: Callable[[TableName], bool],
    make_directories: Callable[[Sequence[str]], None],
    missing_links: MissingLinks,
) -> TargetParts:
    """Return the parts of a target that is a projection of links. `links` has the parameters of each link of the
    projection, by local name. `is_linked` tells whether the projection has an object under a local name.
    `make_directories` makes the empty directories at which links show nothing."""
    tables = LinkedTables(parts, links, is_linked, make_directories, missing_links)
    return replace(parts, databases=LinkedDatabases(parts.databases, links), tables=tables)


class LinkedDatabases:
    """The databases of the local catalog, as `ports.Databases`; those in `links` are links."""

    def __init__(self, local: Databases, links: Mapping[TableName, Parameters]) -> None:
        self._local, self._links = local, links

    def databases(self) -> Sequence[str]:
        return self._local.databases()

    def database(self, name: str) -> Database | None:
        database, link = self._local.database(name), self._links.get(TableName(name))
        if database is None or link is None:
            return database
        if is_unfilled_link(database.parameters, link):
            return None
        return replace(database, parameters=without_this(database.parameters, link))

    def create_database(self, database: Database) -> None:
        link = self._links.get(TableName(database.name))
        if link is None:
            self._local.create_database(database)
            return
        at_target = self._local.database(database.name)
        if at_target is None or not is_unfilled_link(at_target.parameters, link):
            raise Conflict(f"database {database.name} is no link that could be filled")
        parameters = as_link(database.parameters, link)
        # With the owner that is there where the source has none: Hive 4 can't take one away.
        owner = database if database.owner else at_target
        self._local.alter_database(
            database.name,
            replace(
                database,
                parameters=parameters,
                location=at_target.location,
                managed_location=at_target.managed_location,
                owner=owner.owner,
                owner_type=owner.owner_type,
            ),
        )

    def alter_database(self, name: str, database: Database) -> None:
        link = self._links.get(TableName(name))
        if link is not None:
            database = replace(database, parameters=as_link(database.parameters, link))
        self._local.alter_database(name, database)

    def drop_database(self, name: str) -> None:
        link = self._links.get(TableName(name))
        database = self._local.database(name)
        if link is None:
            require_no_link(name, database)
            self._local.drop_database(name)
            return
        if database is None:
            raise Conflict(f"database {name} does not exist")
        parameters = as_link(unmarked(database.parameters), link)
        self._local.alter_database(name, replace(database, parameters=parameters))


class LinkedTables:
    """The tables of the local catalog, as `ports.Tables`. `links` has the parameters of those that are links of this
    projection, by name. `is_linked` tells of any name whether it is that of a link: a view that reads a table which is
    not linked is refused. `make_directories` makes the directory of a link that becomes empty, and `missing_links`
    records links that are missing between two calls."""

    def __init__(
        self,
        parts: TargetParts,
        links: Mapping[TableName, Parameters],
        is_linked: Callable[[TableName], bool],
        make_directories: Callable[[Sequence[str]], None],
        missing_links: MissingLinks,
    ) -> None:
        self._parts, self._local = parts, parts.tables
        self._links, self._is_linked, self._make_directories = links, is_linked, make_directories
        self._missing_links = missing_links

    # What the engine sees

    def tables(self, database: str) -> Sequence[str]:
        return self._local.tables(database)

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        return self._local.contents(table, partitions)

    def table(self, name: TableName) -> Table | None:
        table = self._local.table(name)
        return table if table is None else self._shown(name, table)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = self._local.headers(database, names)
        shown = {name: self._shown(TableName(database, name), table) for name, table in tables.items()}
        return {name: table for name, table in shown.items() if table is not None}

    def _shown(self, name: TableName, table: Table) -> Table | None:
        link = self._links.get(name)
        if link is None:
            return table
        if is_unfilled_link(table.parameters, link):
            return None
        return replace(table, parameters=without_this(table.parameters, link))

    # Changes

    def commit_table(self, commit: TableCommit) -> None:
        self._local.commit_table(commit)

    def settle(self, table: Table) -> None:
        self._local.settle(table)

    def create_table(self, table: Table) -> None:
        name = TableName(table.database, table.name)
        link = self._links.get(name)
        self._require_bases(table)
        if link is None:
            self._local.create_table(table)
            return
        at_target = self._to_fill(name, link)
        filled = replace(table, parameters=as_link(table.parameters, link))
        if at_target is not None and can_become(at_target, filled):
            self._local.alter_table(name, filled)
            self._missing_links.remove(name)
            return
        with self._missing(name, at_target):
            if at_target is not None:
                self._local.drop_table(name)
            self._local.create_table(filled)

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        new_name = TableName(table.database.lower(), table.name.lower())
        link, new_link = self._links.get(name), self._links.get(new_name)
        self._require_bases(table)
        if new_link is not None:
            table = replace(table, parameters=as_link(table.parameters, new_link))
        if new_name != name and link is None and not name.database.startswith(OURS):
            require_no_link(name, self._local.table(name))
        if new_name == name:
            self._local.alter_table(name, table, cascade=cascade, expected_event=expected_event)
            return
        left = unfilled_table(name, table, link, self._place(name)) if link is not None else None
        to_fill = self._to_fill(new_name, new_link) if new_link is not None else None
        with ExitStack() as missing:
            if left is not None:
                missing.enter_context(self._missing(name, left))
            if new_link is not None:
                missing.enter_context(self._missing(new_name, to_fill))
            if to_fill is not None:
                self._local.drop_table(new_name)
            self._local.alter_table(name, table, cascade=cascade, expected_event=expected_event)
            if left is not None:
                self._local.create_table(left)

    def drop_table(self, name: TableName) -> None:
        link = self._links.get(name)
        table = self._local.table(name)
        if link is None:
            require_no_link(name, table)
            self._local.drop_table(name)
        else:
            if table is None:
                raise Conflict(f"{name} does not exist")
            empty(self._parts, name, table, link, self._place(name), self._make_directories, self._missing_links)

    def _to_fill(self, name: TableName, link: Parameters) -> Table | None:
        """Return the unfilled link as it stands in the catalog, or None where it is in hand since a process died.
        Raises `Conflict` for every other object, and where there is none."""
        at_target = self._local.table(name)
        if at_target is None and name in self._missing_links:
            return None
        if at_target is None or not is_unfilled_link(at_target.parameters, link):
            raise Conflict(f"{name} is no link that could be filled")
        return at_target

    def _missing(self, name: TableName, link: Table | None) -> AbstractContextManager[None]:
        return missing_for_a_moment(self._local, self._missing_links, name, link)

    def _require_bases(self, table: Table) -> None:
        """Raise `Refused` for a view that would read local tables here in place of the remote ones: a table that it
        names is not linked, or its text can't be read."""
        if is_view(table) and not table.database.startswith(OURS):
            text = table.view_expanded_text or table.view_original_text or ""
            if parsed(text) is None:
                why = "The tables that it reads are not known, and may be called otherwise here"
                raise Refused(
                    f"The text of the view {table.database}.{table.name} can't be read", why, "Link its tables"
                )
            for base in sorted(names_in(text, table.database)):
                if not self._is_linked(base):
                    why = "The view would read another table here than at the remote catalog"
                    raise Refused(f"{base} is not linked", why, "Link the tables that the view reads, then the view")

    def _place(self, name: TableName) -> str:
        database = self._parts.databases.database(name.database)
        return empty_location(database or Database(name.database), name.table)


def empty(
    parts: TargetParts,
    name: TableName,
    table: Table,
    link: Parameters,
    location: str,
    make_directories: Callable[[Sequence[str]], None],
    missing_links: MissingLinks,
) -> None:
    """Make a filled link an unfilled one: drop its partitions, then let its definition show `location`, where nothing
    lies. Where the metastore can't alter the table so, it is dropped and made again, in hand meanwhile."""
    if is_partitioned(table):
        for batch in batches(list(parts.partitions.partition_names(name)), AT_ONCE):
            parts.partitions.drop_partitions(name, batch)
    bare = unfilled_table(name, table, link, location)
    if not can_become(table, bare):
        with missing_for_a_moment(parts.tables, missing_links, name, bare):
            parts.tables.drop_table(name)
            parts.tables.create_table(bare)
        return
    try:
        make_directories([location])
    except CalqueError as error:
        LOG.warning("%s is not made, where the link %s shows nothing: %s", location, name, error)
    parts.tables.alter_table(name, bare)


@contextmanager
def missing_for_a_moment(
    tables: Tables, missing_links: MissingLinks, name: TableName, link: Table | None
) -> Iterator[None]:
    """Keep the link in hand for the block, whose calls leave the link missing in between. `link` is the link as it is
    when it is not filled; None where it is in hand already. It stays in hand where the block raises, except for a
    `Conflict` that leaves an object of the name in the catalog."""
    if link is not None:
        missing_links.put(link)
    try:
        yield
    except Conflict:
        if tables.table(name) is not None:
            missing_links.remove(name)
        raise
    missing_links.remove(name)


def put_back(tables: Tables, missing_links: MissingLinks) -> None:
    """Make the links again that were in hand, and missing, when a process died. No other writer may change links
    meanwhile. Raises `Unavailable`, `Broken`."""
    for link in missing_links:
        name = TableName(link.database, link.name)
        with suppress(Conflict):
            if tables.table(name) is None:
                tables.create_table(link)
                LOG.warning("%s is made again: a process ended while it changed the link", name)
        missing_links.remove(name)


def require_no_link(name: object, one: Table | Database | None) -> None:
    """Raise `Conflict` where the object is a link of another projection, or one that is set aside."""
    if one is not None and is_link(one.parameters):
        raise Conflict(f"{name} is a link, and not of this projection")
