"""How every kind of statement is written, what it does, and which columns its rows have: help, errors, the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.control.epoch_rows import EPOCH_FIELDS
from calque.plugins.marks.api.rows import SET_FIELDS
from calque.statements import statement as kinds


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of statement. `rule` is the grammar's, `name` what it is called, `example` a whole one."""

    rule: str
    kind: type[kinds.OwnStatement]
    name: str
    syntax: str
    does: str
    columns: Sequence[str]
    example: str


TARGET_COLUMNS = (
    *("target", "state", "position", "lag_events", "lag_seconds", "epoch"),
    *("live", "unknown", "reading", "staging", "waiting", "quarantined", "bridges", "last_error"),
)
TABLE_COLUMNS = ("table", "at_target", "state", "shows", "since_event", "reason")
REMOTE_COLUMNS = ("name", "connected_to", "via", "state", "event_id", "reason")
DESCRIBE_COLUMNS = ("col_name", "data_type", "comment")
MARK_COLUMNS = ("event_id",)
CLUSTER_COLUMNS = ("cluster", "metastore", "engine", "default", "reachable")
PLACEMENT_COLUMNS = (*("cluster", "role", "partitions_present", "partitions", "event_id", "lag_seconds", "location"),)
EXPLAIN_COLUMNS = ("cluster", "chosen", "reason")
VERSION_COLUMNS = ("version", "from_event", "event_id", "published_at")
HELP_COLUMNS = ("statement", "does")

FORMS = (
    Form(
        "show_targets",
        kinds.ShowTargets,
        "SHOW TARGETS",
        "SHOW TARGETS",
        "each target with its position, its lag and how many tables are in which state",
        TARGET_COLUMNS,
        "SHOW TARGETS",
    ),
    Form(
        "show_tables",
        kinds.ShowTables,
        "SHOW TABLES",
        "SHOW TABLES AT target [LIKE 'pattern']",
        "the tables of a target by their names at the source, with their states and the events that they show",
        TABLE_COLUMNS,
        "SHOW TABLES AT dr LIKE 'sales.*'",
    ),
    Form(
        "show_epochs",
        kinds.ShowEpochs,
        "SHOW EPOCHS",
        "SHOW EPOCHS [AT target]",
        "the epochs of a target's ledger, oldest first",
        EPOCH_FIELDS,
        "SHOW EPOCHS AT dr",
    ),
    Form(
        "mark_set_done",
        kinds.MarkSetDone,
        "MARK SET DONE",
        "MARK SET DONE t PARTITION (k = 'v', …)",
        "says that all partitions that match some keys are complete; gives the event that the mark stands behind",
        MARK_COLUMNS,
        "MARK SET DONE sales.orders PARTITION (ds = '2024-01-01')",
    ),
    Form(
        "show_sets_done",
        kinds.ShowSetsDone,
        "SHOW SETS DONE",
        "SHOW SETS DONE [t] [AT target]",
        "the sets of partitions that were marked as complete; with AT those that are complete there",
        SET_FIELDS,
        "SHOW SETS DONE sales.orders AT dr",
    ),
    Form(
        "use_database",
        kinds.UseDatabase,
        "USE",
        "USE db",
        "makes db the database of names and patterns that name none, until the session ends",
        (),
        "USE sales",
    ),
    Form(
        "help",
        kinds.Help,
        "HELP",
        "HELP [statement]",
        "how statements are written; those that begin so, where a beginning is named",
        HELP_COLUMNS,
        "HELP SHOW TABLES",
    ),
    Form(
        "repl_dump",
        kinds.ReplDump,
        "REPL DUMP",
        "REPL DUMP policy [REPLACE policy] [FROM n [TO m]] [LIMIT k] [WITH ('k' = 'v', …)]",
        "writes a database, or what changed in it, into a directory in Hive's layout",
        ("dump_dir", "last_repl_id"),
        "REPL DUMP sales.['orders', 'items_.*'] FROM 700 LIMIT 1000",
    ),
    Form(
        "repl_load_directory",
        kinds.ReplLoadDirectory,
        "REPL LOAD FROM",
        "REPL LOAD [db] FROM 'dir' [WITH ('k' = 'v', …)]",
        "loads a dump from a directory",
        (),
        "REPL LOAD sales FROM 'hdfs://ns/repl/57'",
    ),
    Form(
        "repl_load",
        kinds.ReplLoad,
        "REPL LOAD",
        "REPL LOAD policy [INTO db] [WITH ('k' = 'v', …)]",
        "loads the newest dump of a policy",
        (),
        "REPL LOAD sales INTO sales_dr",
    ),
    Form(
        "repl_status",
        kinds.ReplStatus,
        "REPL STATUS",
        "REPL STATUS db [WITH ('k' = 'v', …)]",
        "the event that a replica shows",
        ("last_repl_id",),
        "REPL STATUS sales",
    ),
    Form(
        "export_table",
        kinds.ExportTable,
        "EXPORT TABLE",
        "EXPORT TABLE t [PARTITION (k = 'v', …)] TO 'dir'",
        "writes a table, or partitions of it, in Hive's layout",
        (),
        "EXPORT TABLE sales.orders PARTITION (ds = '2024-01-01') TO '/exports/orders'",
    ),
    Form(
        "import_table",
        kinds.ImportTable,
        "IMPORT",
        "IMPORT [EXTERNAL] [TABLE t] [PARTITION (k = 'v', …)] FROM 'dir' [LOCATION 'uri']",
        "reads what EXPORT TABLE wrote",
        (),
        "IMPORT EXTERNAL TABLE sales.orders FROM '/exports/orders'",
    ),
    Form(
        "create_remote_table",
        kinds.CreateRemoteTable,
        "CREATE REMOTE TABLE",
        "CREATE REMOTE TABLE [IF NOT EXISTS] t [CONNECTED TO t] [VIA 'client'] [WITH TBLPROPERTIES ('k' = 'v', …)]",
        "links a table of another catalog into the local one",
        (),
        "CREATE REMOTE TABLE sales.orders CONNECTED TO shop.orders VIA 'thrift'",
    ),
    Form(
        "create_remote_database",
        kinds.CreateRemoteDatabase,
        "CREATE REMOTE DATABASE",
        "CREATE REMOTE DATABASE [IF NOT EXISTS] db [CONNECTED TO db] [VIA 'client'] [WITH DBPROPERTIES ('k' = 'v', …)]",
        "links a database of another catalog into the local one",
        (),
        "CREATE REMOTE DATABASE IF NOT EXISTS shop",
    ),
    Form(
        "drop_remote_table",
        kinds.DropRemoteTable,
        "DROP REMOTE TABLE",
        "DROP REMOTE TABLE [IF EXISTS] t",
        "removes the link of a table",
        (),
        "DROP REMOTE TABLE sales.orders",
    ),
    Form(
        "drop_remote_database",
        kinds.DropRemoteDatabase,
        "DROP REMOTE DATABASE",
        "DROP REMOTE DATABASE [IF EXISTS] db",
        "removes the link of a database",
        (),
        "DROP REMOTE DATABASE IF EXISTS shop",
    ),
    Form(
        "set_table_properties",
        kinds.SetTableProperties,
        "ALTER REMOTE TABLE SET TBLPROPERTIES",
        "ALTER REMOTE TABLE t SET TBLPROPERTIES ('k' = 'v', …)",
        "changes the configuration of a table's link",
        (),
        "ALTER REMOTE TABLE sales.orders SET TBLPROPERTIES ('hive.metastore.uris' = 'thrift://127.0.0.1:9083')",
    ),
    Form(
        "set_database_properties",
        kinds.SetDatabaseProperties,
        "ALTER REMOTE DATABASE",
        "ALTER REMOTE DATABASE db SET DBPROPERTIES ('k' = 'v', …)",
        "changes the configuration of a database's link",
        (),
        "ALTER REMOTE DATABASE shop SET DBPROPERTIES ('hive.metastore.uris' = 'thrift://127.0.0.1:9083')",
    ),
    Form(
        "set_remote_data",
        kinds.SetRemoteData,
        "ALTER REMOTE TABLE SET DATA",
        "ALTER REMOTE TABLE t SET DATA COPY | NONE",
        "makes a link a replica with files of its own, or a link again",
        (),
        "ALTER REMOTE TABLE sales.orders SET DATA COPY",
    ),
    Form(
        "show_remote_tables",
        kinds.ShowRemoteTables,
        "SHOW REMOTE TABLES",
        "SHOW REMOTE TABLES [IN db] [LIKE 'pattern']",
        "linked tables and their states",
        REMOTE_COLUMNS,
        "SHOW REMOTE TABLES IN sales",
    ),
    Form(
        "show_remote_databases",
        kinds.ShowRemoteDatabases,
        "SHOW REMOTE DATABASES",
        "SHOW REMOTE DATABASES [LIKE 'pattern']",
        "linked databases and their states",
        REMOTE_COLUMNS,
        "SHOW REMOTE DATABASES",
    ),
    Form(
        "describe_remote_table",
        kinds.DescribeRemoteTable,
        "DESCRIBE REMOTE TABLE",
        "DESCRIBE [EXTENDED] REMOTE TABLE t",
        "a linked table as the other catalog has it, and its link's configuration",
        DESCRIBE_COLUMNS,
        "DESCRIBE EXTENDED REMOTE TABLE sales.orders",
    ),
    Form(
        "describe_remote_database",
        kinds.DescribeRemoteDatabase,
        "DESCRIBE REMOTE DATABASE",
        "DESCRIBE [EXTENDED] REMOTE DATABASE db",
        "a linked database as the other catalog has it, and its link's configuration",
        DESCRIBE_COLUMNS,
        "DESCRIBE REMOTE DATABASE shop",
    ),
    Form(
        "use_cluster",
        kinds.UseCluster,
        "USE CLUSTER",
        "USE CLUSTER [c]",
        "sends every statement to one cluster; without a name, to the one that is resolved for it",
        (),
        "USE CLUSTER c1",
    ),
    Form(
        "show_clusters",
        kinds.ShowClusters,
        "SHOW CLUSTERS",
        "SHOW CLUSTERS",
        "the clusters of the configuration",
        CLUSTER_COLUMNS,
        "SHOW CLUSTERS",
    ),
    Form(
        "show_clusters_of_table",
        kinds.ShowClustersOfTable,
        "SHOW CLUSTERS FOR",
        "SHOW CLUSTERS FOR t",
        "where a table is, and as of which event",
        PLACEMENT_COLUMNS,
        "SHOW CLUSTERS FOR sales.orders",
    ),
    Form(
        "explain_cluster",
        kinds.ExplainCluster,
        "EXPLAIN CLUSTER",
        "EXPLAIN CLUSTER statement",
        "the cluster that a statement would run on, and why",
        EXPLAIN_COLUMNS,
        "EXPLAIN CLUSTER SELECT count(*) FROM sales.orders",
    ),
    Form(
        "add_secondary_cluster",
        kinds.AddSecondaryCluster,
        "ALTER TABLE ADD SECONDARY CLUSTER",
        "ALTER TABLE t ADD SECONDARY CLUSTER c [WHERE predicate]",
        "has a table, or partitions of it, replicated to a cluster",
        (),
        "ALTER TABLE sales.orders ADD SECONDARY CLUSTER c2 WHERE ds >= '2024-01-01'",
    ),
    Form(
        "drop_secondary_cluster",
        kinds.DropSecondaryCluster,
        "ALTER TABLE DROP SECONDARY CLUSTER",
        "ALTER TABLE t DROP SECONDARY CLUSTER c [WHERE predicate]",
        "ends that, for the whole table or for partitions of it",
        (),
        "ALTER TABLE sales.orders DROP SECONDARY CLUSTER c2",
    ),
    Form(
        "show_versions",
        kinds.ShowVersions,
        "SHOW VERSIONS",
        "SHOW VERSIONS OF t [AT target]",
        "the versions of a Delta replica, and the events that they show",
        VERSION_COLUMNS,
        "SHOW VERSIONS OF sales.orders",
    ),
)


def forms_of(beginning: str) -> tuple[Form, ...]:
    """Those whose syntax begins with these words, in any case; all for none."""
    words = beginning.upper().split()
    return tuple(form for form in FORMS if form.syntax.upper().split()[: len(words)] == words)
