"""The check whether a target can be written to, and whether other objects stand under the names of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.core.formats.layout import Place, join, place
from calque.core.images.image import is_ours
from calque.core.policy.admit import Admission
from calque.engine.check.check_acid import check_native
from calque.engine.check.check_permissions import check_permissions
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.sides import Target, answers, is_hive_4
from calque.engine.target.armed_tables import is_armed
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Column, Database, SerDe, Table, location_of
from calque.model.hive import Storage as Format
from calque.model.names import OURS, TableName, table_name
from calque.ports import Conflict
from calque.ports.services import managed_warehouse

WRITERS = "Engines that reach the metastore can write to replicas"
WHY_WRITERS = "No parameter and no grant in a metastore keeps them from it"
TODO_WRITERS = "A pre-event listener or the network does: see Writers at targets in docs/limits.md"
"""The cure that is given for every target, and for links."""

TEXT = Format(
    columns=(Column("a", "int"),),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
)


def check_target(target: Target, tables: Mapping[TableName, Table], findings: Findings) -> None:
    admission = Admission(target.policy)
    for first, second in admission.collisions(tables):
        findings.add(
            target.where,
            Severity.ERROR,
            f"{first} and {second} would both be {admission.name_at_target(first)}",
            "A name at the target is one object's",
            "Rename one of them to another name, or exclude it",
        )
    try:
        version = target.server.version()
        findings.add_expected(target.where, answers(version))
        if not is_hive_4(version):
            what = "If its database is PostgreSQL, an index may be missing there that Hive 4 adds"
            todo = 'See that there is one: CREATE INDEX "SDS_N50" ON "SDS" USING btree ("CD_ID")'
            findings.add(target.where, Severity.INFO, what, "Each change of a partition reads all of SDS then", todo)
        findings.add_expected(target.where, WRITERS, WHY_WRITERS, TODO_WRITERS)
        check_conflicts(target, admission, tables, findings)
        if admission.leaves_some:
            left = {name: table for name, table in tables.items() if not admission.copies(name)}
            check_files_at_source(target, left, findings)
        if admission.copies_some and not check_warehouse(target, version, findings):
            return
        if target.policy.permissions == "keep" and admission.copies_some:
            check_permissions(target, admission, tables, findings)
        check_compare_and_swap(target, findings)
        check_native(target, tables, findings)
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(target.where, error)


def check_conflicts(
    target: Target, admission: Admission, tables: Mapping[TableName, Table], findings: Findings
) -> None:
    """Report objects that stand under the names of replicas and are not calque's. Report replicas over the source's
    files that a user of the target has changed so that dropping or renaming them would reach these files."""
    foreign_names, armed_names = [], []
    for database in sorted({name.database for name in map(admission.name_at_target, filter(admission.takes, tables))}):
        for table in target.catalog.tables(database):
            name = table_name(database, table)
            source_name = admission.source_of(name)
            target_table = target.catalog.table(name) if source_name in tables else None
            if target_table is None or source_name is None:
                continue
            if not is_ours(target_table.parameters, target.policy.source):
                foreign_names.append(name)
            elif not admission.copies(source_name) and is_armed(target_table):
                armed_names.append(name)
    if foreign_names:
        findings.add(
            target.where,
            Severity.WARNING,
            f"Objects stand in the way: {listed(foreign_names)}",
            f"They carry no calque.source of {target.policy.source}, so they are not overwritten and their tables are "
            "quarantined",
            "Drop or rename them there, take them over with `calque adopt`, or rename the tables in the policy",
        )
    if armed_names:
        findings.add(
            target.where,
            Severity.WARNING,
            f"Tables can take the source's files along: {listed(armed_names)}",
            "Somebody made them managed, or set parameters like external.table.purge: dropping one deletes the files, "
            "renaming one moves them",
            "Have them written anew with `calque repair`, and keep users of the target from altering replicas",
        )


def check_files_at_source(target: Target, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Report, for a target whose tables lie where the source has them, an error where the target's warehouse holds
    tables of the source. Report also that the target's metastore can remove the source's files for its own users, which
    calque can't prevent: only the storage's permissions can."""
    warehouse = place(target.policy.warehouse)
    inner_names = [
        name for name, table in tables.items() if (where := location_of(table)) and warehouse.contains(place(where))
    ]
    if inner_names:
        findings.add(
            target.where,
            Severity.ERROR,
            f"Tables of the source lie in the warehouse {target.policy.warehouse}: {listed(inner_names)}",
            "The target's databases and calque's own directories are made there, and nothing is to be written at the "
            "source",
            "Choose another directory for it, if only for these",
        )
    findings.add(
        target.where,
        Severity.INFO,
        "Its tables lie where the source has them",
        "Nothing of calque's writes there, but the target's metastore truncates and drops for its own users where it "
        "is allowed to",
        "Let the target's metastore and its users read the source's files, not write them",
    )


def check_warehouse(target: Target, version: str, findings: Findings) -> bool:
    """Tell whether calque can make tables in the warehouse; report why not."""
    warehouse = target.policy.warehouse
    managed = managed_warehouse(target.server)
    if managed and is_hive_4(version) and lies_in(managed, warehouse):
        findings.add(
            target.where,
            Severity.ERROR,
            f"The warehouse {warehouse} lies inside the metastore's managed warehouse {managed}",
            "Hive 4 refuses external tables there, and all tables of a replica are external",
            "Choose another directory for it",
        )
        return False
    try:
        target.write_probe(warehouse)
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(target.where, error)
        return False
    return True


def lies_in(managed: str, warehouse: str) -> bool:
    """Tell whether `warehouse` lies in the managed warehouse. One without a scheme is on the server's default file
    system, which is assumed to be that of `warehouse`."""
    outer, inner = place(managed), place(warehouse)
    if managed.startswith("/"):
        return Place("", "", outer.path).contains(Place("", "", inner.path))
    return outer.contains(inner)


def check_compare_and_swap(target: Target, findings: Findings) -> None:
    """Make a scratch table in the hidden database, as every replication does, and report whether the metastore has
    compare-and-swap. Raises `Unavailable` where the table stands there already."""
    home = join(target.policy.warehouse, OURS)
    location = join(home, target.scratch)
    scratch = Table(
        target.scratch,
        OURS,
        storage=replace(TEXT, location=location),
        partition_keys=(),
        parameters={"EXTERNAL": "TRUE"},
        type="EXTERNAL_TABLE",
    )
    try:
        if target.catalog.database(OURS) is None:
            target.catalog.create_database(Database(OURS, "calque's own: hidden builds and the lease", home, {}))
        has_compare_and_swap = target.server.has_compare_and_swap(scratch)
    except Conflict as error:
        raise Unavailable(
            f"A scratch table {OURS}.{target.scratch} can't be made", str(error), "Check again"
        ) from error
    except (Unavailable, Refused, AccessRefused) as error:
        # What the server can't do below the warehouse is no fault of the connection.
        target.server.version()
        findings.add(
            target.where,
            Severity.ERROR,
            f"The metastore can't make a table below {home}",
            error.why,
            "Give it access to the warehouse: it looks at the directory of every table that is made",
        )
        return
    finally:
        target.storage.remove([location])
    if has_compare_and_swap:
        findings.add_expected(target.where, "The metastore has compare-and-swap for tables")
    else:
        findings.add(
            target.where,
            Severity.INFO,
            "The metastore has no compare-and-swap for tables",
            "A change of a replica by another program in the same moment can be overwritten unseen. The lease still "
            "keeps two calque writers apart, except for a call that was under way when its writer lost the lease, and "
            "that takes longer than a third of it",
            "Set `lease` above your slowest metastore call; Hive 2.3.10 and 4.0.1 or later have compare-and-swap",
        )
