"""The statements `SHOW REMOTE TABLES | DATABASES` and `DESCRIBE REMOTE TABLE | DATABASE`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from calque.core.policy.patterns import chosen
from calque.errors import Refused
from calque.model.hive import Column, Database, Table
from calque.model.names import TableName, table_name
from calque.plugins.remotes.core.definitions import link_of_parameters, parameters_of
from calque.plugins.remotes.model import LinkDefinition
from calque.plugins.remotes.run.link_states import LinkStates
from calque.plugins.remotes.statements.change_links import linked_object, local_name, missing
from calque.plugins.remotes.statements.kinds import (
    DESCRIBE_COLUMNS,
    REMOTE_COLUMNS,
    DescribeRemoteDatabase,
    DescribeRemoteTable,
    ShowRemoteDatabases,
    ShowRemoteTables,
)
from calque.plugins.remotes.wiring.clients import forms
from calque.plugins.remotes.wiring.remotes import remotes_at
from calque.statements.result import Result, Row, result_of
from calque.statements.session import Session


def show_remote_tables(statement: ShowRemoteTables, session: Session) -> Result:
    """Execute a SHOW REMOTE TABLES. The pattern of LIKE is compared with the table's own name, or with database.table
    where it has a dot. Raises `Refused` where the configuration has no `[remotes]`, and for a wrong pattern."""
    remotes_at(session.wiring)
    takes = likes(statement.pattern)

    def shown(row: Mapping[str, object]) -> bool:
        database, _, table = str(row["name"]).partition(".")
        return statement.database in (None, database) and takes(database, table)

    return result_of(REMOTE_COLUMNS, filter(shown, LinkStates(session.wiring).tables()))


def show_remote_databases(statement: ShowRemoteDatabases, session: Session) -> Result:
    remotes_at(session.wiring)
    takes = likes(statement.pattern)
    rows = (row for row in LinkStates(session.wiring).databases() if takes("", str(row["name"])))
    return result_of(REMOTE_COLUMNS, rows)


def likes(pattern: str | None) -> Callable[[str, str], bool]:
    """Return the function that tells whether a database and a table match the pattern: a glob in which `%` means `*`,
    as in Hive 4. Without a pattern all names match."""
    if pattern is None:
        return lambda _database, _name: True
    text = pattern.replace("%", "*").lower()
    if "." in text or text.startswith("/"):
        takes = chosen([text])
        return lambda database, name: takes(TableName(database, name))
    takes = chosen([f"*.{text}"])
    return lambda _database, name: takes(TableName("x", name))


def describe_remote_table(statement: DescribeRemoteTable, session: Session) -> Result:
    """Execute a DESCRIBE REMOTE TABLE: the rows are the table as the remote catalog has it now, and the link's
    configuration. Raises `Refused` as `link_named` does, and where the remote catalog has no such table, and
    `Unavailable` where it does not answer."""
    link = link_named(session, local_name(statement.table, session))
    table = remotes_at(session.wiring).permitted_catalog(link.endpoint).table(link.remote)
    if table is None:
        raise missing(link, "table")
    return Result(DESCRIBE_COLUMNS, (*of_table(table, statement.is_extended), *of_link(link)))


def describe_remote_database(statement: DescribeRemoteDatabase, session: Session) -> Result:
    link = link_named(session, table_name(statement.database))
    database = remotes_at(session.wiring).permitted_catalog(link.endpoint).database(link.remote.database)
    if database is None:
        raise missing(link, "database")
    return Result(DESCRIBE_COLUMNS, (*of_database(database, statement.is_extended), *of_link(link)))


def link_named(session: Session, local: TableName) -> LinkDefinition:
    """Return the definition of the link of this name. Raises `Refused` for an object that is no link, that is set
    aside, or that `run` has not looked at yet."""
    remotes = remotes_at(session.wiring)
    one = linked_object(remotes, local, False)
    assert one is not None
    record = remotes.registry().links.get(local)
    if record is not None and record.reason:
        raise Refused(f"The link {local} is set aside", record.reason, "Mend that first")
    if record is None:
        raise Refused(f"The link {local} is not known yet", "Nobody has looked at it", "Start `calque run`")
    return link_of_parameters(local, one.parameters or {}, forms())


def of_table(table: Table, is_extended: bool) -> Iterator[Row]:
    storage = table.storage
    keys = table.partition_keys or ()
    yield from map(of_column, (*((storage.columns if storage else None) or ()), *keys))
    if keys:
        yield from (heading("# Partition Information"), ("# col_name", "data_type", "comment"))
        yield from map(of_column, keys)
    if is_extended:
        yield from (heading(""), heading("# Detailed Table Information"))
        yield from (
            ("Database:", table.database, ""),
            ("Table:", table.name, ""),
            ("Owner:", table.owner or "", ""),
            ("Location:", (storage.location if storage else None) or "", ""),
            ("Table Type:", table.type or "", ""),
            ("SerDe Library:", (storage.serde.class_name if storage and storage.serde else None) or "", ""),
            ("InputFormat:", (storage.input_format if storage else None) or "", ""),
            ("OutputFormat:", (storage.output_format if storage else None) or "", ""),
        )
        if table.view_original_text:
            yield ("View Original Text:", table.view_original_text, "")
        yield from ((f"  {key}", value, "") for key, value in sorted((table.parameters or {}).items()))


def of_database(database: Database, is_extended: bool) -> Iterator[Row]:
    yield ("Database Name", database.name, "")
    yield ("Comment", database.description or "", "")
    yield ("Location", database.location or "", "")
    yield ("Owner", database.owner or "", "")
    if is_extended:
        yield from ((f"  {key}", value, "") for key, value in sorted((database.parameters or {}).items()))


def of_link(link: LinkDefinition) -> Iterator[Row]:
    """Return the rows with the link's configuration, which stand last."""
    yield from (heading(""), heading("# Remote Configuration"))
    yield from ((key, value, "") for key, value in sorted(parameters_of(link).items()))


def of_column(column: Column) -> Row:
    return (column.name, column.type, column.comment or "")


def heading(text: str) -> Row:
    return (text, "", "")
