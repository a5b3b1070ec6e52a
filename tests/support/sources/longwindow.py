"""Apply a journal in one window, and tell what its events took: `longwindow JOURNAL`."""

from __future__ import annotations

import json
import sys

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.advance import advance, carry_out
from calque.engine.window.prepare import Positions
from calque.model.names import Span
from calque.model.policy import Policy
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.programs import peak_megabytes
from support.sources.heavyflow import DATABASE, TABLE
from support.sources.logs import Log, part, partitioned

PIECE = 10_000
"""Events that are written to the journal at a time."""


def write(location: str, events: int) -> None:
    """A journal of a table whose partitions are altered again and again: after an event that creates it and one that
    adds them, `events` more."""
    journal, table = DeltaJournal(location), partitioned()
    parts = [part(table, str(number)) for number in range(100)]
    journal.append(rows_of_events(Log().create(table).add(table, *parts).events))
    for first in range(3, events + 3, PIECE):
        log = Log().at(first)
        for number in range(min(PIECE, events + 3 - first)):
            before = parts[number % len(parts)]
            log.alter_partition(table, before, before)
        journal.append(rows_of_events(log.events))


def main(location: str) -> None:
    target = MemoryMetastore()
    target.create_database(DATABASE)
    journal = DeltaJournal(location)
    source = SourceSide("hq", None, MemoryCatalog(MemoryMetastore()), journal, MemoryEvidence(), MemoryStorage())
    side = TargetSide.of(
        Policy("dr", "hq", warehouse="file:/target", data="none"),
        MemoryCatalog(target),
        MemoryLedger(),
        MemoryStorage(),
    )
    upto = journal.last()
    journal.entries(Span(0, 2))
    before = peak_megabytes()
    entries = journal.entries(Span(0, upto))
    advance(source, side, entries, Positions(0), upto, None, interpret=carry_out)
    print(
        json.dumps(
            {"bytes": (peak_megabytes() - before) * 2**20, "partitions": len(side.catalog.partition_names(TABLE))}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
