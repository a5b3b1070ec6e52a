"""The load of a dump into a target of the configuration: the lease, the policy, and the marks in the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from calque.control.identity import TargetIdentity
from calque.control.process_locks import Roles
from calque.core.images.image import SOURCE, source_mark
from calque.core.policy.admit import Admission
from calque.engine.identity.identity import SourceAnswer
from calque.engine.lease.fence import Fence, NoFence
from calque.engine.sides.sides import TargetSide
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import HIVE_POSITION
from calque.model.ledger import StateRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.records import Record, ScanProgress
from calque.plugins.dumps.core.layout import DumpLayout
from calque.plugins.dumps.core.load_policy import (
    DumpSpan,
    LoadPolicy,
    is_loaded,
    load_policy,
    require_fills_gone,
    require_takeable,
)
from calque.plugins.dumps.core.partition_places import PartitionPlaces
from calque.plugins.dumps.run.load import DumpLoad, LoadBounds, gone_at_target, name_of
from calque.plugins.dumps.run.load_external import external_scans, places_at_source
from calque.plugins.dumps.wiring.dump_source import DumpSource, OpenedDump
from calque.ports.forwarding import ForwardingLedger
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
PACE_SECONDS = 0.3
OF_DUMP = SourceAnswer()


@dataclass(slots=True)
class TargetLoad:
    """The load of one dump into one target. `local_database` is the database's name there. External tables go to
    `external_base`, resources of functions to `functions_root`. `report` is called with texts that say how far the load
    is."""

    wiring: Wiring
    target: TargetWiring
    opened: OpenedDump
    source_name: str
    local_database: str
    external_base: str = ""
    functions_root: str = ""
    bounds: LoadBounds = field(default_factory=LoadBounds)
    report: Callable[[str], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    """Called with sentences for the user about a load that has ended."""
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def database(self) -> str:
        return self.opened.dump.database

    def run(self) -> None:
        """Load the dump, unless the target has it already, and mark it as loaded. Raises `Refused` where the target,
        its policy or its ledger does not fit the dump, and `Unavailable` where another writer has the target's lease,
        or objects of the dump could not be loaded."""
        chosen = self.choose_policy()
        self.require_external_base(chosen)
        ledger = (
            self.target.ledger()
            if chosen.is_own
            else self.target.ledger_of_stream(
                self.local_database, self.source_name, self.database, self.is_loaded_database
            )
        )
        before = self.target.side_behind(NoFence(), chosen.policy, ledger)
        TargetIdentity(self.target, before).begin(OF_DUMP)
        with self.writing() as permit:
            side = self.target.side_behind(permit, chosen.policy, ledger)
            self.settle_identity(side)
            if not self.is_done(side):
                missing = self.load(side)
                if missing:
                    raise incomplete(self.opened, missing)
            self.finish(side)

    def settle_identity(self, side: TargetSide) -> None:
        """Write down which metastore and directories the target consists of. A dump has no id of its source: the
        source's name stands for it."""
        lease = self.target.lease()
        assert lease.mine is not None
        identity = TargetIdentity(self.target, side).settle(lease.mine, lease.previous, OF_DUMP)
        epoch = side.ledger.last_epoch()
        lease.shown = identity.ledger, epoch.epoch if epoch is not None else 0

    def choose_policy(self) -> LoadPolicy:
        chosen = load_policy(
            self.target.plug.policy(),
            self.source_name,
            self.database,
            self.local_database,
            self.external_base,
            self.functions_root,
        )
        if not chosen.is_own and self.target.ledger().last_epoch():
            followed = followed_under(self.target.admission(), self.local_database)
            if followed is not None:
                raise Refused(
                    f"{self.target.plug.name} replicates {followed} to {self.local_database}, and other databases, too",
                    "They would stay behind when a dump of it alone takes the target on",
                    f'Use a target with include = ["{followed}.*"], or load into another database: INTO',
                )
        return chosen

    def is_loaded_database(self) -> bool:
        """Tell whether the database at the target says that a dump of this source was loaded into it."""
        database = self.target.side().catalog.database(self.local_database)
        parameters = (database.parameters if database is not None else None) or {}
        is_of_source = parameters.get(SOURCE) == source_mark(self.source_name, TableName(self.database))
        return is_of_source and HIVE_POSITION in parameters

    def require_external_base(self, chosen: LoadPolicy) -> None:
        if self.opened.dump.external() and not chosen.policy.external_base:
            raise Refused(
                "The dump has external tables, and nothing says where they go",
                "Several sources may have tables at one path",
                "Add WITH ('hive.repl.replica.external.table.base.dir' = 'file:///data/external')",
            )

    @contextmanager
    def writing(self) -> Iterator[Fence]:
        """Hold the target's lease for the time of the block, which makes this process its one writer. Wait while
        another process's lease may still end by itself. Raises `Unavailable` where another living process writes to the
        target, and where the load is stopped meanwhile."""
        role, lease = self.target.places.role, self.target.lease()
        with Roles(self.wiring.state) as roles:
            roles.take({role: lease.seconds}, self.stopping)
            writer = self.target.writer(roles.proof(role))
            try:
                while lease.attempt(writer) is not None:
                    self.report(f"waiting for the lease on {self.target.plug.name}")
                    if self.stopping.wait(lease.pause()):
                        raise Unavailable("The load was ended", "It waited for the lease", "Say it again")
                lease.keep(lambda error: LOG.error("%s", error))
                yield lease
            finally:
                lease.release()

    def is_done(self, side: TargetSide) -> bool:
        """Tell whether the target has all of the dump. Raises `Refused` where the dump may not be loaded into it."""
        dump = self.opened.dump
        epoch = side.ledger.last_epoch()
        shown = epoch.event_id if epoch is not None else None
        name = self.local_database
        database = side.catalog.database(name)
        require_takeable(database, name, self.source_name, self.database, shown)
        span = DumpSpan(dump.location, dump.begin, dump.end, dump.metadata.is_bootstrap)
        if database is None and shown is not None:
            require_fills_gone(span, name, shown)
            return False
        if not is_loaded(span, shown):
            return False
        if shown != dump.end:
            self.note(f"{dump.location} ends at event {dump.end}, and {name} shows event {shown}: nothing is loaded")
            return True
        return self.shows_its_tables(side)

    def shows_its_tables(self, side: TargetSide) -> bool:
        """Tell whether the target, which is at the dump's end, has the tables that the dump's policy takes, and no
        others. The event id alone does not say this, because a dump of another policy may end at the same event."""
        rows = side.ledger.tables().values()
        if any(map(is_set_aside, rows)):
            return False
        shown = {row.name for row in rows if isinstance(row, TableRow)}
        takes, source = self.opened.dump.takes(), DumpSource(self.opened, self.source_name)
        if self.opened.dump.metadata.is_bootstrap and gone_at_target(side, shown):
            return False
        return all(map(takes, shown)) and not any(map(side.admission.takes, source.lacked_by(shown)))

    def load(self, side: TargetSide) -> list[StateRow]:
        source = DumpSource(self.opened, self.source_name)
        with_ledger = replace(side, ledger=WithoutScanProgress(side.ledger))
        before = self.external_places()
        missing = DumpLoad(
            source,
            with_ledger,
            self.bounds,
            external_scans(source, side, before),
            lambda event_id: mark(side, self.local_database, event_id),
            self.report,
            self.stopping,
            pace=PACE_SECONDS,
        ).run()
        self.keep_external_places(places_at_source(source, before))
        return missing

    def external_places(self) -> PartitionPlaces:
        """Return the places of partitions of external tables as earlier loads recorded them."""
        record = self.target.folder.control.read(self.external_places_record) or {}
        tables: Any = record.get("tables", {})
        return {TableName(self.database, table): dict(partitions) for table, partitions in tables.items()}

    def keep_external_places(self, places: PartitionPlaces) -> None:
        control = self.target.folder.control
        if places or control.read(self.external_places_record) is not None:
            tables = {name.table: dict(partitions) for name, partitions in places.items()}
            control.put(self.external_places_record, {"tables": tables})

    @property
    def external_places_record(self) -> str:
        return self.target.places.external_places_record(self.local_database, self.source_name)

    def finish(self, side: TargetSide) -> None:
        """Mark the database at the target with the event that it shows, and the dump as loaded (`_finished_load`). A
        dump that can't be marked is only logged."""
        side.stopping.clear()
        dump, epoch = self.opened.dump, side.ledger.last_epoch()
        if epoch is not None:
            mark(side, self.local_database, epoch.event_id)
        directory = dump.directory
        if directory.layout is DumpLayout.HIVE_4 and not dump.storage.exists(directory.finished_load):
            try:
                dump.storage.write(directory.finished_load, b"")
            except CalqueError as error:
                LOG.warning("%s can't be marked as loaded: %s", dump.location, error)


class WithoutScanProgress(ForwardingLedger):
    """A ledger that neither reads nor writes how far scans have come. The scans of a load have numbers of their own,
    which mean nothing to the target's next process."""

    def records(self) -> Sequence[Record]:
        return [record for record in super().records() if not isinstance(record, ScanProgress)]

    def put_records(self, records: Sequence[Record]) -> None:
        if kept := [record for record in records if not isinstance(record, ScanProgress)]:
            super().put_records(kept)


def followed_under(admission: Admission, local_database: str) -> str | None:
    """Return the source's database that the target's own policy shows under the name `local_database`; None where there
    is none."""
    name = admission.source_of(TableName(local_database))
    return name.database if name is not None else None


def is_set_aside(row: StateRow) -> bool:
    return row.state is not TableState.LIVE if isinstance(row, TableRow) else row.state is TableState.QUARANTINED


def mark(side: TargetSide, database: str, event_id: EventId) -> None:
    """Write the event that the database shows into its parameter `repl.last.id`, where every tool finds it. Do nothing
    where the database is missing or has this mark."""
    target_database = side.catalog.database(database)
    if target_database is None or (target_database.parameters or {}).get(HIVE_POSITION) == str(event_id):
        return
    parameters = {**(target_database.parameters or {}), HIVE_POSITION: str(event_id)}
    side.catalog.alter_database(database, replace(target_database, parameters=parameters))


def incomplete(opened: OpenedDump, missing: list[StateRow]) -> Unavailable:
    shown = "; ".join(f"{name_of(row)}: {row.reason}" for row in missing[:3])
    more = f"; and {len(missing) - 3} more" if len(missing) > 3 else ""
    return Unavailable(
        f"{opened.dump.location} is loaded without {len(missing)} of its objects",
        shown + more,
        "What the target shows is whole. Mend that, and say the statement again; or load a newer bootstrap dump",
    )
