"""The source as it is read for a REPL DUMP, and the storage of the place where dumps lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.engine.check.kept_files import change_manager_setting, is_kept
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide
from calque.engine.verify.log_journal import LogJournal
from calque.errors import Refused, Unavailable
from calque.model.names import EventId
from calque.plugins.dumps.config import REPL
from calque.ports import Storage
from calque.wiring.source import SourceWiring
from calque.wiring.wiring import Wiring

FOLDER = "dumps"
"""The folder below the state folder with what dumps hold on this machine while they are written."""


@dataclass(frozen=True, slots=True)
class DumpWiring:
    """The parts of a REPL DUMP, made from the configuration's only source."""

    wiring: Wiring

    @property
    def source(self) -> SourceWiring:
        return self.wiring.only_source()

    @property
    def folder(self) -> Path:
        return self.wiring.state / FOLDER

    def side(self, after: EventId | None, *, captured: bool) -> SourceSide:
        """Return the source for a dump of the events after `after` (None: a bootstrap). The source has its journal
        where a running calque captures it (`captured`) and the journal has these events; else its own log stands in for
        the journal."""
        side = self.source.side()
        if captured and (after is None or reach(side.journal) <= after):
            return side
        return replace(side, journal=LogJournal(side.log), gaps=None)

    def root(self, given: str) -> str:
        """Return the root of dumps: `given`, else that of `[repl]`. Raises `Refused` where both are empty."""
        root = given or self.wiring.config.section(REPL).root
        if not root:
            raise Refused(
                "There is no place for dumps",
                "[repl] has no root, and WITH no 'hive.repl.rootdir'",
                'Write root = "hdfs://ns/repl" below [repl]',
            )
        return root

    def storage(self, root: str) -> Storage:
        """Return the storage that copies from the source into dumps below `root`, and writes there. It uses the options
        of `[repl]`, or those of the source where `[repl]` has none."""
        options = self.source.plug.keys.storage
        own = OwnLocations((root,), self.wiring.config.section(REPL).storage or options)
        roots = self.source.plug.roots(self.source.pins_root(), root, str(self.folder))
        systems = FileSystemSet(options, own=own, roots=roots, kinds=self.wiring.runtime.kinds.file_systems)
        return self.wiring.runtime.guard.storage(self.wiring.runtime.storage(systems))

    def change_root(self) -> str:
        """Return the directory where the source's change manager keeps removed files. The result is empty where the
        change manager is off, or where the server does not tell."""
        server = self.source.server()
        try:
            if change_manager_setting(server, "cm.enabled").lower() != "true":
                return ""
            return change_manager_setting(server, "cmrootdir")
        except Unavailable:
            return ""

    def keeps_files(self, database: str) -> bool:
        """Tell whether Hive's change manager keeps removed files of managed tables of the database."""
        found = self.source.side().catalog.database(database)
        return found is not None and is_kept(found)
