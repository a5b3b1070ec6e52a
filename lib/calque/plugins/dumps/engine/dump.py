"""The making of one dump, from the choice of its directory to its mark `_finished_dump`, and the removal of old
ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from calque.engine.sides.sides import SourceSide
from calque.plugins.dumps.engine.bootstrap import BootstrapDump
from calque.plugins.dumps.engine.directories import is_cleaning_due, place_of_dump, remove_dead, remove_old
from calque.plugins.dumps.engine.increment import IncrementDump
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from calque.plugins.dumps.engine.spool import Spool
from calque.plugins.dumps.engine.write import DumpWriter
from calque.ports import Storage


@dataclass(frozen=True, slots=True)
class DumpPlace:
    """The place of dumps: directories below `root` of the storage, and `folder` on this machine for dumps under way.
    The newest `retain` finished dumps of each database stay (0: all), for at most `seconds`. A dump looks for old ones
    where the last look was at least `pause` seconds ago."""

    storage: Storage
    root: str
    folder: Path
    retain: int
    seconds: float
    pause: float = 0.0


def dump(
    source: SourceSide, place: DumpPlace, request: DumpRequest, report: Callable[[str], None] = lambda _: None
) -> FinishedDump:
    """Write a dump as the request asks, then remove old dumps. Call `report` with texts that say how far it is. A dump
    that fails leaves no directory. Raises `Refused` where the source does not have what is asked for, or it can't be
    dumped, and `Unavailable` where the source does not answer or changes too fast."""
    database = request.scope.database
    remove_dead(place.folder, place.storage)
    layout = request.options.layout
    with place_of_dump(place.folder, place.storage, place.root, database, layout) as (directory, folder):
        spool = Spool(folder)
        writer = DumpWriter(place.storage, folder)
        try:
            kind = BootstrapDump if request.from_event is None else IncrementDump
            finished = kind(source, request, directory, writer, spool, report).write()
        finally:
            spool.close()
        now_ns = source.clock.now_ns()
        if is_cleaning_due(place.folder, database, int(place.pause * 1e9), now_ns):
            before_ns = now_ns - int(place.seconds * 1e9)
            remove_old(place.storage, place.root, database, place.retain, before_ns, directory)
    return finished
