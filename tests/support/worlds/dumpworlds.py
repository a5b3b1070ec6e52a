"""Worlds whose target is never run: dumps of the source are loaded into it, with a reader at it all the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from calque.model.hive import Storage, Table
from calque.model.ledger import StateRow
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.plugins.dumps.core.options import DUMP_KEYS, dump_options, known_options
from calque.plugins.dumps.core.scope import Scope, scope_of
from calque.plugins.dumps.engine.dump import DumpPlace, dump
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from calque.plugins.dumps.run.load import DumpLoad, LoadBounds
from calque.plugins.dumps.wiring.dump_source import DumpSource, opened_dump
from support.sources.keeping import KeepingDirectories, KeepingFiles, KeepingSource
from support.sources.writers import Noting, Writer
from support.worlds.worlds import ABSENT, Died, InlineExecutor, World

EVERYTHING = scope_of("d1", None, None)


class HiveWriter(Writer):
    """Writes `000000_0` where no such file lies, and other names beside it."""

    operations: tuple[str, ...] = ()

    def step(self) -> None:
        self.run(self.rng.choice(self.operations))

    def database(self) -> str:
        return "d1"

    def put_file(self, location: str) -> str:
        names = self.storage.children(location)
        self.files += 1
        path = f"{location}/000000_0" if "000000_0" not in names else f"{location}/000000_0_copy_{self.files}"
        self.storage.write(path, self.rng.randbytes(self.rng.randrange(1, 4)))
        return path


class ManagedSource:
    """Makes managed tables alone: of files of others a dump says nothing but where they are."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __getattr__(self, call: str) -> Any:
        return getattr(self.source, call)

    def create_table(self, table: Table) -> None:
        if table.type == "EXTERNAL_TABLE":
            parameters = {key: value for key, value in (table.parameters or {}).items() if key != "EXTERNAL"}
            storage = replace(table.storage or Storage(), location=None)
            table = replace(table, type="MANAGED_TABLE", parameters=parameters, storage=storage)
        self.source.create_table(table)


class DumpWorld(World):
    """A source whose files Hive keeps, so that dumps may name them. `folder` is for what dumps hold on this machine."""

    def __init__(self, seed: int, folder: Path, operations: Iterable[str]) -> None:
        policy = Policy(
            "dr", "hq", include=("d1.*",), rename={"d1": "d1_dr"}, warehouse="file:/target", grace=0.0, max_drop=1.0
        )
        super().__init__(seed, None, policy)
        self.folder = folder
        self.load_patience = 20.0
        directories = KeepingDirectories(self.storage, lambda _: True)
        source = Noting(ManagedSource(KeepingSource(self.source, directories)), self.note)  # type: ignore[arg-type]
        self.writer = HiveWriter(source, KeepingFiles(directories), self.rng, ("d1",))
        self.writer.operations = tuple(operations)
        self.scope: Scope = EVERYTHING

    def dump(self, from_event: EventId | None = None, **asked: object) -> FinishedDump:
        """`asked` as in `DumpRequest`; without a layout a random one."""
        self.capture_all()
        options = {"calque.repl.layout": self.rng.choice("34")}
        request = DumpRequest(
            self.scope,
            dump_options(known_options(options, DUMP_KEYS)),
            from_event=from_event,
            change_root="file:/cmroot",
            keeps_files=True,
        )
        place = DumpPlace(self.storage, "file:/dumps", self.folder, 0, 1e9)
        return dump(self.source_side, place, replace(request, **asked))  # type: ignore[arg-type]

    def load(self, finished: FinishedDump, bounds: LoadBounds | None = None) -> list[StateRow]:
        """As often as it takes where it dies; what is set aside in the end."""
        while True:
            self.mortal = True
            try:
                return self.load_once(finished, bounds or LoadBounds())
            except Died:
                self.deaths += 1
            finally:
                self.mortal = False

    def load_once(self, finished: FinishedDump, bounds: LoadBounds) -> list[StateRow]:
        opened = opened_dump(self.storage, finished.directory.directory)
        source = DumpSource(opened, "hq")
        loading = DumpLoad(
            source, self.side, bounds, pool=lambda _workers, _name: InlineExecutor(), patience=self.load_patience
        )
        return loading.run()

    def wrong(self, event_id: EventId) -> dict[TableName, object]:
        """Tables that do not show the source's state at the event."""
        shown = self.target_states()
        return {
            name: (shown.get(name, ABSENT), self.history.at(name, event_id))
            for name in {*self.history.states, *shown}
            if self.scope.takes(name) and shown.get(name, ABSENT) not in self.history.at(name, event_id)
        }
