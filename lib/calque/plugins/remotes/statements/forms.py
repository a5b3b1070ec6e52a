"""The table of the forms of statements over links."""

from __future__ import annotations

from importlib.resources import files

from calque.plugins.remotes.statements.kinds import (
    DESCRIBE_COLUMNS,
    REMOTE_COLUMNS,
    CreateRemoteDatabase,
    CreateRemoteTable,
    DescribeRemoteDatabase,
    DescribeRemoteTable,
    DropRemoteDatabase,
    DropRemoteTable,
    SetDatabaseProperties,
    SetRemoteData,
    SetTableProperties,
    ShowRemoteDatabases,
    ShowRemoteTables,
)
from calque.statements.forms import Executors, Form, Statements


def executors() -> Executors:
    from calque.plugins.remotes.statements.change_links import (
        create_remote_database,
        create_remote_table,
        drop_remote_database,
        drop_remote_table,
        set_database_properties,
        set_remote_data,
        set_table_properties,
    )
    from calque.plugins.remotes.statements.show_links import (
        describe_remote_database,
        describe_remote_table,
        show_remote_databases,
        show_remote_tables,
    )

    return Executors(
        {
            CreateRemoteTable: create_remote_table,
            CreateRemoteDatabase: create_remote_database,
            DropRemoteTable: drop_remote_table,
            DropRemoteDatabase: drop_remote_database,
            SetTableProperties: set_table_properties,
            SetDatabaseProperties: set_database_properties,
            SetRemoteData: set_remote_data,
            ShowRemoteTables: show_remote_tables,
            ShowRemoteDatabases: show_remote_databases,
            DescribeRemoteTable: describe_remote_table,
            DescribeRemoteDatabase: describe_remote_database,
        }
    )


STATEMENTS = Statements(
    grammar=files("calque.plugins.remotes").joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="create_remote_table",
            kind=CreateRemoteTable,
            syntax="CREATE REMOTE TABLE [IF NOT EXISTS] t [CONNECTED TO t] [VIA 'client'] "
            "[WITH TBLPROPERTIES ('k' = 'v', …)]",
            does="links a table of another catalog into the local one",
            columns=(),
            example="CREATE REMOTE TABLE sales.orders CONNECTED TO shop.orders VIA 'thrift'",
        ),
        Form(
            rule="create_remote_database",
            kind=CreateRemoteDatabase,
            syntax="CREATE REMOTE DATABASE [IF NOT EXISTS] db [CONNECTED TO db] [VIA 'client'] "
            "[WITH DBPROPERTIES ('k' = 'v', …)]",
            does="links a database of another catalog into the local one",
            columns=(),
            example="CREATE REMOTE DATABASE IF NOT EXISTS shop",
        ),
        Form(
            rule="drop_remote_table",
            kind=DropRemoteTable,
            syntax="DROP REMOTE TABLE [IF EXISTS] t",
            does="removes the link of a table",
            columns=(),
            example="DROP REMOTE TABLE sales.orders",
        ),
        Form(
            rule="drop_remote_database",
            kind=DropRemoteDatabase,
            syntax="DROP REMOTE DATABASE [IF EXISTS] db",
            does="removes the link of a database",
            columns=(),
            example="DROP REMOTE DATABASE IF EXISTS shop",
        ),
        Form(
            rule="set_table_properties",
            kind=SetTableProperties,
            syntax="ALTER REMOTE TABLE t SET TBLPROPERTIES ('k' = 'v', …)",
            does="changes the configuration of a table's link",
            columns=(),
            example="ALTER REMOTE TABLE sales.orders SET TBLPROPERTIES ('hive.metastore.uris' = 'thrift://127.0.0.1:9083')",
        ),
        Form(
            rule="set_database_properties",
            kind=SetDatabaseProperties,
            syntax="ALTER REMOTE DATABASE db SET DBPROPERTIES ('k' = 'v', …)",
            does="changes the configuration of a database's link",
            columns=(),
            example="ALTER REMOTE DATABASE shop SET DBPROPERTIES ('hive.metastore.uris' = 'thrift://127.0.0.1:9083')",
        ),
        Form(
            rule="set_remote_data",
            kind=SetRemoteData,
            syntax="ALTER REMOTE TABLE t SET DATA COPY | NONE",
            does="makes a link a replica with files of its own, or a link again",
            columns=(),
            example="ALTER REMOTE TABLE sales.orders SET DATA COPY",
        ),
        Form(
            rule="show_remote_tables",
            kind=ShowRemoteTables,
            syntax="SHOW REMOTE TABLES [IN db] [LIKE 'pattern']",
            does="linked tables and their states",
            columns=REMOTE_COLUMNS,
            example="SHOW REMOTE TABLES IN sales",
        ),
        Form(
            rule="show_remote_databases",
            kind=ShowRemoteDatabases,
            syntax="SHOW REMOTE DATABASES [LIKE 'pattern']",
            does="linked databases and their states",
            columns=REMOTE_COLUMNS,
            example="SHOW REMOTE DATABASES",
        ),
        Form(
            rule="describe_remote_table",
            kind=DescribeRemoteTable,
            syntax="DESCRIBE [EXTENDED] REMOTE TABLE t",
            does="a linked table as the other catalog has it, and its link's configuration",
            columns=DESCRIBE_COLUMNS,
            example="DESCRIBE EXTENDED REMOTE TABLE sales.orders",
        ),
        Form(
            rule="describe_remote_database",
            kind=DescribeRemoteDatabase,
            syntax="DESCRIBE [EXTENDED] REMOTE DATABASE db",
            does="a linked database as the other catalog has it, and its link's configuration",
            columns=DESCRIBE_COLUMNS,
            example="DESCRIBE REMOTE DATABASE shop",
        ),
    ),
    executors=executors,
)
