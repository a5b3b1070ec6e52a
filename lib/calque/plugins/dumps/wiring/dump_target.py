"""What REPL DUMP works with: the source as it is read for a dump, and the storage where dumps lie."""

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
"""Below the state folder: what dumps hold on this machine while they are written."""


@dataclass(frozen=True, slots=True)
class DumpWiring:
    """Of the only source."""

    wiring: Wiring

    @property
    def source(self) -> SourceWiring:
        return self.wiring.only_source()

    @property
    def folder(self) -> Path:
        return self.wiring.state / FOLDER

    def side(self, after: EventId | None, *, captured: bool) -> SourceSide:
        """The source: with its journal where a running calque captures it and has what comes after that event, else on
        its own log."""
        side = self.source.side()
        if captured and (after is None or reach(side.journal) <= after):
            return side
        return replace(side, journal=LogJournal(side.log), gaps=None)

    def root(self, given: str) -> str:
        """Where dumps lie. Raises `Refused` where nobody says."""
        root = given or self.wiring.config.section(REPL).root
        if not root:
            raise Refused(
                "There is no place for dumps",
                "[repl] has no root, and WITH no 'hive.repl.rootdir'",
                'Write root = "hdfs://ns/repl" below [repl]',
            )
        return root

    def storage(self, root: str) -> Storage:
        """Copies from the source into dumps, and writes there: by the options of the source where `[repl]` has none."""
        options = self.source.plug.keys.storage
        own = OwnLocations((root,), self.wiring.config.section(REPL).storage or options)
        roots = self.source.plug.roots(self.source.pins_root(), root, str(self.folder))
        systems = FileSystemSet(options, own=own, roots=roots, kinds=self.wiring.runtime.kinds.file_systems)
        return self.wiring.runtime.guard.storage(self.wiring.runtime.storage(systems))

    def change_root(self) -> str:
        """Where the source's change manager keeps files; empty where it is off, or the server does not tell."""
        server = self.source.server()
        try:
            if change_manager_setting(server, "cm.enabled").lower() != "true":
                return ""
            return change_manager_setting(server, "cmrootdir")
        except Unavailable:
            return ""

    def keeps_files(self, database: str) -> bool:
        """Whether Hive keeps files of managed tables of the database."""
        found = self.source.side().catalog.database(database)
        return found is not None and is_kept(found)
