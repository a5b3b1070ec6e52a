"""What a ledger of format 1 has in its table `tables`: rows of all kinds, with fields whose meaning is the kind's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from calque.adapters.delta.columns import STATE_KINDS, Row, name_of, state_of
from calque.errors import Broken
from calque.model.ledger import StateRow
from calque.model.names import TableName
from calque.model.records import (
    AdmittedObject,
    AnnouncedBridge,
    AnnouncedParts,
    BootstrapBeginning,
    DropReview,
    ForgottenSpan,
    GapRecovery,
    OriginNames,
    PolicyTerms,
    ReadMode,
    ReadRequest,
    Record,
    RetainedReplica,
    ScanProgress,
    TargetPolicies,
)

LISTS = ("include", "exclude")
MODES = {
    "read_again": ReadMode.READ,
    "count_again": ReadMode.COUNT,
    "look_again": ReadMode.LOOK,
    "adopt": ReadMode.ADOPT,
}


def state_or_record_of(row: Row) -> StateRow | Record:
    """`Broken` where the row is of no kind that format 1 has."""
    if row["kind"] in STATE_KINDS:
        return state_of(row)
    name, number, since, reason = (
        TableName(row["database"], row["table"]),
        row["shows"],
        row["since_event"],
        row["reason"],
    )
    match row["kind"]:
        case "cursor":
            return BootstrapBeginning(number or 0, since)
        case "gap":
            first, _, last = row["owned"].partition("-")
            unpublished = (int(first), int(last)) if last else None
            return GapRecovery(number or 0, unpublished, since or 0, DropReview(reason or DropReview.COMPARING))
        case "behind":
            return ForgottenSpan(number or 1, since or 0, reason, int(row["owned"]))
        case "policy":
            return TargetPolicies(tuple(map(terms_of, json.loads(reason))))
        case "admitted":
            return AdmittedObject(name, number or 0)
        case "kept":
            return RetainedReplica(name, name_of(row["owned"]), number or 0, reason)
        case "home":
            return OriginNames(tuple(filter(None, reason.split(","))))
        case "scan":
            return ScanProgress(number or 0)
        case "bridge":
            return AnnouncedBridge(name, number or 0, since or 0)
        case "in_parts":
            return AnnouncedParts(name, number or 0, since or 0)
        case str(kind) if kind in MODES:
            return ReadRequest(name, MODES[kind], number or 0, reason)
        case kind:
            raise Broken(
                f"The ledger has a row of kind {kind}", "No version wrote such rows", "Restore it from a backup"
            )


def terms_of(policy: Mapping[str, Any]) -> PolicyTerms:
    return PolicyTerms(**{**policy, **{key: tuple(policy[key]) for key in LISTS if key in policy}})
