"""The check whether the source can be read, and which of its tables can't be replicated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.kinds import (
    ACID,
    HUDI,
    HUDI_TIMELINE,
    POINTING,
    REASONS,
    REMOTE,
    database_obstacle,
    is_plain,
    kind_of,
    obstacle,
    partition_obstacle,
    reason_of,
)
from calque.core.formats.attached import urls_of
from calque.core.formats.layout import Place, place
from calque.core.formats.pointers import notes, refusals
from calque.core.images.view_engines import BY_HAND, ENCODED_TEXT, is_rewritable
from calque.core.policy.admit import Admission
from calque.engine.check.check_log import check_log
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.kept_files import check_kept_files
from calque.engine.check.shared_storage import check_tables
from calque.engine.check.sides import Source, answers
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.ports import CatalogReader, Storage

SAMPLE = 20
"""The number of tables whose files are looked at, at most."""
PARTITIONS = 1000
"""The number of each table's partitions whose places are looked at, at most."""
READERS = 8


def check_source(source: Source, policies: Sequence[Policy], findings: Findings) -> Mapping[TableName, Table]:
    """Check the source, and return the tables that some policy admits; none if the source could not be read."""
    try:
        if source.server is None:
            source.catalog.databases()
            findings.add_expected("source", "The catalog answers; it keeps no log, and is looked at")
        else:
            version = source.server.version()
            findings.add_expected("source", answers(version))
            check_log(source, source.server, findings)
        admissions = [Admission(policy) for policy in policies]
        tables = tables_of(source.catalog, admissions, findings)
        tell_admitted(len(tables), findings)
        check_kinds(tables, admissions, findings)
        check_views_of_engines(tables, admissions, findings)
        check_remote_databases(source.catalog, admissions, findings)
        check_notes(tables, findings)
        check_subsets(tables, admissions, findings)
        check_locations(tables, findings)
        for look in source.table_looks:
            look(tables, findings)
        copied_tables = {
            name: table
            for name, table in tables.items()
            if any(admission.takes(name) and admission.copies(name) for admission in admissions)
        }
        check_resources(source.why_not_read, source.catalog, admissions, findings)
        if copied_tables:
            copied_tables = check_roots(source, copied_tables, findings)
        if copied_tables:
            check_readable(source.catalog, source.storage, copied_tables, findings)
            if source.shared_storage:
                check_tables(copied_tables.items(), findings)
            if source.server is not None:
                check_kept_files(source, source.server, copied_tables, findings)
            if source.why_not_linked is not None:
                check_links(source.why_not_linked, copied_tables, findings)
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused("source", error)
        return {}
    return tables


def tell_admitted(count: int, findings: Findings) -> None:
    if count == 0:
        findings.add("source", Severity.INFO, "0 tables and views are admitted")
    else:
        findings.add_expected(
            "source", f"{count} tables and views are admitted" if count > 1 else "1 table or view is admitted"
        )


def tables_of(catalog: CatalogReader, admissions: Sequence[Admission], findings: Findings) -> dict[TableName, Table]:
    """Return the tables that some target takes. A table that meets a defect of calque is left out, and reported."""
    names = [
        table_name(database, table)
        for database in catalog.databases()
        if any(admission.touches_database(database) for admission in admissions)
        for table in catalog.tables(database)
    ]
    admitted_names = sorted(name for name in names if any(admission.takes(name) for admission in admissions))

    def read(name: TableName) -> Table | None:
        try:
            with work_on(f"the look at table {name}"):
                table = catalog.table(name)
                if table is None or not any(one.takes(name) and one.subset.has_table(table) for one in admissions):
                    return None
                # What later looks ask of each table among all others.
                for ask in (kind_of, is_view, place_of):
                    ask(table)
                return table
        except ObjectDefect as error:
            findings.defective("source", error)
            return None

    with ThreadPoolExecutor(READERS, thread_name_prefix="check") as pool:
        tables = list(pool.map(read, admitted_names))
    return {name: table for name, table in zip(admitted_names, tables, strict=True) if table is not None}


def check_subsets(tables: Mapping[TableName, Table], admissions: Sequence[Admission], findings: Findings) -> None:
    """Report tables that a predicate in `partitions` does not fit."""
    for admission in admissions:
        for name, table in tables.items() if not admission.subset.is_all else ():
            if not admission.takes(name) or not admission.subset.has_table(table):
                continue
            if why := admission.subset.obstacle(name, table):
                what = f"The predicate over partitions of {name} does not fit the table: {why}"
                todo = f"Correct it in partitions of {admission.policy.target}; else the table is quarantined"
                findings.add("source", Severity.WARNING, what, todo=todo)


EXCLUDE = "Exclude them; else they are set aside as quarantined, and everything else goes on"
EXCLUDE_OR_REPLICATE = f'Write acid = "native" or "delta", or "external" for insert-only ones. {EXCLUDE}'


def check_kinds(tables: Mapping[TableName, Table], admissions: Sequence[Admission], findings: Findings) -> None:
    """Report tables of kinds that are set aside."""
    kinds: dict[tuple[str, str], list[TableName]] = {}
    for name, table in tables.items():
        words = {one.acid(name) for one in admissions if one.takes(name)} or {"skip"}
        if (kind := kind_of(table)) and any(obstacle(table, word) for word in words):
            refused = next(refusals(table), None) if kind in POINTING.values() else None
            kinds.setdefault((kind, refused.refusal if refused is not None else ""), []).append(name)
    for (kind, _), names in sorted(kinds.items()):
        if kind in REASONS or kind in POINTING.values():
            what = f"{kind[:1].upper()}{kind[1:]} can't be replicated: {listed(names)}"
            todo = EXCLUDE_OR_REPLICATE if kind == ACID else EXCLUDE
            findings.add("source", Severity.WARNING, what, reason_of(tables[names[0]], kind), todo)
        else:
            what = f"{kind[:1].upper()}{kind[1:]}: {listed(names)}"
            why = "Their commits raise no events; following them comes with a later version"
            findings.add("source", Severity.INFO, what, why, "Exclude them until then")


def check_views_of_engines(
    tables: Mapping[TableName, Table], admissions: Sequence[Admission], findings: Findings
) -> None:
    """Report views that can't be shown under `rename`, because an engine has encoded the names in their text."""
    renaming = [admission for admission in admissions if admission.policy.rename]
    names = [
        name
        for name, table in tables.items()
        if is_view(table)
        and not kind_of(table)
        and not is_rewritable(table)
        and any(admission.takes(name) and admission.subset.has_table(table) for admission in renaming)
    ]
    if names:
        what = f"Views can't be shown under `rename`: {listed(names)}"
        findings.add("source", Severity.WARNING, what, ENCODED_TEXT, BY_HAND)


def check_remote_databases(catalog: CatalogReader, admissions: Sequence[Admission], findings: Findings) -> None:
    """Report databases whose tables belong to another system."""
    admitted_names = [
        name for name in catalog.databases() if any(admission.takes_database(name) for admission in admissions)
    ]
    databases = [catalog.database(name) for name in admitted_names]
    names = [one.name for one in databases if one is not None and database_obstacle(one)]
    if names:
        what = f"{REMOTE[:1].upper()}{REMOTE[1:]} can't be replicated: {', '.join(names)}"
        findings.add("source", Severity.WARNING, what, REASONS[REMOTE], EXCLUDE)


def check_notes(tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Report tables with a parameter that names a place which calque does not follow, such as a page of a wiki."""
    noted = {name: pointer for name, table in tables.items() if (pointer := next(notes(table), None)) is not None}
    if noted:
        first = next(iter(noted.values()))
        what = f"Parameters of {listed(list(noted))} name other places, which stay as they are"
        findings.add("source", Severity.INFO, what, f"{first.key} = {first.value}")


def check_locations(tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Report tables that share a directory, or whose directories lie in one another."""
    places = sorted(
        (directory, name)
        for name, table in tables.items()
        if not is_view(table) and (directory := place_of(table)) is not None
    )
    directories = [
        (directory, [name for _, name in group]) for directory, group in groupby(places, key=lambda pair: pair[0])
    ]
    for directory, names in directories:
        if len(names) > 1:
            findings.add("source", Severity.WARNING, f"{listed(names)} share {directory}", *OVERLAP)
    for (inner, names), (outer, others) in nested(directories):
        findings.add(
            "source", Severity.WARNING, f"{listed(names)} at {inner} lies inside {listed(others)} at {outer}", *OVERLAP
        )


OVERLAP = (
    "What is written through one shows in the other without an event for it",
    "Give each table a directory of its own; else the replica of the other is late until it is read again",
)
PlacedTables = tuple[Place, list[TableName]]


def nested(places: Sequence[PlacedTables]) -> Iterator[tuple[PlacedTables, PlacedTables]]:
    """Yield pairs (inner, outer), each inner directory with the nearest outer one. A directory sorts before all that
    lie below it, but others may come between."""
    enclosing: list[PlacedTables] = []
    for directory, names in sorted(
        places, key=lambda pair: (pair[0].scheme, pair[0].authority, pair[0].path.split("/"))
    ):
        while enclosing and not enclosing[-1][0].contains(directory):
            enclosing.pop()
        if enclosing:
            yield (directory, names), enclosing[-1]
        enclosing.append((directory, names))


def place_of(table: Table) -> Place | None:
    try:
        return place(location_of(table) or "")
    except Refused:
        return None


def check_roots(source: Source, tables: Mapping[TableName, Table], findings: Findings) -> dict[TableName, Table]:
    """Report tables that are set aside because their own location, a partition's, or that of a schema is none that
    calque reads, or because a partition names a place that can't be followed. Return the other tables."""

    def refusal(name: TableName) -> Refused | None:
        try:
            with work_on(f"the look at the places of table {name}"):
                partitions = first_partitions(source.catalog, name, tables[name])
                places = (location_of(tables[name]), *urls_of(tables[name]), *map(location_of, partitions))
                unread = (why_not(source.why_not_read, one) for one in filter(None, places))
                return next(filter(None, (*unread, *map(refusal_of, partitions))), None)
        except ObjectDefect as error:
            findings.defective("source", error)
            return None

    with ThreadPoolExecutor(READERS, thread_name_prefix="check") as pool:
        refusals = {name: why for name, why in zip(tables, pool.map(refusal, tables), strict=True) if why is not None}
    for of_partitions in (False, True):
        alike = {name: why for name, why in refusals.items() if (why.todo == EXCLUDE) is of_partitions}
        if alike:
            first = next(iter(alike.values()))
            what = f"Tables are set aside for what they name: {listed(list(alike))}"
            findings.add("source", Severity.WARNING, what, f"{first.what}. {first.why}".removesuffix(". "), first.todo)
    return {name: table for name, table in tables.items() if name not in refusals}


def first_partitions(catalog: CatalogReader, name: TableName, table: Table) -> Collection[Partition]:
    if not is_partitioned(table):
        return ()
    return catalog.partitions(name, catalog.partition_names(name)[:PARTITIONS]).values()


def refusal_of(partition: Partition) -> Refused | None:
    why = partition_obstacle(partition)
    return Refused(why, todo=EXCLUDE) if why else None


def check_resources(
    why_not_read: Callable[[str], Refused | None],
    catalog: CatalogReader,
    admissions: Sequence[Admission],
    findings: Findings,
) -> None:
    """Report functions whose resources lie at places that calque does not read."""
    refusals: dict[TableName, Refused] = {}
    for name in copied_functions(catalog, admissions):
        try:
            with work_on(f"the look at function {name}"):
                function = catalog.function(name)
                for resource in (function.resources if function is not None else None) or ():
                    refused = why_not(why_not_read, resource.uri or "")
                    if refused is not None:
                        refusals.setdefault(name, refused)
        except ObjectDefect as error:
            findings.defective("source", error)
    if refusals:
        first = next(iter(refusals.values()))
        what = f"Functions are set aside for their resources: {listed(list(refusals))}"
        findings.add("source", Severity.WARNING, what, f"{first.what}. {first.why}", first.todo)


def copied_functions(catalog: CatalogReader, admissions: Sequence[Admission]) -> Iterator[TableName]:
    """Yield the functions whose resources some target has copies of."""
    for database in sorted(catalog.databases()):
        if any(admission.takes_database(database) for admission in admissions):
            for function in catalog.functions(database):
                name = table_name(database, function)
                if any(admission.takes_function(name) and admission.copies(name) for admission in admissions):
                    yield name


def why_not(why_not_read: Callable[[str], Refused | None], location: str) -> Refused | None:
    """Return the reason why `location` is not read, None where it is. A text that is no location, such as `ivy:` with a
    module, gives None: it stays as it is, and is never read."""
    try:
        return why_not_read(location)
    except Refused:
        return None


def check_readable(
    catalog: CatalogReader, storage: Storage, tables: Mapping[TableName, Table], findings: Findings
) -> None:
    """Check a sample of the tables: whether their directories exist, can be listed, and are no Hudi tables that the
    metastore does not know as such. A directory that is missing is looked for again, after the table's definition is
    read again, because the table may have been dropped or moved meanwhile."""
    missing_names, timeline_names = [], []
    try:
        for name, location in sampled(tables):
            if not storage.exists(location):
                missing_names.append(name)
            if HUDI_TIMELINE in storage.children(location) and is_plain(tables[name]):
                timeline_names.append(name)
        missing_names = [name for name in missing_names if is_missing_still(catalog, storage, name, tables[name])]
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused("source", error)
        return
    if missing_names:
        findings.add(
            "source",
            Severity.WARNING,
            f"The directories of {listed(missing_names)} are not there",
            f"{location_of(tables[missing_names[0]])} does not exist as seen from here",
            "Check that this host sees the source's storage under the same paths",
        )
    if timeline_names:
        what = (
            f"The directories of {listed(timeline_names)} are those of Hudi tables, and the metastore does not say so"
        )
        findings.add("source", Severity.WARNING, what, REASONS[HUDI], EXCLUDE)


def is_missing_still(catalog: CatalogReader, storage: Storage, name: TableName, before: Table) -> bool:
    """Tell whether the table still has the location of its definition `before`, and nothing is there."""
    table, location = catalog.table(name), location_of(before)
    return (
        table is not None and location is not None and location_of(table) == location and not storage.exists(location)
    )


def check_links(why_not_linked: Callable[[str], str], tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Report whether the files of a sample of the tables can be kept by hard links while targets need them."""
    sample = [(name, location) for name, location in sampled(tables) if place_of(tables[name]) is not None]
    reasons = {name: reason for name, location in sample if (reason := why_not_linked(location))}
    if reasons:
        findings.add(
            "source",
            Severity.INFO,
            f"Files of {listed(reasons)} that the source removes or replaces too soon are not kept",
            next(iter(reasons.values())),
            "Set [source] pins to a directory on their file system, or pin to copy; else such states are passed over",
        )
    elif sample:
        what = "Files that the source removes or replaces are kept by hard links until every target has them"
        findings.add_expected("source", what)


def sampled(tables: Mapping[TableName, Table]) -> list[tuple[TableName, str]]:
    """Return a sample of the tables with their directories, about `SAMPLE` of them from all over the list."""
    locations = [
        (name, location) for name, table in tables.items() if not is_view(table) and (location := location_of(table))
    ]
    return locations[:: max(len(locations) // SAMPLE, 1)][:SAMPLE]
