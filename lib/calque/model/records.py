"""What calque remembers for itself of a target, so that whoever starts after a death goes on rightly.

Nothing here is promised to readers of the ledger. A closed union: each record says one thing, and is replaced by the
next one with its key (`record_key`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar, assert_never

from calque.model.names import EventId, TableName


@dataclass(frozen=True, slots=True)
class BootstrapBeginning:
    """All tables were unknown at event `begun_at`, or equal to the source's where the target started there; the source
    was listed before event `listed_by` (None: it was not listed)."""

    begun_at: EventId
    listed_by: EventId | None = None


class DropReview(StrEnum):
    """What became of the drops that were found by comparing target and source."""

    COMPARING = "comparing"
    """Not all that could be lost is counted."""
    COUNTED = "counted"
    """They are few enough, or an operator let them go."""
    HELD = "held"
    """They are too many, and wait for an operator."""
    REPAIRED = "repaired"
    """They were made, and facets were compared."""


@dataclass(frozen=True, slots=True)
class GapRecovery:
    """Up to which gap of the log a target has started again. `unpublished` are the first and the last event of the gaps
    that no epoch after number `after_epoch` has listed."""

    newest_gap: int = 0
    unpublished: tuple[EventId, EventId] | None = None
    after_epoch: int = 0
    drops: DropReview = DropReview.REPAIRED
    went_back: bool = False
    """Whether the log went back in one of the gaps whose drops are not all made: it may be that of an older state of
    the source, or another one's."""


@dataclass(frozen=True, slots=True)
class ForgottenSpan:
    """The newest events that the journal let go of before the target had taken them: a gap of the target's own.
    `found_at` is ISO 8601; `after_gap` is the number of the log's newest gap by then."""

    first_event: EventId
    last_event: EventId
    found_at: str
    after_gap: int


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """What of a policy can be seen at the target. None where the version that wrote it did not know the term."""

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    rename: Mapping[str, str] | None = None
    properties: Mapping[str, str] | None = None
    locations: Mapping[str, str] | None = None
    data: str | Mapping[str, str] | None = None
    consistency: str | None = None
    warehouse: str | None = None
    external_base: str | None = None
    strict_locations: bool | None = None
    partitions: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    format: str | Mapping[str, str] = "plain"


@dataclass(frozen=True, slots=True)
class TargetPolicies:
    """The policies under which the target may have been written: several while a change is not finished."""

    policies: tuple[PolicyTerms, ...]


@dataclass(frozen=True, slots=True)
class AdmittedObject:
    """A database or a function that a change of policy admitted, read at event `read_at`: what the journal has of it up
    to there is older."""

    name: TableName
    read_at: EventId


@dataclass(frozen=True, slots=True)
class RetainedReplica:
    """A replica that no policy looks after: its name at the target, and the position when it was left there."""

    table: TableName
    at_target: TableName
    shows: EventId
    reason: str


@dataclass(frozen=True, slots=True)
class OriginNames:
    """Under which names of sources the target's own metastore is known where the source is."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """The number of the newest scan that the target has taken with all before it."""

    newest_scan: int


@dataclass(frozen=True, slots=True)
class AnnouncedBridge:
    """A bridge of the table that no epoch has listed: from the event that it showed to the one that it goes to."""

    table: TableName
    from_event: EventId
    to_event: EventId


@dataclass(frozen=True, slots=True)
class AnnouncedParts:
    """An operation in parts on the table that no epoch has listed; events as of a bridge."""

    table: TableName
    from_event: EventId
    to_event: EventId


class ReadMode(StrEnum):
    """What a read that an operator, or a new policy, asked for is to be."""

    READ = "read"
    COUNT = "count"
    """What the target would lose by it is counted first."""
    LOOK = "look"
    """The content of files is looked at, whatever their times say."""
    ADOPT = "adopt"
    """The same, and what stands at the target need not be ours."""
    COPY = "copy"
    """The policy has the table's files copied now: what lies outside of the policy's places may lie at one of the
    source's."""


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """Which ledger this is, and of which deployment. `ledger` are 128 random bits, in hexadecimal, that claims on
    directories name. A ledger that lost its newest state gets others: what it does not remember any more is not its
    own. Ids are empty where a metastore has none. `hidden` is the random name of the record in the hidden database."""

    ledger: str
    source_id: str = ""
    target_id: str = ""
    hidden: str = ""
    warehouse: str = ""
    """The first spelling of the warehouse that the lease and that record are named after."""
    generation: int = 0
    """The newest generation of the target's lease that a writer of this ledger took."""
    writer: str = ""
    """Who took it: one writer may take several."""
    source_event: EventId = 0
    """The newest event id that the source was seen to have."""
    directories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The directories that the target writes below: the random name of each, and every spelling under which it was
    found."""
    since: int = 0
    """The ledger's last epoch of the time before claims."""


@dataclass(frozen=True, slots=True)
class LeftDirectory:
    """A directory that `epoch` took from readers, or that was never shown, and that a sweep could not remove. `claim`
    is the number of the claim on it, empty where none is known. `is_old`: a version before claims made it."""

    place: str
    claim: str
    epoch: int
    reason: str
    is_old: bool = False


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """What epochs up to that one took from readers was removed, or is a `LeftDirectory`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read that operators asked for and that is not done. `requests` counts how often they did, so that a read that
    began before the last time does not count for it."""

    table: TableName
    mode: ReadMode
    requests: int
    reason: str


@dataclass(frozen=True, slots=True)
class DefectiveWork:
    """So often in a row the work of one object met a defect of calque; `work` names both (`table sales.orders`,
    `read of sales.orders`)."""

    work: str
    attempts: int


Record = (
    BootstrapBeginning
    | GapRecovery
    | ForgottenSpan
    | TargetPolicies
    | AdmittedObject
    | RetainedReplica
    | OriginNames
    | ScanProgress
    | AnnouncedBridge
    | AnnouncedParts
    | LedgerIdentity
    | LeftDirectory
    | SweepProgress
    | ReadRequest
    | DefectiveWork
)
R = TypeVar("R", bound=Record)


class RecordKind(StrEnum):
    BOOTSTRAP_BEGINNING = "bootstrap_beginning"
    GAP_RECOVERY = "gap_recovery"
    FORGOTTEN_SPAN = "forgotten_span"
    TARGET_POLICIES = "target_policies"
    ADMITTED_OBJECT = "admitted_object"
    RETAINED_REPLICA = "retained_replica"
    ORIGIN_NAMES = "origin_names"
    SCAN_PROGRESS = "scan_progress"
    ANNOUNCED_BRIDGE = "announced_bridge"
    ANNOUNCED_PARTS = "announced_parts"
    LEDGER_IDENTITY = "ledger_identity"
    LEFT_DIRECTORY = "left_directory"
    SWEEP_PROGRESS = "sweep_progress"
    READ_REQUEST = "read_request"
    DEFECTIVE_WORK = "defective_work"


class RecordKey(NamedTuple):
    """Of the records with one key the newest counts. `subject` is empty where a target has one record of the kind."""

    kind: RecordKind
    subject: str = ""


def record_key(record: Record) -> RecordKey:
    match record:
        case BootstrapBeginning():
            return RecordKey(RecordKind.BOOTSTRAP_BEGINNING)
        case GapRecovery():
            return RecordKey(RecordKind.GAP_RECOVERY)
        case ForgottenSpan():
            return RecordKey(RecordKind.FORGOTTEN_SPAN)
        case TargetPolicies():
            return RecordKey(RecordKind.TARGET_POLICIES)
        case AdmittedObject():
            return RecordKey(RecordKind.ADMITTED_OBJECT, str(record.name))
        case RetainedReplica():
            return RecordKey(RecordKind.RETAINED_REPLICA, str(record.table))
        case OriginNames():
            return RecordKey(RecordKind.ORIGIN_NAMES)
        case ScanProgress():
            return RecordKey(RecordKind.SCAN_PROGRESS)
        case AnnouncedBridge():
            return RecordKey(RecordKind.ANNOUNCED_BRIDGE, str(record.table))
        case AnnouncedParts():
            return RecordKey(RecordKind.ANNOUNCED_PARTS, str(record.table))
        case LedgerIdentity():
            return RecordKey(RecordKind.LEDGER_IDENTITY)
        case LeftDirectory():
            return RecordKey(RecordKind.LEFT_DIRECTORY, record.place)
        case SweepProgress():
            return RecordKey(RecordKind.SWEEP_PROGRESS)
        case ReadRequest():
            return request_key(record.mode, record.table)
        case DefectiveWork():
            return defect_key(record.work)
        case other:
            assert_never(other)


def request_key(mode: ReadMode, table: TableName) -> RecordKey:
    return RecordKey(RecordKind.READ_REQUEST, f"{mode.value} {table}")


def defect_key(work: str) -> RecordKey:
    return RecordKey(RecordKind.DEFECTIVE_WORK, work)


def all_of(records: Iterable[Record], kind: type[R]) -> list[R]:
    """The records of one type."""
    return [record for record in records if isinstance(record, kind)]


def one_of(records: Iterable[Record], kind: type[R]) -> R | None:
    """The record of a type of which a target has one."""
    return next(iter(all_of(records, kind)), None)
