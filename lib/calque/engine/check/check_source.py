"""Can the source be read, and which of its tables can't be replicated?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from calque.core.admit import Admission
from calque.core.kinds import HUDI, HUDI_TIMELINE, REASONS, is_plain, kind_of
from calque.core.layout import Place, place
from calque.engine.check.check_log import check_log
from calque.engine.check.check_marks import check_marks
from calque.engine.check.findings import Findings, Severity, listed
from calque.engine.check.kept_files import check_kept_files
from calque.engine.check.shared_storage import check_tables
from calque.engine.check.sides import Source
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.hive import Table, is_view, location_of
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.ports import CatalogReader, Storage

SAMPLE = 20
"""Tables whose files are looked at."""
READERS = 8


def check_source(source: Source, policies: Sequence[Policy], findings: Findings) -> Mapping[TableName, Table]:
    """The admitted tables, as far as they could be read."""
    try:
        if source.server is None:
            source.catalog.databases()
            findings.add("source", Severity.INFO, "The catalog answers; it keeps no log, and is looked at")
        else:
            version = source.server.version()
            findings.add("source", Severity.INFO, f"The metastore answers; it is Hive {version}")
            check_log(source, source.server, findings)
        admissions = [Admission(policy) for policy in policies]
        tables = tables_of(source.catalog, admissions)
        findings.add("source", Severity.INFO, f"{len(tables)} tables and views are admitted")
        check_kinds(tables, findings)
        check_subsets(tables, admissions, findings)
        check_locations(tables, findings)
        check_marks(tables, source.why_no_lifetime, findings)
        copied_tables = {
            name: table
            for name, table in tables.items()
            if any(admission.takes(name) and admission.copies(name) for admission in admissions)
        }
        if copied_tables:
            check_readable(source.storage, copied_tables, findings)
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


def tables_of(catalog: CatalogReader, admissions: Sequence[Admission]) -> dict[TableName, Table]:
    """The tables that some target takes."""
    names = [
        table_name(database, table)
        for database in catalog.databases()
        if any(admission.touches_database(database) for admission in admissions)
        for table in catalog.tables(database)
    ]
    admitted_names = sorted(name for name in names if any(admission.takes(name) for admission in admissions))
    with ThreadPoolExecutor(READERS, thread_name_prefix="check") as pool:
        tables = list(pool.map(catalog.table, admitted_names))
    return {
        name: table
        for name, table in zip(admitted_names, tables, strict=True)
        if table is not None and any(one.takes(name) and one.subset.has_table(table) for one in admissions)
    }


def check_subsets(tables: Mapping[TableName, Table], admissions: Sequence[Admission], findings: Findings) -> None:
    """Tables that a predicate in `partitions` does not fit."""
    for admission in admissions:
        for name, table in tables.items() if not admission.subset.is_all else ():
            if not admission.takes(name) or not admission.subset.has_table(table):
                continue
            if why := admission.subset.obstacle(name, table):
                what = f"The predicate over partitions of {name} does not fit the table: {why}"
                todo = f"Correct it in partitions of {admission.policy.target}; else the table is quarantined"
                findings.add("source", Severity.WARNING, what, todo=todo)


EXCLUDE = "Exclude them; else they are set aside as quarantined, and everything else goes on"


def check_kinds(tables: Mapping[TableName, Table], findings: Findings) -> None:
    kinds: dict[str, list[TableName]] = {}
    for name, table in tables.items():
        if kind := kind_of(table):
            kinds.setdefault(kind, []).append(name)
    for kind, names in sorted(kinds.items()):
        if kind in REASONS:
            what = f"{len(names)} {kind} can't be replicated: {listed(names)}"
            findings.add("source", Severity.WARNING, what, REASONS[kind], EXCLUDE)
        else:
            what = f"{len(names)} {kind}: {listed(names)}"
            why = "their commits raise no events; following them comes with a later version"
            findings.add("source", Severity.INFO, what, why, "Exclude them until then")


def check_locations(tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Tables whose directories are one, or lie in one another."""
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
    "what is written through one shows in the other without an event for it",
    "Give each table a directory of its own; else the replica of the other is late until it is read again",
)
PlacedTables = tuple[Place, list[TableName]]


def nested(places: Sequence[PlacedTables]) -> Iterator[tuple[PlacedTables, PlacedTables]]:
    """Pairs (inner, outer), each inner with the nearest outer. A place sorts before everything below it, but others may
    come between."""
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


def check_readable(storage: Storage, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Whether some tables' directories are there, can be listed, and are what the metastore says."""
    missing_names, timeline_names = [], []
    for name, location in sampled(tables):
        try:
            if not storage.exists(location):
                missing_names.append(name)
            if HUDI_TIMELINE in storage.children(location) and is_plain(tables[name]):
                timeline_names.append(name)
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


def check_links(why_not_linked: Callable[[str], str], tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Whether the files of some tables can be kept by links while targets need them."""
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
        findings.add("source", Severity.INFO, what)


def sampled(tables: Mapping[TableName, Table]) -> list[tuple[TableName, str]]:
    """Some tables with their directories."""
    locations = [
        (name, location) for name, table in tables.items() if not is_view(table) and (location := location_of(table))
    ]
    return locations[:: max(len(locations) // SAMPLE, 1)][:SAMPLE]
