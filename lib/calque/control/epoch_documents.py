"""The documents of `calque epochs`: a target's epochs, one of them with its objects, and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.control.epoch_rows import EpochReference, epoch_row
from calque.errors import Refused
from calque.model.ledger import Epoch, ObjectRow
from calque.model.names import TableName
from calque.wiring.wiring import Wiring


def list_document(wiring: Wiring, target: str) -> list[dict[str, Any]]:
    """Return the rows of all epochs of the target's ledger, oldest first."""
    return [epoch_row(epoch) for epoch in wiring.ledger(target).epochs()]


def show_document(wiring: Wiring, target: str, reference: EpochReference) -> dict[str, Any]:
    """Return one epoch with the objects that it changed. Raises `Refused` where there is no such epoch."""
    ledger = wiring.ledger(target)
    epoch = find(ledger.epochs(), reference, target)
    objects = [object_of(row, wiring, target) for row in ledger.objects(epoch.epoch)]
    return {**epoch_row(epoch), **rest_of(epoch), "objects": objects}


def diff_document(wiring: Wiring, target: str, before: EpochReference, after: EpochReference) -> dict[str, Any]:
    """Return what changed after epoch `before`, up to and including epoch `after`. Raises `Refused` where `before`
    comes after `after`, or where there is no such epoch."""
    ledger = wiring.ledger(target)
    epochs = ledger.epochs()
    first, last = find(epochs, before, target), find(epochs, after, target)
    if first.epoch > last.epoch:
        problem = f"Epoch {first.epoch} comes after epoch {last.epoch}"
        raise Refused(problem, "A difference goes forward", f"Write calque epochs diff {last.epoch} {first.epoch}")
    between = [epoch for epoch in epochs if first.epoch < epoch.epoch <= last.epoch]
    objects = changes([(epoch.epoch, row) for epoch in between for row in ledger.objects(epoch.epoch)], wiring, target)
    totals = {name: sum(getattr(epoch, name) for epoch in between) for name in TOTALS}
    return {"target": target, "from": epoch_row(first), "to": epoch_row(last), **totals, "objects": objects}


TOTALS = ("events", "hops", "files", "bytes")
GONE = frozenset({"drop_table", "drop_partition", "rename_away"})
"""Changes after which an object is no longer there under its name."""


def rest_of(epoch: Epoch) -> dict[str, Any]:
    """Return the fields of an epoch that lists leave out; `together` only where some tables moved so."""
    names = ("events", "calls", "in_parts", "rebasing", "set_aside", "disarmed", "digest", "previous_digest")
    gap = {"from": epoch.gap[0], "to": epoch.gap[1]} if epoch.gap is not None else None
    together = {"together": epoch.together} if epoch.together else {}
    return {**{name: getattr(epoch, name) for name in names}, **together, "gap": gap}


def object_of(row: ObjectRow, wiring: Wiring, target: str) -> dict[str, Any]:
    return {
        **named(TableName(row.database, row.table), row.partition, wiring, target),
        "incarnation": row.incarnation,
        "event_id": row.event_id,
        "change": row.change,
        "location": row.location,
        "files": [{"path": file.path, "size": file.size, "checksum": file.checksum} for file in row.files],
        "delta_version": row.delta_version,
    }


def changes(rows: Sequence[tuple[int, ObjectRow]], wiring: Wiring, target: str) -> list[dict[str, Any]]:
    """Return each changed object with its changes, oldest first; `rows` come with the numbers of their epochs. `files`
    and `location` are what the object has at the end: null where it is gone, or where no change says."""
    grouped: dict[tuple[TableName, str], list[tuple[int, ObjectRow]]] = {}
    for epoch, row in rows:
        grouped.setdefault((TableName(row.database, row.table), row.partition), []).append((epoch, row))
    documents = []
    for (table, partition), object_rows in sorted(grouped.items()):
        object_rows.sort(key=lambda pair: (pair[0], pair[1].event_id))
        is_gone = object_rows[-1][1].change in GONE
        last_row = None if is_gone else next((row for _, row in reversed(object_rows) if row.location), None)
        documents.append(
            {
                **named(table, partition, wiring, target),
                "changes": [
                    {"epoch": epoch, "event_id": row.event_id, "change": row.change} for epoch, row in object_rows
                ],
                "gone": is_gone,
                "location": last_row.location if last_row else None,
                "files": [{"path": file.path, "size": file.size, "checksum": file.checksum} for file in last_row.files]
                if last_row
                else None,
            }
        )
    return documents


def named(table: TableName, partition: str, wiring: Wiring, target: str) -> dict[str, Any]:
    """Return an object's name at the source, and its name at the target where that differs."""
    name_at_target = wiring.config.target(target).admission().name_at_target(table)
    return {
        "table": str(table),
        **({"at_target": str(name_at_target)} if name_at_target != table else {}),
        "partition": partition or None,
    }


def find(epochs: Sequence[Epoch], reference: EpochReference, target: str) -> Epoch:
    """Return the epoch that `reference` names: the one of a number, or the newest at or below an event. Raises
    `Refused` where there is none."""
    if not epochs:
        raise Refused(f"{target} has no epochs yet", "Nothing was published", "Start `calque run`")
    if reference.is_event:
        matches = [epoch for epoch in epochs if epoch.event_id <= reference.number]
    else:
        matches = [epoch for epoch in epochs if epoch.epoch == reference.number]
    if matches:
        return matches[-1]
    name = f"no epoch at or below event {reference.number}" if reference.is_event else f"no epoch {reference.number}"
    first, last = epochs[0], epochs[-1]
    raise Refused(
        f"{target} has {name}",
        f"There are epochs {first.epoch} to {last.epoch}, of events {first.event_id} to {last.event_id}; older ones "
        "are forgotten after `grace`",
        "Name one of them",
    )
