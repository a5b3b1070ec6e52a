"""A bootstrap of one table with many partitions, each with a file: what the process holds and how long it takes.

`python -m support.sources.large_dump FOLDER PARTITIONS`
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from calque.adapters.files import FileStorage
from calque.engine.sides.sides import SourceSide
from calque.engine.verify.log_journal import LogJournal
from calque.model.files import File, Listing
from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.plugins.dumps.core.options import dump_options, known_options
from calque.plugins.dumps.core.scope import scope_of
from calque.plugins.dumps.engine.dump import DumpPlace, dump
from calque.plugins.dumps.engine.request import DumpRequest
from support.memory.metastore import HIVE_4, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.programs import peak_megabytes
from support.sources.endless import KEYS, ORDERS, Source, storage
from support.sources.heavy import HeavyLog, heavy_events


class EveryDirectory(MemoryStorage):
    """One old file wherever somebody looks."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        return {location: Listing(location, (File("000000_0", 1, 1),)) for location in locations}


class Reader(Source):
    def table(self, _name: TableName) -> Table | None:
        return Table(
            ORDERS.table,
            ORDERS.database,
            storage=storage("file:/warehouse/d1.db/orders"),
            partition_keys=KEYS,
            parameters={},
            type="MANAGED_TABLE",
        )

    def tables(self, _database: str) -> Sequence[str]:
        return [ORDERS.table]


def main(folder: Path, count: int) -> None:
    metastore = MemoryMetastore(HIVE_4, "file:/source")
    metastore.create_database(Database("d1", parameters={}))
    reader = Reader(metastore)
    reader.count = count
    log = HeavyLog(heavy_events(1, 10))
    source = SourceSide("hq", log, reader, LogJournal(log), None, EveryDirectory())  # type: ignore[arg-type]
    place = DumpPlace(FileStorage(), str(folder / "dumps"), folder / "own", 3, 1e6)
    request = DumpRequest(scope_of("d1", None, None), dump_options(known_options({}, ())))
    began = time.monotonic()
    finished = dump(source, place, request)
    told = {
        "directory": finished.directory.directory,
        "seconds": time.monotonic() - began,
        "megabytes": peak_megabytes(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
