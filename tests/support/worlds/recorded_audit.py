"""A deployment whose journal and ledger tell of a few hops: what the audit is asked about."""

from __future__ import annotations

from pathlib import Path

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.core.events.rows import table_of
from calque.model.files import File
from calque.model.journal import Event, EventKind, Keys
from calque.model.ledger import Bridge, Epoch, ObjectRow, TableRow, TableState
from calque.model.names import TableName
from support.worlds.recorded_ledger import TEXT

NOON = 1_700_000_000
"""2023-11-14 22:13:20; an event comes each second, an epoch a second after its last event."""
EVENTS = (
    ("sales", "orders", EventKind.CREATE_TABLE, False),
    ("sales", "orders", EventKind.ADD_PARTITIONS, False),
    ("sales", "orders", EventKind.ADD_PARTITIONS, False),
    ("sales", "items", EventKind.CREATE_TABLE, False),
    ("sales", "orders", EventKind.ALTER_TABLE, True),
    ("sales", "items", EventKind.INSERT, False),
    ("tmp", "x", EventKind.CREATE_TABLE, False),
    ("sales", "orders", EventKind.ADD_PARTITIONS, False),
    ("sales", "items", EventKind.INSERT, False),
)
"""From event 1 on: database, table, kind, whether it changes statistics alone."""
HOPS = (
    (3, [("orders", "", "create_table", 0), ("orders", "p=1", "add_partitions", 10), ("orders", "p=2", "publish", 20)]),
    (6, [("items", "", "read", 7)]),
    (8, [("orders", "p=3", "add_partitions", 30)]),
)
"""Each an epoch: its event, and the objects of its hop with the bytes of a file."""


def recorded_audit(folder: Path, text: str = TEXT) -> Path:
    """Its configuration: a source, and the target `dr` whose newest epoch is of event 8."""
    file = folder / "calque.toml"
    file.write_text(text, encoding="utf-8")
    state = folder / "state"
    journal = DeltaJournal(str(state / "journal"))
    for number, (database, table, kind, facets) in enumerate(EVENTS, 1):
        event = Event(number, NOON + number, kind.value.upper(), "hive", database, table, "json", "")
        journal.append(table_of([(event, Keys(kind, TableName(database, table), facets_only=facets))]))
    ledger = DeltaLedger(str(state / "ledgers" / "dr"))
    states = [
        TableRow("sales", "orders", TableState.LIVE, 8),
        TableRow("sales", "items", TableState.WAITING, 6, "It is held back.", 9),
    ]
    before = 0
    for number, (event_id, objects) in enumerate(HOPS, 1):
        rows = [object_row(table, partition, event_id, change, size) for table, partition, change, size in objects]
        bridges = (Bridge("sales.orders", before, event_id),) if number == 3 else ()
        published_at = f"2023-11-14T22:13:{20 + event_id + 1}.500+00:00"
        epoch = Epoch(number, event_id, before, published_at, "window", 1, hops=1, bridges=bridges)
        ledger.publish(epoch, rows, states)
        before = event_id
    return file


def object_row(table: str, partition: str, event_id: int, change: str, size: int) -> ObjectRow:
    files = (File(f"{table}-{size}", size, 0, ""),) if size else ()
    return ObjectRow("sales", table, partition, "1", event_id, change, f"file:///{table}", files=files)
