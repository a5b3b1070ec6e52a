"""A deployment that is known by its ledger alone: nobody can reach its metastores, and nothing runs."""

from __future__ import annotations

from pathlib import Path

from calque.adapters.delta.ledger import DeltaLedger
from calque.model.ledger import Bridge, DatabaseRow, Epoch, TableRow, TableState

AT = "2024-01-01T00:00:00.000+00:00"
TEXT = """\
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
rename = { "sales" = "sales_dr" }
"""
SECOND = """\
[targets.backup]
metastore = "thrift://127.0.0.1:3"
warehouse = "backup"
"""


def recorded_ledger(folder: Path, text: str = TEXT) -> Path:
    """Its configuration. The target `dr` has two epochs, and tables in several states."""
    file = folder / "calque.toml"
    file.write_text(text, encoding="utf-8")
    ledger = DeltaLedger(str(folder / "state" / "ledgers" / "dr"))
    rows = [
        TableRow("sales", "orders", TableState.LIVE, 8),
        TableRow("sales", "items", TableState.QUARANTINED, 5, "It can't be read.", 7),
        TableRow("hr", "staff", TableState.STAGING, None, "It is being copied."),
        DatabaseRow("tmp", TableState.QUARANTINED, "It is not calque's.", 3),
    ]
    ledger.publish(Epoch(1, 5, 2, AT, "bootstrap", tables=2, hops=2, files=3, bytes=9), [], rows)
    ledger.publish(Epoch(2, 8, 5, AT, "window", tables=1, hops=1, bridges=(Bridge("sales.orders", 5, 8),)), [], [])
    return file


def spoil(folder: Path) -> None:
    """Make the ledger one that can't be read."""
    for file in (folder / "state" / "ledgers" / "dr" / "epochs" / "_delta_log").glob("*.json"):
        file.write_text("{", encoding="utf-8")
