"""What has a real calque reach each failpoint: a change at the source or at the target, and a command that meets it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from calque.adapters.metastore import messages
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.app import APP
from calque.control.requests import leave_request
from calque.core.formats.layout import COPYING, STAGE, place
from calque.core.records.claims import claim_file
from calque.demo.source import Source
from calque.engine.identity.directories import MARK as DIRECTORY_MARK
from calque.model.facets import ColumnStatistics, Longs, PrimaryKey, StatisticsCounts
from calque.model.hive import Column, SerDe, Storage, Table, location_of
from calque.model.names import OURS, TableName
from calque.model.policy import TargetCapabilities
from calque.model.requests import Action
from calque.plugins.marks.api.sets import RETENTION
from calque.sandbox import Metastore
from calque.wiring.wiring import Wiring
from support.services.deployments import Deployment

COLUMNS, DAY = (Column("id", "bigint"), Column("name", "string")), (Column("day", "string"),)
SPARE = 10
"""What is to be dropped, that often."""
RUN, UNTIL = ("run",), ("run", "--until", "head")
SWEEP = ("sweep",)
LONG = 400.0
"""Seconds in which whatever ends by itself has ended."""
MARK = ("done", "mark", "{database}.parted", "day=told")
RESUME, RESUME_PLAIN = ("resume",), ("resume", "--tables", "*.plain")


@dataclass(frozen=True, slots=True)
class Reach:
    """`change` comes before each start of `command`, which passes the failpoint then, and `undo` behind the last.
    `{database}` in a command is the first one's name."""

    change: Callable[[Site], object]
    command: tuple[str, ...] = UNTIL
    undo: tuple[str, ...] = ()


class Site:
    """A deployment with one target and a source that has a little of everything."""

    def __init__(self, deployment: Deployment, server: Metastore, more: str = "") -> None:
        self.deployment, self.server = deployment, server
        first = deployment.databases[0]
        text = deployment.config.read_text().replace(f'"{first}.*"', f'"{first}.*", "{first}n*.*"')
        text = text.replace("[targets.", f"{more}\n[targets.", 1) + '\ngrace = "0s"\nmax_drop = "100%"\n'
        deployment.config.write_text(text)
        self.source = Source(deployment.source.client, deployment.root / "data")
        self.database, self.numbers = first, count(1)
        self.files: dict[tuple[str, int], int] = {}
        """Every file that the source ever had, with its size."""
        self.plain, self.parted, self.delta = (TableName(first, name) for name in ("plain", "parted", "delta"))

    @property
    def wiring(self) -> Wiring:
        return APP.wiring(APP.load(self.deployment.config))

    def begin(self) -> None:
        """What is there when calque comes."""
        source = self.source
        source.create_database(self.database)
        source.create_table(self.plain, COLUMNS, form="text", rows=3)
        source.create_table(self.parted, COLUMNS, DAY, form="text")
        source.add_partitions(self.parted, [("first",), *((f"drop{n}",) for n in range(SPARE))])
        source.add_partitions(self.parted, [(f"rename{n}",) for n in range(SPARE)])
        self.create_delta()
        for number in range(SPARE):
            source.create_table(TableName(self.database, f"drop{number}"), COLUMNS, form="text", rows=1)
            source.create_function(TableName(self.database, f"drop{number}"), "org.F")
            source.create_database(f"{self.database}ndrop{number}")
        self.dropped = {what: count() for what in ("table", "partition", "function", "database", "constraint")}
        self.renamed = count()

    # Changes

    def fresh(self, word: str = "t") -> TableName:
        return TableName(self.database, f"{word}{next(self.numbers)}")

    def drop(self, what: str) -> str:
        return f"drop{next(self.dropped[what])}"

    def rename_partition(self) -> None:
        name = f"rename{next(self.renamed)}"
        self.source.rename_partition(self.parted, f"day={name}", (f"{name}d",))

    def add_key(self) -> None:
        name = self.fresh("keyed")
        self.source.create_table(name, COLUMNS, form="text")
        key = PrimaryKey(*name, "id", 1, key_of(name), False, False, True)
        call = messages.ADD_CONSTRAINTS[PrimaryKey]
        self.source.client.call(call, messages.ROWS[PrimaryKey]((key,)))
        self.keyed = name

    def drop_key(self) -> None:
        self.add_key()
        self.calque(*UNTIL)
        self.remove_key()

    def remove_key(self) -> None:
        """The one that was added last."""
        request = messages.DropConstraintRequest(*self.keyed, key_of(self.keyed))
        self.source.client.call(messages.DROP_CONSTRAINT, request)

    def analyze(self) -> None:
        counted = ColumnStatistics("id", "bigint", StatisticsCounts(longs=Longs(1, 2, 0, next(self.numbers))))
        catalog = HiveCatalog(Client(self.server.uri), TargetCapabilities())
        catalog.put_statistics(self.plain, {"": {"id": counted}})
        if self.server.settings.version.startswith("3"):
            # It logs no statistics: the table is read for another reason.
            leave_request(self.wiring, "dr", Action.BOOTSTRAP, [str(self.plain)])

    def create_delta(self) -> None:
        location = f"file:{self.deployment.root}/data/delta"
        write_deltalake(place(location).path, pa.table({"x": pa.array([0], pa.int64())}))
        storage = Storage((Column("col", "array<string>"),), location, serde=SerDe(parameters={"path": location}))
        parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "DELTA"}
        table = Table("delta", self.database, storage=storage, parameters=parameters, type="EXTERNAL_TABLE")
        self.source.client.create_table(table)

    def write_version(self) -> None:
        at = f"{self.deployment.root}/data/delta"
        write_deltalake(at, pa.table({"x": pa.array([next(self.numbers)], pa.int64())}), mode="append")
        DeltaTable(at).create_checkpoint()
        table = self.source.client.catalog.table(self.delta)
        assert table is not None
        parameters = {**(table.parameters or {}), "k": str(next(self.numbers))}
        self.source.client.alter_table(self.delta, replace(table, parameters=parameters))

    def change_without_event(self) -> None:
        (self.source.place(self.plain) / f"unseen{next(self.numbers)}").write_text("1\n")

    def lose_state(self) -> None:
        shutil.rmtree(self.deployment.root / "state", ignore_errors=True)

    def lose_log(self) -> None:
        self.source.insert(self.plain)
        self.server.sql('DELETE FROM "NOTIFICATION_LOG"')

    def lose_times(self) -> None:
        """Of a table's files at the target: they have to be proven."""
        table = self.deployment.targets[0].catalog.table(self.plain)
        for path in Path(place(location_of(table) or "").path).iterdir() if table is not None else ():
            os.utime(path)
        leave_request(self.wiring, "dr", Action.REPAIR, [str(self.plain)])

    def set_window(self) -> None:
        text = self.deployment.config.read_text()
        kept, _, _ = text.partition("\n[window]")
        self.deployment.config.write_text(f"{kept}\n[window]\nmax_events = {1000 + next(self.numbers)}\n")
        self.source.insert(self.plain)

    def leave_waste(self) -> None:
        """Replaced files, epochs and events that nobody needs."""
        self.source.overwrite(self.plain)
        self.calque(*UNTIL)

    def mark(self, lifetime: str) -> None:
        """A set, for so long."""
        self.source.alter_table(self.parted, {RETENTION: lifetime})
        self.calque("done", "mark", str(self.parted), f"day={next(self.numbers)}")

    def mark_and_go_on(self) -> None:
        """There are events behind the mark."""
        self.mark("1h")
        self.source.insert(self.plain)
        self.calque(*UNTIL)

    # Processes

    def records(self) -> set[str]:
        """The kinds of records that the state folder has."""
        return {name.partition("/")[0] for name in self.wiring.control.names()}

    def calque(self, *arguments: str) -> None:
        done = self.deployment.calque(*arguments, timeout=600)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"

    def killed(self, name: str, command: tuple[str, ...], seconds: float) -> bool:
        """Whether the command is killed at the failpoint. One that ends otherwise, or not at all, is not."""
        words = [word.format(database=self.database) for word in command]
        words = [sys.executable, "-m", "calque.cli", *words, "-c", str(self.deployment.config)]
        with self.deployment.log.open("ab") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=self.deployment.root, env={**os.environ, "CALQUE_FAILPOINT": name}
            )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait(120)
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM), f"{name}: {code}\n{self.deployment.tail()}"
        return code == -signal.SIGKILL

    def twice(self, name: str, seconds: float = 60) -> int:
        """How often, of two times, one after the other, a process is killed at the failpoint. One that would not end by
        itself is ended after so many seconds."""
        reach = REACHES[name.rpartition(".")[0]]
        found = 0
        for _ in range(2):
            reach.change(self)
            self.note()
            found += self.killed(name, reach.command, seconds if reach.command == RUN else LONG)
        if reach.undo:
            self.calque(*reach.undo)
        return found

    def note(self) -> None:
        """The source's files that there are."""
        files = (path for path in (self.deployment.root / "data").rglob("*") if path.is_file())
        self.files |= {(str(path), path.stat().st_mtime_ns): path.stat().st_size for path in files}

    def check(self) -> None:
        """Equal, nothing copied twice, nothing left over, and the position never went back."""
        self.calque(*UNTIL)
        self.calque("verify", "--data", "checksum")
        self.note()
        epochs = self.wiring.ledger("dr").epochs()
        assert sum(epoch.bytes for epoch in epochs) <= sum(self.files.values())
        for _ in range(2):
            self.calque(*SWEEP)
        assert [epoch.event_id for epoch in epochs] == sorted(epoch.event_id for epoch in epochs)
        stray = self.stray()
        assert stray == [], stray

    def stray(self) -> list[str]:
        """Files below the warehouse that are nobody's data."""
        catalog, leaves, claims = self.deployment.targets[0].catalog, list[str](), set[str]()
        for database in catalog.databases():
            for name in (TableName(database, table) for table in catalog.tables(database) if database != OURS):
                table = catalog.table(name)
                assert table is not None
                root = place(location_of(table) or "/").path
                claims |= {claim_file(root, generation) for generation in range(1, 10)}
                parts = catalog.partitions(name, catalog.partition_names(name)).values()
                things = parts if table.partition_keys else [table]
                leaves += [f"{place(location).path}/" for thing in things if (location := location_of(thing))]
        warehouse = Path(place(self.deployment.targets[0].policy.warehouse).path)
        files = [str(path) for path in warehouse.rglob("*") if path.is_file() and path.parent.name != DIRECTORY_MARK]
        data = [path for path in files if path not in claims]
        return [path for path in data if COPYING in path or STAGE in path or not path.startswith(tuple(leaves))]


def key_of(name: TableName) -> str:
    """3.1 knows a name of a constraint once, in all databases."""
    return f"pk_{name.database}_{name.table}"


def nothing(_: Site) -> None:
    """It is passed anyway."""


def table(site: Site) -> object:
    return site.source.create_table(site.fresh(), COLUMNS, form="text", rows=1)


def insert(site: Site) -> object:
    return site.source.insert(site.plain)


REACHES: Mapping[str, Reach] = {
    # These come first: a state folder has its identity and its journal's beginning once.
    "record.identity.put": Reach(Site.lose_state),
    "record.source-identity.put": Reach(Site.lose_state),
    "record.journal.put": Reach(Site.lose_state),
    "catalog.create_database": Reach(lambda s: s.source.create_database(f"{s.database}n{next(s.numbers)}")),
    "catalog.alter_database": Reach(lambda s: s.source.alter_database(s.database, {"k": str(next(s.numbers))})),
    "catalog.drop_database": Reach(lambda s: s.source.drop_database(f"{s.database}n{s.drop('database')}")),
    "catalog.create_table": Reach(table),
    "catalog.alter_table": Reach(lambda s: s.source.alter_table(s.plain, {"k": str(next(s.numbers))})),
    "catalog.drop_table": Reach(lambda s: s.source.drop_table(TableName(s.database, s.drop("table")))),
    "catalog.add_partitions": Reach(lambda s: s.source.add_partitions(s.parted, [(f"n{next(s.numbers)}",)])),
    "catalog.alter_partitions": Reach(lambda s: s.source.overwrite(s.parted, "day=first")),
    "catalog.rename_partition": Reach(Site.rename_partition),
    "catalog.drop_partitions": Reach(lambda s: s.source.drop_partitions(s.parted, [f"day={s.drop('partition')}"])),
    "catalog.add_constraints": Reach(Site.add_key),
    "catalog.drop_constraint": Reach(Site.drop_key),
    "catalog.put_statistics": Reach(Site.analyze),
    "catalog.create_function": Reach(lambda s: s.source.create_function(s.fresh("f"), "org.F")),
    "catalog.drop_function": Reach(lambda s: s.source.drop_function(TableName(s.database, s.drop("function")))),
    "lease.take": Reach(nothing),
    "lease.renew": Reach(nothing),
    "lease.forget": Reach(nothing),
    "journal.append": Reach(insert),
    "evidence.append": Reach(insert),
    "ledger.publish": Reach(insert),
    "ledger.put_tables": Reach(lambda s: leave_request(s.wiring, "dr", Action.REPAIR, [str(s.plain)])),
    "ledger.remove_tables": Reach(lambda s: s.source.drop_table(TableName(s.database, s.drop("table")))),
    "ledger.put_records": Reach(lambda s: leave_request(s.wiring, "dr", Action.REPAIR, [str(s.plain)])),
    "ledger.remove_records": Reach(lambda s: leave_request(s.wiring, "dr", Action.REPAIR, [str(s.plain)])),
    "storage.copy": Reach(insert),
    "storage.publish": Reach(insert),
    "storage.create": Reach(table),
    "storage.date": Reach(Site.lose_times),
    "storage.write": Reach(Site.write_version),
    "pins.keep": Reach(insert, RUN),
    "pins.release": Reach(insert, RUN),
    "scans.append": Reach(Site.change_without_event, RUN),
    "scans.remember": Reach(Site.change_without_event, RUN),
    "storage.set_aside": Reach(Site.leave_waste, SWEEP),
    "storage.remove": Reach(Site.leave_waste, SWEEP),
    "record.sweep.put": Reach(Site.leave_waste, SWEEP),
    "scans.forget": Reach(Site.leave_waste, SWEEP),
    "ledger.forget": Reach(Site.leave_waste, SWEEP),
    "journal.forget": Reach(Site.leave_waste, SWEEP),
    "evidence.forget": Reach(Site.leave_waste, SWEEP),
    "gaps.add": Reach(Site.lose_log),
    "gaps.settle": Reach(Site.lose_log),
    "journal.restart": Reach(Site.lose_log),
    "evidence.restart": Reach(Site.lose_log),
    "marks.add": Reach(nothing, MARK),
    "marks.follow": Reach(Site.mark_and_go_on, SWEEP),
    "marks.forget": Reach(lambda s: s.mark("1ms"), SWEEP),
    "partition_events.mark_done": Reach(nothing, MARK),
    "record.verified.put": Reach(nothing, ("verify",)),
    "record.marks-told.put": Reach(lambda s: s.mark("1h"), RUN),
    "record.windows.put": Reach(Site.set_window),
    "record.requests.put": Reach(nothing, ("bootstrap", "--target", "dr", "--tables", "*.plain")),
    "record.requests.remove": Reach(lambda s: leave_request(s.wiring, "dr", Action.REPAIR, [str(s.plain)])),
    "record.paused.put": Reach(nothing, ("pause",), RESUME),
    "record.paused.remove": Reach(lambda s: s.calque("pause"), RESUME, RESUME),
    "record.paused-tables.put": Reach(nothing, ("pause", "--tables", "*.plain"), RESUME_PLAIN),
    "record.paused-tables.remove": Reach(
        lambda s: s.calque("pause", "--tables", "*.plain"), RESUME_PLAIN, RESUME_PLAIN
    ),
    "record.reload.put": Reach(nothing, ("reload",)),
    "record.processes.put": Reach(nothing),
    "record.processes.remove": Reach(nothing),
    "record.running.put": Reach(nothing),
    "record.running.remove": Reach(nothing),
    "record.capturing.put": Reach(nothing),
    "record.capturing.remove": Reach(nothing),
}
ACID_EFFECTS = (
    "transactions.open",
    "transactions.allocate",
    "transactions.commit",
    "commits.append",
    "commits.remember",
)
"""Effects that only ACID tables have: `prove/test_acid_live.py` has deaths at these."""
NOT_REACHED: Mapping[str, str] = {
    **dict.fromkeys(ACID_EFFECTS, "only with ACID tables: `prove/test_acid_live.py` has it"),
    **dict.fromkeys(
        ("commits.forget", "commits.restart"),
        "only with ACID tables, at a sweep and at the beginning; no test has a death of a process at these yet",
    ),
    "catalog.commit_table": "no metastore has it",
    "catalog.drop_statistics": "only a table with statistics that is moved, or a server that logs their end",
    "storage.combine": "only where appends come in new directories: `test_small_files.py` has it",
    "storage.set_permissions": "only where permissions are kept: `tests/kernel/whole/test_crashes.py` has it",
    **dict.fromkeys(
        ("privileges.grant", "privileges.revoke", "privileges.create_role"),
        "only where grants are followed: `tests/kernel/whole/test_crashes.py` has it",
    ),
    "storage.make_directories": "only where rows change before listings: `tests/kernel/whole/test_crashes.py` has it",
    **dict.fromkeys(
        ("broker.publish", "record.notices.put"),
        "only with channels of notices: property/test_notices and integration/test_notices have deaths at these",
    ),
    **dict.fromkeys(
        ("record.notice-keys.put", "record.sending.put", "record.sending.remove"),
        "only with channels of notices; no test has a death at these yet",
    ),
}
"""Effects that a history of one process after the other does not have here, each with the reason."""
