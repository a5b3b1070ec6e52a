"""The check whether Hive keeps the files that it removes at the source, where, and for how long. See docs/files.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from calque.core.formats.layout import join
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Source
from calque.errors import Refused
from calque.model.hive import Database, Table, location_of
from calque.model.names import TableName
from calque.ports import CatalogReader
from calque.ports.services import MetastoreInfo

WITH_CHECKSUMS = "hdfs:"
"""The scheme of the file system whose checksums Hive writes into events."""
REPLICATED = "repl.source.for"
SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def change_manager_setting(server: MetastoreInfo, name: str) -> str:
    """Return a setting of the change manager, under either of its names; empty if it is unset or the server does not
    tell it."""
    return server.setting(f"metastore.repl.{name}") or server.setting(f"hive.repl.{name}")


def kept_seconds(server: MetastoreInfo) -> float | None:
    """Return the seconds for which the source's change manager keeps files; None where it is off, or does not say."""
    if change_manager_setting(server, "cm.enabled").lower() != "true":
        return None
    return seconds_of(change_manager_setting(server, "cm.retain"))


def kept_seconds_of_some(
    server: MetastoreInfo, catalog: CatalogReader, takes_database: Callable[[str], bool]
) -> float | None:
    """Return the seconds for which Hive keeps files of the databases that `takes_database` is true of; None where it
    keeps files of none of them, or does not say."""
    seconds = kept_seconds(server)
    if seconds is None:
        return None
    databases = (catalog.database(name) for name in catalog.databases() if takes_database(name))
    return seconds if any(database is not None and is_kept(database) for database in databases) else None


def is_kept(database: Database) -> bool:
    return bool((database.parameters or {}).get(REPLICATED))


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration as Hive writes it, such as `10d` or `30 min`; None for a text that is none."""
    match = re.match(r"(\d+)\s*(ms|us|ns|[dhms])", text.strip().lower())
    return int(match[1]) * SECONDS[match[2]] if match else None


def check_kept_files(
    source: Source, server: MetastoreInfo, tables: Mapping[TableName, Table], findings: Findings
) -> None:
    """Report in which databases Hive keeps files that it removes. Only databases are looked at that have a table on a
    file system with checksums."""
    names = sorted({name.database for name, table in tables.items() if has_checksums(table)})
    databases = [database for name in names if (database := source.catalog.database(name)) is not None]
    if not databases:
        return
    if change_manager_setting(server, "cm.enabled").lower() != "true":
        why = "Its change manager is off (hive.repl.cm.enabled), or the server does not tell its settings"
        findings.add("source", Severity.INFO, "Hive keeps no files that it removes or replaces", why, PASSED_OVER)
        return
    kept_names = [database.name for database in databases if is_kept(database)]
    other_names = [database.name for database in databases if not is_kept(database)]
    if kept_names:
        retain = change_manager_setting(server, "cm.retain")
        how_long = f" for {retain}" if retain else ", for how long is not told"
        what = f"Hive keeps files of managed tables that it removes or replaces in {', '.join(kept_names)}{how_long}"
        findings.add_expected("source", what)
        check_root(source, server, findings)
    if other_names:
        what = f"Hive keeps no files that it removes or replaces in {', '.join(other_names)}"
        findings.add("source", Severity.INFO, what, f"{REPLICATED} is not set there", PASSED_OVER)


def has_checksums(table: Table) -> bool:
    return (location_of(table) or "").startswith(WITH_CHECKSUMS)


PASSED_OVER = "States whose files go too soon are passed over, unless [source] pin keeps them"


def check_root(source: Source, server: MetastoreInfo, findings: Findings) -> None:
    """Report if files can't be taken from where Hive keeps them."""
    root = change_manager_setting(server, "cmrootdir")
    if not root:
        return
    try:
        names = [entry.name for entry in source.storage.entries(root) if not entry.directory]
    except Refused as error:
        findings.add("source", Severity.WARNING, error.what, error.why, f"{error.todo}; else those files are not taken")
        return
    paths = [join(root, name) for name in names[:1]]
    if paths and not source.storage.system_checksums(paths):
        findings.add(
            "source",
            Severity.WARNING,
            f"The checksum of {paths[0]} can't be asked for",
            "WebHDFS does not answer, or refuses; without checksums no file is taken from where Hive keeps it",
            "Give dfs.namenode.http-address (or Hadoop's configuration) in the source's storage",
        )
