"""Look at the world that a configuration names, and say what is wrong with it and how to mend it.

Each look is by itself: what can't be reached is a finding, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby

from calque.core.admit import Admission
from calque.core.image import SOURCE, is_ours
from calque.core.kinds import HUDI, HUDI_TIMELINE, REASONS, is_plain, kind_of
from calque.core.layout import Place, join, place
from calque.core.origins import path_of
from calque.engine.check.log_strength import LAW_1, newest_rows, weaknesses
from calque.engine.target.origin_registry import RegisteredSource, known_at, record_of
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import Column, Database, SerDe, Table, is_view, location_of
from calque.model.hive import Storage as Format
from calque.model.names import OURS, TableName, table_name
from calque.model.policy import Policy
from calque.ports import Catalog, CatalogReader, Conflict, EventLog, Storage
from calque.ports.services import MetastoreInfo, managed_warehouse

SHOWN = 5
"""Names that one finding gives; the others are counted."""
SAMPLE = 20
"""Tables whose files are looked at."""
READERS = 8
TEXT = Format(
    columns=(Column("a", "int"),),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serde=SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
)


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` is "source", "target NAME", "state", "journal" or "configuration"."""

    what: str
    why: str
    todo: str
    severity: Severity
    where: str


@dataclass(slots=True)
class Findings:
    """`unreachable`: something did not answer, and may do so later."""

    found: list[Finding] = field(default_factory=list)
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return not self.unreachable and all(finding.severity is not Severity.ERROR for finding in self.found)

    def add(self, where: str, severity: Severity, what: str, why: str = "", todo: str = "") -> None:
        self.found.append(Finding(what, why, todo, severity, where))

    def refused(self, where: str, error: CalqueError) -> None:
        """An error as a finding."""
        self.unreachable = self.unreachable or isinstance(error, Unavailable)
        self.add(where, Severity.ERROR, error.what, error.why, error.todo)


@dataclass(frozen=True, slots=True)
class Source:
    server: MetastoreInfo
    log: EventLog
    catalog: CatalogReader
    storage: Storage
    allow_weak_log: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """`write_probe` writes a file below a location and removes it; `scratch` is a table name nobody has."""

    policy: Policy
    server: MetastoreInfo
    catalog: Catalog
    storage: Storage
    write_probe: Callable[[str], None]
    scratch: str = f"{OURS}_probe"

    @property
    def where(self) -> str:
        return f"target {self.policy.target}"


def check(source: Source, targets: Sequence[Target], refused: Sequence[Refused] = ()) -> Findings:
    """Look at everything. `refused` are settings that this version does not do."""
    findings = Findings()
    for error in refused:
        findings.refused("configuration", error)
    tables = check_source(source, [target.policy for target in targets], findings)
    for target in targets:
        try:
            taken = carried_to(source, target, tables, findings)
        except (Unavailable, Refused) as error:
            findings.refused(target.where, error)
        else:
            check_target(target, taken, findings)
    return findings


# The source


def check_source(source: Source, policies: Sequence[Policy], findings: Findings) -> Mapping[TableName, Table]:
    """The admitted tables, as far as they could be read."""
    try:
        version = source.server.version()
        findings.add("source", Severity.INFO, f"The metastore answers; it is Hive {version}")
        check_log(source, findings)
        tables = tables_of(source.catalog, [Admission(policy) for policy in policies])
        findings.add("source", Severity.INFO, f"{len(tables)} tables and views are admitted")
        check_kinds(tables, findings)
        check_locations(tables, findings)
        if any(policy.data == "copy" for policy in policies):
            check_readable(source.storage, tables, findings)
    except (Unavailable, Refused) as error:
        findings.refused("source", error)
        return {}
    return tables


def weakness(server: MetastoreInfo) -> tuple[str, str, str] | None:
    """What is weak about a metastore's log, which guarantee that costs, and the cure; None for a log that gives them
    all, or where the server does not say."""
    if server.version().startswith("2"):
        return (
            "The log of Hive 2 is weak: two events can get one id",
            (
                "of changes made in one moment some can be missed until an id is seen to come twice, or the table is "
                f"read again, which costs the promise {LAW_1}"
            ),
            "Move the source to Hive 3.0 or later",
        )
    listeners = server.listeners()
    if not listeners.is_reported or listeners.transactional or (listeners.others and not listeners.afterwards):
        return None
    cure = (
        "Set metastore.transactional.event.listeners = org.apache.hive.hcatalog.listener.DbNotificationListener at the "
        "source's metastore, and start it again"
    )
    if listeners.afterwards:
        return (
            "The log is weak: events are written after their changes, not with them",
            (
                "one can be lost or come in another order, and the replica lacks the change until the table is read "
                f"again, which costs the promise {LAW_1}"
            ),
            f"{cure}; remove the listener from metastore.event.listeners",
        )
    return (
        "No listener writes the log",
        f"changes raise no events, and nothing would be replicated, which costs the promise {LAW_1}",
        cure,
    )


def check_log(source: Source, findings: Findings) -> None:
    weak = weakness(source.server)
    listeners = source.server.listeners()
    if weak is not None:
        what, why, todo = weak
        if source.allow_weak_log:
            findings.add("source", Severity.WARNING, what, f"allow_weak_log accepts that {why}", todo)
        else:
            findings.add("source", Severity.ERROR, what, why, f"{todo}; or accept it by source.allow_weak_log = true")
    elif listeners.transactional:
        findings.add("source", Severity.INFO, "The log is written with each change (a transactional listener)")
    elif listeners.is_reported:
        names = ", ".join(listeners.others)
        todo = "Make sure that it does; then this can be left as it is"
        findings.add(
            "source",
            Severity.WARNING,
            f"It can't be known whether {names} writes events with their changes",
            "its name is not that of Hive's own listener",
            todo,
        )
    else:
        findings.add(
            "source",
            Severity.WARNING,
            "It can't be known whether the log's listener is transactional",
            "the server does not tell its settings",
            "Look for metastore.transactional.event.listeners in its configuration",
        )
    check_notifications(source, findings)


def check_notifications(source: Source, findings: Findings) -> None:
    try:
        newest = source.log.current()
        rows = newest_rows(source.log, newest)
    except Unavailable as error:
        # A server that refuses answers with an undeclared exception, one that is gone not at all.
        source.server.version()
        findings.add(
            "source",
            Severity.ERROR,
            "The log can't be read",
            f"the metastore answers other calls: {error.why}",
            "Allow the user that runs calque, or set metastore.metastore.event.db.notification.api.auth = false there",
        )
        return
    if newest == 0:
        findings.add(
            "source",
            Severity.WARNING,
            "The log is empty",
            "nothing was changed since it is written, or nothing writes it",
            "Change something at the source, and check again",
        )
    else:
        findings.add("source", Severity.INFO, f"The newest event is {newest}")
    for what, why, todo in weaknesses(rows, newest):
        findings.add("source", Severity.WARNING, what, why, todo)


def tables_of(catalog: CatalogReader, admissions: Sequence[Admission]) -> dict[TableName, Table]:
    """The tables that some target takes."""
    names = [
        table_name(database, table)
        for database in catalog.databases()
        if any(admission.touches_database(database) for admission in admissions)
        for table in catalog.tables(database)
    ]
    taken = sorted(name for name in names if any(admission.takes(name) for admission in admissions))
    with ThreadPoolExecutor(READERS, thread_name_prefix="check") as pool:
        found = list(pool.map(catalog.table, taken))
    return {name: table for name, table in zip(taken, found, strict=True) if table is not None}


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
        (where, name) for name, table in tables.items() if not is_view(table) and (where := place_of(table)) is not None
    )
    shared = [(where, [name for _, name in group]) for where, group in groupby(places, key=lambda pair: pair[0])]
    for where, names in shared:
        if len(names) > 1:
            findings.add("source", Severity.WARNING, f"{listed(names)} share {where}", *OVERLAP)
    for (inner, names), (outer, others) in nested(shared):
        findings.add(
            "source", Severity.WARNING, f"{listed(names)} at {inner} lies inside {listed(others)} at {outer}", *OVERLAP
        )


OVERLAP = (
    "what is written through one shows in the other without an event for it",
    "Give each table a directory of its own; else the replica of the other is late until it is read again",
)
Placed = tuple[Place, list[TableName]]


def nested(places: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Pairs (inner, outer), each inner with the nearest outer. A place sorts before everything below it, but others may
    come between."""
    above: list[Placed] = []
    for where, names in sorted(places, key=lambda pair: (pair[0].scheme, pair[0].authority, pair[0].path.split("/"))):
        while above and not above[-1][0].contains(where):
            above.pop()
        if above:
            yield (where, names), above[-1]
        above.append((where, names))


def place_of(table: Table) -> Place | None:
    try:
        return place(location_of(table) or "")
    except Refused:
        return None


def check_readable(storage: Storage, tables: Mapping[TableName, Table], findings: Findings) -> None:
    """Whether some tables' directories are there, can be listed, and are what the metastore says."""
    stored = [(name, at) for name, table in tables.items() if not is_view(table) and (at := location_of(table))]
    missing, with_timeline = [], []
    for name, location in stored[:: max(len(stored) // SAMPLE, 1)][:SAMPLE]:
        try:
            if not storage.exists(location):
                missing.append(name)
            if HUDI_TIMELINE in storage.children(location) and is_plain(tables[name]):
                with_timeline.append(name)
        except (Refused, Unavailable) as error:
            findings.refused("source", error)
            return
    if missing:
        findings.add(
            "source",
            Severity.WARNING,
            f"The directories of {listed(missing)} are not there",
            f"{location_of(tables[missing[0]])} does not exist as seen from here",
            "Check that this host sees the source's storage under the same paths",
        )
    if with_timeline:
        what = f"The directories of {listed(with_timeline)} are those of Hudi tables, and the metastore does not say so"
        findings.add("source", Severity.WARNING, what, REASONS[HUDI], EXCLUDE)


# Chains and rings


def carried_to(
    source: Source, target: Target, tables: Mapping[TableName, Table], findings: Findings
) -> Mapping[TableName, Table]:
    """The tables without those that came from the target. Raises `Unavailable`, `Refused`."""
    if not tables:
        return tables
    here, there = source.catalog.identity(), target.catalog.identity()
    if not here or not there:
        return tables
    name, known = target.policy.source, known_at(source.catalog)
    for where, one in sorted(
        {(at, one) for at, found in (("source", known), (target.where, known_at(target.catalog))) for one in found}
    ):
        if one.name == name and one.id != here:
            tell_namesake(where, one, here, findings)
    home = {one.name for one in known if one.id == there or one.name == name}
    returned = {found for found, table in tables.items() if not home.isdisjoint(path_of(table.parameters))}
    if returned:
        what = f"{len(returned)} tables came from this target, and are not carried back: {listed(sorted(returned))}"
        findings.add(target.where, Severity.INFO, what)
    replicas = sorted(
        found for found, table in tables.items() if SOURCE in (table.parameters or {}) and found not in returned
    )
    if replicas:
        findings.add(
            target.where,
            Severity.INFO,
            f"{len(replicas)} tables are replicas themselves: {listed(replicas)}",
            "files that are appended to them in place raise no event",
            'Let whoever makes them have appends = "new_directory", or look for such files by `scan`',
        )
    return {found: table for found, table in tables.items() if found not in returned}


def tell_namesake(where: str, one: RegisteredSource, here: str, findings: Findings) -> None:
    findings.add(
        where,
        Severity.WARNING,
        f'Two metastores are called "{one.name}"',
        f"one has the id {one.id}, the source {here}; their objects carry the same marks",
        "Give each source a [source] name of its own; if the source has taken the other's place, drop the view "
        f"{record_of(one)}",
    )


# A target


def check_target(target: Target, tables: Mapping[TableName, Table], findings: Findings) -> None:
    admission = Admission(target.policy)
    for first, second in admission.collisions(tables):
        findings.add(
            target.where,
            Severity.ERROR,
            f"{first} and {second} would both be {admission.name_at_target(first)}",
            "a name at the target is one object's",
            "Rename one of them to another name, or exclude it",
        )
    try:
        version = target.server.version()
        findings.add(target.where, Severity.INFO, f"The metastore answers; it is Hive {version}")
        check_conflicts(target, admission, tables, findings)
        if target.policy.data == "copy" and not check_warehouse(target, version, findings):
            return
        check_compare_and_swap(target, findings)
    except (Unavailable, Refused) as error:
        findings.refused(target.where, error)


def check_conflicts(
    target: Target, admission: Admission, tables: Mapping[TableName, Table], findings: Findings
) -> None:
    """Objects that stand where ours would, and are not ours."""
    foreign = []
    for at in sorted({name.database for name in map(admission.name_at_target, filter(admission.takes, tables))}):
        for table in target.catalog.tables(at):
            name = table_name(at, table)
            there = target.catalog.table(name) if admission.source_of(name) in tables else None
            if there is not None and not is_ours(there.parameters, target.policy.source):
                foreign.append(name)
    if foreign:
        findings.add(
            target.where,
            Severity.WARNING,
            f"{len(foreign)} objects stand in the way: {listed(foreign)}",
            f"they carry no calque.source of {target.policy.source}, so they are not overwritten and their tables are "
            "quarantined",
            "Drop or rename them there, take them over with `calque adopt`, or rename the tables in the policy",
        )


def check_warehouse(target: Target, version: str, findings: Findings) -> bool:
    """Whether tables can be made in the warehouse."""
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
    except (Refused, Unavailable) as error:
        findings.refused(target.where, error)
        return False
    return True


def lies_in(managed: str, warehouse: str) -> bool:
    """A managed warehouse without a scheme is on the server's default file system, which is taken for the other's."""
    outer, inner = place(managed), place(warehouse)
    if managed.startswith("/"):
        return Place("", "", outer.path).contains(Place("", "", inner.path))
    return outer.contains(inner)


def is_hive_4(version: str) -> bool:
    return int(version.partition(".")[0]) >= 4


def check_compare_and_swap(target: Target, findings: Findings) -> None:
    """Make a scratch table in the hidden database, as every replication does."""
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
        has_it = target.server.has_compare_and_swap(scratch)
    except Conflict as error:
        raise Unavailable(
            f"A scratch table {OURS}.{target.scratch} can't be made", str(error), "Check again"
        ) from error
    except (Refused, Unavailable) as error:
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
    if has_it:
        findings.add(target.where, Severity.INFO, "The metastore has compare-and-swap for tables")
    else:
        findings.add(
            target.where,
            Severity.INFO,
            "The metastore has no compare-and-swap for tables",
            "an alteration of one of our tables by somebody else in the same moment can be overwritten unseen. Two "
            "calques are kept apart by the lease all the same, but for a call that was under way when its writer lost "
            "it and takes longer than a third of it",
            "Hive 2.3.10 and 4.0.1 or later have it; else choose a lease that is long for the longest calls",
        )


def listed(names: Iterable[TableName]) -> str:
    """Some names, and how many more there are."""
    every = [str(name) for name in names]
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def require_strong_log(server: MetastoreInfo) -> None:
    """`Refused` with the cure when the metastore's log does not give every guarantee; nothing where the server does not
    tell. Raises `Unavailable`."""
    if weak := weakness(server):
        what, why, todo = weak
        raise Refused(what, why, f"{todo}; or accept it by source.allow_weak_log = true")
