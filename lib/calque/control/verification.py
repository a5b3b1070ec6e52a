"""The result of a comparison of a target with its source, as JSON documents, and the request that a repair leaves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calque.control.requests import leave_request
from calque.control.status_records import is_running
from calque.control.verify_record import note_verification
from calque.core.images.compare import TABLE, Difference, DifferenceKind
from calque.engine.verify.report import SkippedObject, Verification
from calque.engine.verify.verify import PATIENCE, verify
from calque.errors import CalqueError
from calque.model.names import TableName
from calque.model.requests import Action
from calque.wiring.comparison_kinds import ComparisonKind
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
STOPPED_PATIENCE = 2.0
"""Seconds for which a target is waited for when no `run` is seen on this host, because one may run on another host."""


def verification(
    wiring: Wiring,
    target: str,
    tables: Sequence[str],
    data: str,
    progress: Callable[[int, int], None],
    kinds: Sequence[ComparisonKind],
) -> Verification:
    """Compare one target with its source, and return what was found. `tables` are patterns, none for all. `data` says
    what of files is compared: "none", "size" or "checksum". `kinds` add the comparisons of plugins. `progress` gets the
    objects compared and all objects. A record of the result stays for the status, unless it can't be written."""
    target_wiring = wiring.target(target)
    patience = PATIENCE if is_running(wiring, target) else STOPPED_PATIENCE
    others = [other for kind in kinds if (other := kind(target_wiring)) is not None]
    source, side = target_wiring.followed(), target_wiring.side()
    found = verify(source, side, tables, data, others=others, patience=patience, progress=progress)
    try:
        note_verification(wiring.control, found, is_whole=not tables)
    except CalqueError as error:
        LOG.warning("the comparison of %s is not recorded: %s", target, error)
    return found


def document(wiring: Wiring, found: Verification) -> dict[str, Any]:
    """Return the JSON object of a comparison, as the contract has it."""
    return {
        "target": found.target,
        "event_id": found.event_id,
        "compared": found.compared,
        "differences": [difference_row(wiring, found.target, difference) for difference in found.differences],
        "set_aside": [aside_row(wiring, found.target, skipped) for skipped in found.set_aside],
        **({"notes": [note_row(wiring, found.target, *note) for note in found.notes]} if found.notes else {}),
    }


def note_row(wiring: Wiring, target: str, table: TableName, key: str, value: str) -> dict[str, Any]:
    return {"table": str(table), **at_target(wiring, target, table), "what": key, "value": value}


def difference_row(wiring: Wiring, target: str, difference: Difference) -> dict[str, Any]:
    return {
        "table": str(difference.table),
        **at_target(wiring, target, difference.table),
        "partition": difference.partition or None,
        "kind": difference.kind.value,
        "what": difference.what,
        "source": difference.source,
        "target": difference.target,
    }


def aside_row(wiring: Wiring, target: str, skipped: SkippedObject) -> dict[str, Any]:
    """Return the JSON object of an object that was not compared, with the fields that `status` has for it."""
    return {
        "table": str(skipped.table),
        **at_target(wiring, target, skipped.table),
        "state": skipped.state,
        "shows": skipped.shows,
        "reason": skipped.reason,
    }


def at_target(wiring: Wiring, target: str, name: TableName) -> dict[str, str]:
    """Return the object's name at the target below `at_target`; nothing where it has the same name there."""
    name_at_target = wiring.config.target(target).admission().name_at_target(name)
    label_at_target = str(name_at_target if name.table else name_at_target.database)
    return {"at_target": label_at_target} if label_at_target != str(name) else {}


def ask_repair(wiring: Wiring, found: Verification) -> tuple[Mapping[str, Any], Sequence[Difference]]:
    """Leave a request that has the differing tables read again exactly. Return the JSON object, as the contract has it,
    and the differences that this does not mend."""
    tables_to_read = to_read(found)
    if tables_to_read:
        leave_request(wiring, found.target, Action.REPAIR, tables_to_read)
    remaining = [difference for difference in found.differences if not is_mended(difference)]
    return {
        "target": found.target,
        "event_id": found.event_id,
        "tables": tables_to_read,
        "left": [difference_row(wiring, found.target, difference) for difference in remaining],
        "set_aside": [aside_row(wiring, found.target, skipped) for skipped in found.set_aside],
    }, remaining


def to_read(found: Verification) -> list[str]:
    """Return the names of tables whose differences an exact read mends, in order."""
    return sorted({str(difference.table) for difference in found.differences if is_mended(difference)})


def is_mended(difference: Difference) -> bool:
    """Tell whether an exact read of its table mends the difference. It does not where the object is no replica of
    calque's, which needs `adopt`, and for databases and functions, which follow with their own next event."""
    return difference.of == TABLE and difference.kind is not DifferenceKind.FOREIGN
