"""Carry a statement out: each kind has its executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from calque.errors import Refused
from calque.plugins.audit.core import audit_relations
from calque.plugins.audit.statements import run_audit
from calque.plugins.clusters.statements import (
    alter_secondary,
    explain_cluster,
    run_on_cluster,
    show_clusters,
    show_clusters_of_table,
    use_cluster,
)
from calque.plugins.delta_replicas.statements import show_versions
from calque.plugins.dumps.statements.export_import import run_export, run_import
from calque.plugins.dumps.statements.repl_dump import repl_dump
from calque.plugins.dumps.statements.repl_load import repl_load, repl_load_directory
from calque.plugins.dumps.statements.repl_status import repl_status
from calque.plugins.marks.statements import mark_set_done, show_sets_done
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
from calque.statements.forms import HELP_COLUMNS, forms_of
from calque.statements.misread import shortened
from calque.statements.parse import parse
from calque.statements.result import NO_RESULT, AnyResult, Result, result_of
from calque.statements.session import Session
from calque.statements.show import show_epochs, show_tables, show_targets
from calque.statements.statement import (
    AddSecondaryCluster,
    CreateRemoteDatabase,
    CreateRemoteTable,
    DescribeRemoteDatabase,
    DescribeRemoteTable,
    DropRemoteDatabase,
    DropRemoteTable,
    DropSecondaryCluster,
    EngineStatement,
    ExplainCluster,
    ExportTable,
    Help,
    ImportTable,
    MarkSetDone,
    ReplDump,
    ReplLoad,
    ReplLoadDirectory,
    ReplStatus,
    SetDatabaseProperties,
    SetRemoteData,
    SetTableProperties,
    ShowClusters,
    ShowClustersOfTable,
    ShowEpochs,
    ShowRemoteDatabases,
    ShowRemoteTables,
    ShowSetsDone,
    ShowTables,
    ShowTargets,
    ShowVersions,
    Statement,
    UseCluster,
    UseDatabase,
)


def run(text: str, session: Session) -> Iterator[tuple[str, AnyResult]]:
    """The statements of the text one after another, each with its result. Nothing is carried out before the whole text
    was parsed; the first statement that fails is the last one. Raises what `parse` and `execute` raise."""
    for parsed in parse(text):
        session.report(parsed.text)
        yield parsed.text, execute(parsed.statement, session)


def execute(statement: Statement, session: Session) -> AnyResult:
    """Raises `Refused`, `Unavailable` and `Broken` as the commands do."""
    match statement:
        case ShowTargets():
            return show_targets(session)
        case ShowTables():
            return show_tables(statement, session)
        case ShowEpochs():
            return show_epochs(statement, session)
        case MarkSetDone():
            return mark_set_done(statement, session)
        case ShowSetsDone():
            return show_sets_done(statement, session)
        case ReplDump():
            return repl_dump(statement, session)
        case ReplLoadDirectory():
            return repl_load_directory(statement, session)
        case ReplLoad():
            return repl_load(statement, session)
        case ExportTable():
            return run_export(statement, session)
        case ImportTable():
            return run_import(statement, session)
        case ReplStatus():
            return repl_status(statement, session)
        case CreateRemoteTable():
            return create_remote_table(statement, session)
        case CreateRemoteDatabase():
            return create_remote_database(statement, session)
        case DropRemoteTable():
            return drop_remote_table(statement, session)
        case DropRemoteDatabase():
            return drop_remote_database(statement, session)
        case SetTableProperties():
            return set_table_properties(statement, session)
        case SetDatabaseProperties():
            return set_database_properties(statement, session)
        case SetRemoteData():
            return set_remote_data(statement, session)
        case ShowRemoteTables():
            return show_remote_tables(statement, session)
        case ShowRemoteDatabases():
            return show_remote_databases(statement, session)
        case DescribeRemoteTable():
            return describe_remote_table(statement, session)
        case DescribeRemoteDatabase():
            return describe_remote_database(statement, session)
        case UseDatabase():
            session.database = statement.database
            return NO_RESULT
        case UseCluster():
            return use_cluster(statement, session)
        case ShowClusters():
            return show_clusters(session)
        case ShowClustersOfTable():
            return show_clusters_of_table(statement, session)
        case ExplainCluster():
            return explain_cluster(statement, session)
        case AddSecondaryCluster() | DropSecondaryCluster():
            return alter_secondary(statement, session)
        case Help():
            return help_on(statement)
        case EngineStatement():
            relations = audit_relations(statement.text, session.database)
            if relations is not None:
                return run_audit(statement, relations, session)
            if not session.wiring.config.clusters:
                raise no_engine(statement)
            return run_on_cluster(statement, session)
        case ShowVersions():
            return show_versions(statement, session)
        case _:
            assert_never(statement)


def help_on(statement: Help) -> Result:
    topic = (statement.topic or "").rstrip()
    forms = forms_of(topic)
    if not forms:
        raise Refused(
            f'No statement begins with "{shortened(topic)}"', "HELP takes how one begins", "Write HELP for all of them"
        )
    return result_of(HELP_COLUMNS, ({"statement": form.syntax, "does": form.does} for form in forms))


def no_engine(statement: EngineStatement) -> Refused:
    """Names calque's own statement that begins alike: `SHOW TABLES` may lack its AT."""
    words = statement.text.split()[:2]
    own_forms = forms_of(" ".join(words))
    if own_forms:
        what, todo = " ".join(words), f"calque's own is {own_forms[0].syntax}"
    else:
        what, todo = words[0], "HELP shows calque's own statements"
    why = "The configuration has no [clusters] that it could run on"
    return Refused(f'"{shortened(what)}" begins a statement for an engine', why, todo)
