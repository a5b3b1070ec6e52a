"""Ledgers on disk whose epochs changed a few tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calque.adapters.delta.ledger import DeltaLedger
from calque.model.ledger import Epoch, ObjectRow

MINUTE = "2024-05-01T10:{:02}:00.000+00:00"
"""An epoch is published each minute, and ends at the tenth event after the one before."""


def epoch(number: int, **more: object) -> Epoch:
    plain = Epoch(number, 10 * number, 10 * number - 10, MINUTE.format(number % 60), "window")
    return replace(plain, **more)  # type: ignore[arg-type]


def change(kind: str, table: str = "orders", partition: str = "", **more: object) -> ObjectRow:
    """A row of the table in `sales`."""
    return replace(ObjectRow("sales", table, partition, "7", 5, kind, f"file:/dr/{table}"), **more)  # type: ignore[arg-type]


def publish(ledger: DeltaLedger, *numbers: int) -> None:
    """Epochs of these numbers, each of which changes `sales.orders` and `hr.staff`."""
    for number in numbers:
        rows = [
            change("create_table" if number == 1 else "alter_table", event_id=10 * number),
            change("append", "staff", event_id=10 * number - 1, database="hr", step=1),
        ]
        ledger.publish(epoch(number, kind="bootstrap" if number == 1 else "window"), rows, [])


def ledger_with(folder: Path, epochs: int) -> DeltaLedger:
    """Epochs 1 to `epochs` as `publish` has them."""
    ledger = DeltaLedger(str(folder))
    publish(ledger, *range(1, epochs + 1))
    return ledger
