"""The table of the forms of statements over dumps: REPL DUMP, REPL LOAD, REPL STATUS, EXPORT TABLE and IMPORT."""

from __future__ import annotations

from importlib.resources import files

from calque.plugins.dumps.statements.kinds import (
    ExportTable,
    ImportTable,
    ReplDump,
    ReplLoad,
    ReplLoadDirectory,
    ReplStatus,
)
from calque.statements.forms import Executors, Form, Statements


def executors() -> Executors:
    from calque.plugins.dumps.statements.export_import import run_export, run_import
    from calque.plugins.dumps.statements.repl_dump import repl_dump
    from calque.plugins.dumps.statements.repl_load import repl_load, repl_load_directory
    from calque.plugins.dumps.statements.repl_status import repl_status

    return Executors(
        {
            ReplDump: repl_dump,
            ReplLoadDirectory: repl_load_directory,
            ReplLoad: repl_load,
            ReplStatus: repl_status,
            ExportTable: run_export,
            ImportTable: run_import,
        }
    )


STATEMENTS = Statements(
    grammar=files("calque.plugins.dumps").joinpath("grammar.lark").read_text(encoding="utf-8"),
    forms=(
        Form(
            rule="repl_dump",
            kind=ReplDump,
            syntax="REPL DUMP policy [REPLACE policy] [FROM n [TO m]] [LIMIT k] [WITH ('k' = 'v', …)]",
            does="writes a database, or what changed in it, into a directory in Hive's layout",
            columns=("dump_dir", "last_repl_id"),
            example="REPL DUMP sales.['orders', 'items_.*'] FROM 700 LIMIT 1000",
        ),
        Form(
            rule="repl_load_directory",
            kind=ReplLoadDirectory,
            syntax="REPL LOAD [db] FROM 'dir' [WITH ('k' = 'v', …)]",
            does="loads a dump from a directory",
            columns=(),
            example="REPL LOAD sales FROM 'hdfs://ns/repl/57'",
        ),
        Form(
            rule="repl_load",
            kind=ReplLoad,
            syntax="REPL LOAD policy [INTO db] [WITH ('k' = 'v', …)]",
            does="loads the newest dump of a policy",
            columns=(),
            example="REPL LOAD sales INTO sales_dr",
        ),
        Form(
            rule="repl_status",
            kind=ReplStatus,
            syntax="REPL STATUS db [WITH ('k' = 'v', …)]",
            does="the event that a replica shows",
            columns=("last_repl_id",),
            example="REPL STATUS sales",
        ),
        Form(
            rule="export_table",
            kind=ExportTable,
            syntax="EXPORT TABLE t [PARTITION (k = 'v', …)] TO 'dir'",
            does="writes a table, or partitions of it, in Hive's layout",
            columns=(),
            example="EXPORT TABLE sales.orders PARTITION (ds = '2024-01-01') TO '/exports/orders'",
        ),
        Form(
            rule="import_table",
            kind=ImportTable,
            syntax="IMPORT [EXTERNAL] [TABLE t] [PARTITION (k = 'v', …)] FROM 'dir' [LOCATION 'uri']",
            does="reads what EXPORT TABLE wrote",
            columns=(),
            example="IMPORT EXTERNAL TABLE sales.orders FROM '/exports/orders'",
        ),
    ),
    executors=executors,
)
