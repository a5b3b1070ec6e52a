"""The statements `EXPORT`, which reads a table of the source, and `IMPORT`, which makes a table at a target."""

from __future__ import annotations

from calque.core.formats.layout import place
from calque.errors import Refused
from calque.model.names import table_name
from calque.plugins.dumps.engine.export_table import export_table
from calque.plugins.dumps.engine.import_table import ImportRequest, import_table
from calque.plugins.dumps.statements.kinds import ExportTable, ImportTable
from calque.plugins.dumps.wiring.dump_target import DumpWiring
from calque.statements.result import NO_RESULT, Result
from calque.statements.session import Session


def run_export(statement: ExportTable, session: Session) -> Result:
    """Execute an EXPORT. Raises `Refused` for a table without a database, a directory that is no place, and as
    `export_table` does, and `Unavailable`."""
    place(statement.directory)
    database = statement.table.database or session.database
    if database is None:
        table = statement.table.table
        raise Refused(f"{table} names no database", "No USE was said", f"Write default.{table}, or USE a database")
    wiring = DumpWiring(session.wiring)
    side, storage = wiring.side(None, captured=False), wiring.storage(statement.directory)
    export_table(side, storage, table_name(database, statement.table.table), statement.partition, statement.directory)
    return NO_RESULT


def run_import(statement: ImportTable, session: Session) -> Result:
    """Execute an IMPORT into the session's target. Raises `Refused` for a directory that is no place, a session without
    one target, and as `import_table` does, and `Unavailable`."""
    place(statement.directory)
    if statement.location:
        place(statement.location)
    target = session.wiring.target(session.only_target(None))
    table = statement.table
    request = ImportRequest(
        statement.directory,
        target.plug.keys.warehouse,
        (table.database if table is not None else None) or session.database,
        table.table if table is not None else None,
        statement.partition,
        statement.is_external,
        statement.location or "",
    )
    import_table(target.catalog_for_statements(), target.storage_for_statements(), request)
    return NO_RESULT
