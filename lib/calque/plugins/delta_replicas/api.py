"""The versions of a Delta replica by the source's events, for `calque.version_at` and `SHOW VERSIONS OF`."""

from __future__ import annotations

from calque.core.formats.deltalog import LOG, commit_path, log_of
from calque.core.formats.layout import join
from calque.core.images.image import FORMAT
from calque.errors import Refused
from calque.model.hive import Table, location_of
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, TableName
from calque.plugins.delta_replicas.core.log import rows_of, version_of
from calque.plugins.delta_replicas.core.replica_mark import DELTA, is_delta_replica
from calque.plugins.delta_replicas.core.versions import TableVersion, table_versions, version_showing
from calque.ports import Storage
from calque.wiring.wiring import Wiring

TABLE = "table"


def version_of_target(wiring: Wiring, name: TableName, event_id: EventId, target: str | None) -> int:
    """Return the number of the version that shows the table at the event; `calque.version_at` explains the
    parameters."""
    wiring.config.require_source()
    targets = wiring.config.select([target] if target is not None else [])
    if len(targets) != 1:
        raise Refused("No target is named", f"There are {len(targets)}", f"Name one: {', '.join(targets)}")
    return version_showing(name, versions_of(wiring, targets[0], name), event_id).version


def versions_of(wiring: Wiring, target: str, name: TableName) -> list[TableVersion]:
    """Return the versions of the table at the target, oldest first, as far as its log goes back. Raises `Refused` where
    the table is not there or not a Delta table, and `Unavailable`."""
    target_wiring = wiring.target(target)
    at_target = target_wiring.admission().name_at_target(name)
    at_metastore = target_wiring.catalog_for_statements().table(at_target)
    if at_metastore is None:
        raise Refused(f"{target} has no table {at_target}", "It is not there", "Look at SHOW TABLES AT")
    if not is_delta_replica(at_metastore):
        raise Refused(f"{at_target} is no Delta table at {target}", why_not(at_metastore), "Look at format")
    ledger = target_wiring.ledger()
    epoch, row = ledger.last_epoch(), ledger.tables().get((TABLE, *name))
    shows = epoch.event_id if epoch is not None else 0
    if isinstance(row, TableRow) and row.state is not TableState.LIVE:
        shows = row.shows or 0
    return versions_in(target_wiring.storage_for_statements(), location_of(at_metastore) or "", shows)


def versions_in(storage: Storage, root: str, shows: EventId) -> list[TableVersion]:
    """Return the versions that the log at `root` has, oldest first. Versions that other writers made are left out.
    `shows` is the event that the target shows of the table now."""
    commits = []
    for version in sorted(log_of(storage.children(join(root, LOG))).commits):
        rows = rows_of(storage.read(join(root, commit_path(version))) or b"")
        shown = version_of(rows)
        if shown is not None:
            made_ms = next(row["commitInfo"]["timestamp"] for row in rows if "commitInfo" in row)
            commits.append((version, made_ms, shown))
    return table_versions(commits, shows)


def why_not(table: Table) -> str:
    said = (table.parameters or {}).get(FORMAT, "")
    reason = said.removeprefix("plain: ")
    return reason.capitalize() if reason and said != DELTA else "Its format is plain"
