"""The live objects of one source: `SourceWiring`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from calque.adapters.delta.commits import DeltaCommits
from calque.adapters.delta.scans import DeltaScans
from calque.adapters.files.pins import StoredPins, why_not_linked
from calque.adapters.files.systems import FileSystemSet
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.first_seen import FirstSeen
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.server import MetastoreServer
from calque.adapters.metastore.transactions import HiveTransactionReader
from calque.config.plugs import Source
from calque.engine.check.kept_files import kept_seconds_of_some
from calque.engine.identity.identity import SourceAnswer, ask_source
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused, Unavailable
from calque.model.state_places import SourcePlaces
from calque.ports import CatalogReader, Commits, EventLog, EvidenceStore, Gaps, Pins, Scans, Storage
from calque.ports.services import tells_inserts
from calque.ports.source import ClosableLog
from calque.wiring.journal_location import JournalAddress, JournalLocation
from calque.wiring.kept import KeptObjects
from calque.wiring.kinds import JournalTable, OpenJournal
from calque.wiring.runtime import Runtime
from calque.wiring.state_folder import StateFolder
from calque.wiring.worker_openers import open_log

T = TypeVar("T")


@dataclass(slots=True)
class SourceWiring:
    """The live objects of one source, each made when it is first asked for. Nothing connects before it is used."""

    plug: Source
    folder: StateFolder
    runtime: Runtime
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    """The id of the metastore that this process met first behind the source's addresses, so that another one is
    refused."""
    _side: SourceSide | None = None
    _kept: KeptObjects[SourceWiring] = field(default_factory=KeptObjects)

    def kept(self, make: Callable[[SourceWiring], T]) -> T:
        """Return the object that a plugin's `make` makes of the source, made at the first call and the same one
        later."""
        return self._kept.of(self, make)

    @property
    def places(self) -> SourcePlaces:
        return self.plug.places

    def side(self) -> SourceSide:
        """Return the source as the engine knows it: its log, catalog, journal, evidence and storage."""
        if self._side is None:
            guard, follows = self.runtime.guard, self.plug.follows_transactions
            log, catalog = self._log_and_catalog()
            journal, evidence = self.open_journal()
            self._side = SourceSide(
                self.plug.name,
                log,
                catalog,
                guard.journal(journal),
                guard.evidence(evidence),
                self.runtime.storage(self._systems(), ended=self.runtime.ending.is_set),
                scans=self.scans(),
                pins=self.pins(),
                gaps=self.gaps(),
                commits=guard.commits(self.commits()) if follows else None,
                transactions=HiveTransactionReader(self.client()) if follows else None,
            )
        return self._side

    def dump_storage(self) -> Storage:
        """Return a storage for dumps of the source and for the files that they name."""
        return self.runtime.guard.storage(self.runtime.storage(self._systems()))

    def server(self) -> MetastoreServer:
        """Return the server of the source's metastore (`ports.MetastoreInfo`), through a new client."""
        return MetastoreServer(self.client())

    def tells_inserts(self, log: EventLog) -> bool | None:
        """Tell whether the metastore has engines log INSERTs, asked through the log's connection; None where that is
        not known."""
        try:
            return tells_inserts(MetastoreServer(log.client)) if isinstance(log, HiveLog) else None
        except Unavailable:
            return None

    @property
    def own_log(self) -> Path:
        """The file of calque's own log, for a catalog that has no log."""
        return self.folder.path / self.places.looks

    def impatient_log(self, seconds: float) -> ClosableLog:
        """Return the log through a connection of its own, on which a call is given up after `seconds`."""
        if self.plug.catalog is not None:
            return self.plug.catalog.log(self.own_log)
        client = self.client(connect_timeout=seconds, call_timeout=seconds, connections=1)
        return HiveLog(client, max_message=self.plug.keys.max_message)

    def answer(self, seconds: float) -> SourceAnswer:
        """Return what the source says of itself now. Each call is given up after `seconds`, and a source that does not
        answer gives an empty answer. A catalog without a log has no id."""
        if self.plug.catalog is not None:
            return SourceAnswer("")
        client = self.client(connect_timeout=seconds, call_timeout=seconds, connections=1)
        try:
            return ask_source(HiveReader(client), HiveLog(client))
        finally:
            client.close()

    def open_log(self) -> Callable[[], EventLog]:
        """Return a function that opens the log, also in other processes."""
        if self.plug.catalog is not None:
            return self.plug.catalog.log_opener(self.own_log)
        return partial(open_log, self._uris(), self.plug.access(), self.plug.keys.max_message, self.first_seen)

    def gaps(self) -> Gaps:
        return self.folder.gaps(self.places.gaps_record)

    def pins(self) -> Pins | None:
        """Return the store of files that are kept of the source; None where the configuration keeps none."""
        keys = self.plug.keys
        if keys.pin == "none":
            return None
        storage = self.runtime.storage(self._systems())
        links, copies = keys.pin != "copy", keys.pin != "auto"
        return self.runtime.guard.pins(StoredPins(storage, self.pins_root(), links=links, copies=copies))

    def why_not_read(self) -> Callable[[str], Refused | None]:
        """Return a function that says why a location of the source is not read; it returns None where the location is
        read."""
        return self._systems().why_misplaced

    def why_not_linked(self, location: str) -> str:
        """Return why `pin = "auto"` can't keep the files of the directory at `location` by hard links; empty where it
        can."""
        return why_not_linked(location, self.pins_root())

    def kept_by(self) -> str:
        """Return how files are kept where the source's databases lie by default: `hardlink`, `copy` or `none`."""
        pin = self.plug.keys.pin
        if pin != "auto":
            return pin
        database = self.side().catalog.database("default")
        location = database.location if database is not None else None
        return "hardlink" if location and not self.why_not_linked(location) else "none"

    def kept_seconds(self, takes_database: Callable[[str], bool]) -> float | None:
        """Return for how many seconds Hive keeps replaced files of the databases that `takes_database` wants; None
        where it keeps none, or does not say."""
        if self.plug.catalog is not None:
            return None
        return kept_seconds_of_some(self.server(), self.side().catalog, takes_database)

    def pins_root(self) -> str:
        """Return the path or URI of the folder of kept files."""
        return self.plug.keys.pins or f"{self.folder.section.path}/{self.places.pins}"

    def scans(self) -> Scans | None:
        """Return the table of what was scanned; None where the configuration scans nothing."""
        if not self.plug.keys.scans_some():
            return None
        return self.runtime.guard.scans(DeltaScans(str(self.folder.path / self.places.scans)))

    def commits(self) -> Commits:
        """Return the table of commits of transactions."""
        return DeltaCommits(str(self.folder.path / self.places.commits))

    # The journal

    @property
    def journal_location(self) -> JournalLocation:
        """The place of the source's journal, by the configuration and by the record."""
        return JournalLocation(self.plug, self.folder.control)

    def journal(self) -> JournalTable:
        """Return the journal that exists, opened anew. Raises `Refused` for a journal of a format that no plugin
        has."""
        return self.open_journal()[0]

    def open_journal(self, address: JournalAddress | None = None) -> tuple[JournalTable, EvidenceStore]:
        """Open the journal at `address`, or for None the one that exists, and its evidence. Both are opened anew.
        Raises `Refused` for a format that no plugin has."""
        return self.journal_opener(address)()

    def journal_opener(self, address: JournalAddress | None = None) -> OpenJournal:
        """Return a function that opens the journal and its evidence, also in processes that Spark starts. Raises
        `Refused` for a format that no plugin has."""
        address = address or self.journal_location.place()
        return self.runtime.kinds.journal(address.format).opener(self.plug, self.folder, address)

    def _log_and_catalog(self) -> tuple[EventLog, CatalogReader]:
        if self.plug.catalog is not None:
            return self.plug.catalog.log(self.own_log), self.plug.catalog.reader()
        client = self.client(connections=self.plug.keys.connections)
        return HiveLog(client, max_message=self.plug.keys.max_message), HiveReader(client)

    def client(self, **options: Any) -> Client:
        """Return a new client of the source's metastore."""
        return Client(self._uris(), self.plug.access(), first_seen=self.first_seen, **options)

    def _uris(self) -> str:
        return ",".join(self.plug.keys.metastore)

    def _systems(self) -> FileSystemSet:
        keys = self.plug.keys
        return FileSystemSet(
            keys.storage,
            roots=self.plug.roots(self.pins_root()),
            most_read=keys.max_message,
            kinds=self.runtime.kinds.file_systems,
        )
