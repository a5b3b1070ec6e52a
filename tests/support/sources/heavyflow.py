"""Capture and apply a `heavy.WideLog`, and tell what that took: `heavyflow LOG_URI FOLDER`."""

from __future__ import annotations

import json
import sys
import time

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.held_evidence import MemoryEvidence
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.window.advance import advance, carry_out
from calque.engine.window.prepare import Positions
from calque.model.hive import Database
from calque.model.names import Span, TableName
from calque.model.policy import Policy
from support.memory.gaps import MemoryGaps
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.programs import peak_megabytes

DATABASE, TABLE = Database("d1"), TableName("d1", "t")


def main(uri: str, folder: str) -> None:
    target = MemoryMetastore()
    source = SourceSide(
        "hq",
        HiveLog(Client(uri)),
        MemoryCatalog(MemoryMetastore()),
        DeltaJournal(folder),
        MemoryEvidence(),
        MemoryStorage(),
        gaps=MemoryGaps(),
    )
    policy = Policy("dr", "hq", warehouse="file:/target", data="none")
    side = TargetSide.of(policy, MemoryCatalog(target), MemoryLedger(), MemoryStorage())
    told: dict[str, float] = {"imported": peak_megabytes()}
    began = time.monotonic()
    upto = source.log.current()
    Capture(source, 0, EvidenceGatherer(source, lambda _: False), Continuity(source, 0)).take(upto)
    told |= {"captured": peak_megabytes(), "capture_seconds": time.monotonic() - began}
    began = time.monotonic()
    target.create_database(DATABASE)
    entries = [entry for entry in source.journal.entries(Span(0, upto)) if entry.keys.table is not None]
    advance(source, side, entries, Positions(0), upto, None, interpret=carry_out)
    told |= {"applied": peak_megabytes(), "apply_seconds": time.monotonic() - began}
    told["partitions"] = len(side.catalog.partition_names(TABLE))
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
