"""Dumps in a folder of their own, as their source would have left them, and loads of them into a target in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from calque.adapters.files.storage import FileStorage
from calque.core.formats.layout import join
from calque.engine.sides.sides import SystemClock, TargetSide
from calque.model.hive import Table, location_of
from calque.model.ledger import StateRow
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.scan import Scan
from calque.plugins.dumps.adapters.directory import open_dump
from calque.plugins.dumps.run.load import DumpLoad, LoadBounds
from calque.plugins.dumps.wiring.dump_source import DumpSource, OpenedDump
from calque.ports import Catalog, Clock
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.sources.recorded_dumps import recorded_files

RECORDED_ROOT, RECORDED_JAR = b"/lab/repl/runI/fs", b"/lab/repl/udf.jar"
RECORDED_POLICY = Policy("dr", "hq", include=("src.*",), rename={"src": "dst"}, grace=0.0)


def unpack_recorded(root: Path) -> str:
    """The dumps that Hive wrote, and the source's files after the last of them, below the folder; the location that
    their directories lie below."""
    for archive, folder in (("bootstrap", root / "repl"), ("incremental", root / "repl"), ("source-files", root)):
        for name, content in recorded_files(archive).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            jar = str(root / "udf.jar").encode()
            path.write_bytes(content.replace(RECORDED_ROOT, str(root).encode()).replace(RECORDED_JAR, jar))
    (root / "udf.jar").write_bytes(b"a jar")
    return f"file:{root}/repl"


@dataclass(slots=True)
class LoadWorld:
    """A target in memory, whose files lie below `root`."""

    root: Path
    policy: Policy
    target: MemoryMetastore = field(init=False)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    storage: FileStorage = field(default_factory=FileStorage)
    catalog: Catalog = field(init=False)
    clock: Clock = field(default_factory=SystemClock)
    """The source's."""

    def __post_init__(self) -> None:
        self.target = MemoryMetastore(HIVE_4, f"file:{self.root}/managed")
        self.catalog = MemoryCatalog(self.target)
        self.policy = replace(self.policy, warehouse=f"file:{self.root}/warehouse")

    def side(self) -> TargetSide:
        return TargetSide.of(self.policy, self.catalog, self.ledger, self.storage)

    def load(self, location: str, bounds: LoadBounds | None = None, external: Sequence[Scan] = ()) -> list[StateRow]:
        """What is set aside."""
        source = DumpSource(OpenedDump(open_dump(self.storage, location), self.storage), "hq")
        source.side = replace(source.side, clock=self.clock)
        load = DumpLoad(source, self.side(), bounds or LoadBounds(), external, patience=20.0)
        load.stopping = threading.Event()
        return load.run()

    def shown(self, database: str) -> dict[str, object]:
        """Of each table its columns (of a view its text), and files: by partition where it has some."""
        shown: dict[str, object] = {}
        for name in self.target.tables(database):
            stored = self.target.the_table(TableName(database, name))
            if stored.table.view_expanded_text:
                shown[name] = stored.table.view_expanded_text
            elif stored.table.partition_keys:
                parts = {values: self.files(location_of(part)) for values, part in stored.partitions.items()}
                shown[name] = (columns(stored.table), parts)
            else:
                shown[name] = (columns(stored.table), self.files(location_of(stored.table)))
        return shown

    def files(self, location: str | None) -> dict[str, bytes]:
        assert location is not None
        listing = self.storage.list([location])[location]
        return {file.path: self.storage.read(join(location, file.path)) or b"" for file in listing.files}


def columns(table: Table) -> tuple[str, ...]:
    assert table.storage is not None
    return tuple(column.name for column in table.storage.columns or ())
