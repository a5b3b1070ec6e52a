"""The coding of records that calque keeps for itself as rows of the ledger's table `internal`: a kind, a key, and the
record as JSON.

`format` is the ledger's format that the payload is of, so that a later calque can tell which fields it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calque.adapters.delta.columns import Row
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.errors import Broken
from calque.model.records import (
    AdmittedObject,
    AnnouncedBridge,
    AnnouncedParts,
    BootstrapBeginning,
    DefectiveWork,
    ForgottenSpan,
    GapRecovery,
    LedgerIdentity,
    LeftDirectory,
    OriginNames,
    ReadRequest,
    Record,
    RecordKey,
    RecordKind,
    RetainedReplica,
    ScanProgress,
    SweepProgress,
    TargetPolicies,
    record_key,
)

TYPES: Mapping[RecordKind, type[Record]] = {
    RecordKind.BOOTSTRAP_BEGINNING: BootstrapBeginning,
    RecordKind.GAP_RECOVERY: GapRecovery,
    RecordKind.FORGOTTEN_SPAN: ForgottenSpan,
    RecordKind.TARGET_POLICIES: TargetPolicies,
    RecordKind.ADMITTED_OBJECT: AdmittedObject,
    RecordKind.RETAINED_REPLICA: RetainedReplica,
    RecordKind.ORIGIN_NAMES: OriginNames,
    RecordKind.SCAN_PROGRESS: ScanProgress,
    RecordKind.ANNOUNCED_BRIDGE: AnnouncedBridge,
    RecordKind.ANNOUNCED_PARTS: AnnouncedParts,
    RecordKind.LEDGER_IDENTITY: LedgerIdentity,
    RecordKind.LEFT_DIRECTORY: LeftDirectory,
    RecordKind.SWEEP_PROGRESS: SweepProgress,
    RecordKind.READ_REQUEST: ReadRequest,
    RecordKind.DEFECTIVE_WORK: DefectiveWork,
}


@cache
def adapter_of(kind: RecordKind) -> TypeAdapter[Any]:
    return TypeAdapter(TYPES[kind])


def record_row(record: Record, sequence: int) -> Row:
    key = record_key(record)
    payload = adapter_of(key.kind).dump_json(record).decode()
    return {**removed_record_row(key, sequence), "format": LEDGER_FORMAT, "payload": payload, "removed": False}


def removed_record_row(key: RecordKey, sequence: int) -> Row:
    return {"sequence": sequence, "kind": key.kind.value, "key": key.subject, "removed": True}


def key_of_record_row(row: Row) -> RecordKey:
    """Return the key of a row. Raises `Broken` where its kind is none of this format."""
    try:
        return RecordKey(RecordKind(row["kind"]), row["key"])
    except ValueError as error:
        raise unreadable(row, str(error)) from error


def record_of_row(row: Row) -> Record:
    """Return the record of a row. Raises `Broken` where its payload is none of its kind."""
    try:
        record: Record = adapter_of(key_of_record_row(row).kind).validate_json(row["payload"])
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise unreadable(row, ", ".join(problems)) from error
    return record


def unreadable(row: Row, why: str) -> Broken:
    problem = f"The ledger's record {row['kind']} {row['key']} can't be read"
    return Broken(problem, why, "Restore the ledger from a backup")
