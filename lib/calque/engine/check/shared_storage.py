"""The check for places that all machines must see, where Spark's tasks run on other machines than the driver."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from calque.core.formats.layout import place
from calque.engine.check.findings import Findings, Severity, listed
from calque.model.hive import Table, is_view, location_of
from calque.model.names import TableName

TASKS_READ = "Tasks of Spark's read it on the machines of the cluster, where this path is another place"
TASKS_COPY = "Tasks of Spark's copy files on the machines of the cluster, where this path is another place"
MOUNT = "Mount one file system at this path on all of them, or "


def runs_elsewhere(master: str) -> bool:
    """Tell whether tasks run in other processes than the driver, for a value of `spark-submit --master`."""
    return bool(master) and not master.startswith("local")


def check_state(tables: str, findings: Findings) -> None:
    """Report if the state folder's tables lie on a local path, because tasks on other machines read the journal and the
    evidence there."""
    if is_on_a_disk(tables):
        what = f"The journal and the ledgers lie on a disk: {tables}"
        findings.add("state", Severity.WARNING, what, TASKS_READ, f"{MOUNT}keep the tables in a store ([state] tables)")


def check_warehouse(where: str, locations: Iterable[str], findings: Findings) -> None:
    """Report the directories of a target's files that are local paths (no scheme, or `file`): on another machine such a
    path is another place."""
    for location in filter(is_on_a_disk, locations):
        what = f"Files of the target lie on a disk: {location}"
        findings.add(where, Severity.WARNING, what, TASKS_COPY, f"{MOUNT}give the target a warehouse in a store")


def check_tables(tables: Iterable[tuple[TableName, Table]], findings: Findings) -> None:
    """Report the tables of the source whose files lie on a local path, because tasks on other machines copy these
    files."""
    on_disks = [
        name for name, table in tables if not is_view(table) and (at := location_of(table)) and is_on_a_disk(at)
    ]
    if on_disks:
        what = f"Files of the source lie on a disk: those of {listed(on_disks)}"
        findings.add("source", Severity.WARNING, what, TASKS_COPY, f"{MOUNT}use `--master 'local[*]'`")


def check_secrets(files: Collection[str], findings: Findings) -> None:
    """Report the files that hold secrets, because tasks read them on their own machines."""
    if files:
        what = f"Secrets stand in files: {', '.join(sorted(files))}"
        why = "Tasks of Spark's read them on the machines of the cluster"
        findings.add("configuration", Severity.INFO, what, why, "Have them on each machine, at the same path")


def is_on_a_disk(location: str) -> bool:
    return place(location).scheme in ("", "file")
