"""The records that calque keeps of a target for itself, so that a process that starts after a crash goes on rightly.

Readers of the ledger are promised nothing of them. They form a closed union: each record says one thing, and a later
record with the same key (`record_key`) replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar, assert_never

from calque.model.names import EventId, TableName


@dataclass(frozen=True, slots=True)
class BootstrapBeginning:
    """The event at which a target began. At `begun_at` all tables were unknown, or equal to the source's where the
    target started at an event. The source was listed before event `listed_by`; None means that it was not listed."""

    begun_at: EventId
    listed_by: EventId | None = None


class DropReview(StrEnum):
    """The stage of a comparison between target and source that counts what the target would drop."""

    COMPARING = "comparing"
    """Not everything that could be lost is counted yet."""
    COUNTED = "counted"
    """The drops are few enough, or an operator let them go."""
    HELD = "held"
    """The drops are too many, and wait for an operator."""
    REPAIRED = "repaired"
    """The drops were made, and facets were compared."""


@dataclass(frozen=True, slots=True)
class GapRecovery:
    """The newest gap of the log behind which a target has started again: all gaps up to number `newest_gap` are dealt
    with. `unpublished` has the first and the last event of the gaps that no epoch after number `after_epoch` has
    listed."""

    newest_gap: int = 0
    unpublished: tuple[EventId, EventId] | None = None
    after_epoch: int = 0
    drops: DropReview = DropReview.REPAIRED
    went_back: bool = False
    """The log went back in one of the gaps whose drops are not all made. It may then be that of an older state of the
    source, or of another source."""


@dataclass(frozen=True, slots=True)
class ForgottenSpan:
    """The newest events that the journal removed before the target had taken them: a gap of this target alone.
    `found_at` is ISO 8601; `after_gap` is the number of the log's newest gap at that time."""

    first_event: EventId
    last_event: EventId
    found_at: str
    after_gap: int


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """The terms of a policy that can be seen at the target. A term is None where the version of calque that wrote the
    record did not know it."""

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
    acid: str | Mapping[str, str] = "skip"


@dataclass(frozen=True, slots=True)
class TargetPolicies:
    """The policies under which the target may have been written. There are several while a change of policy is not
    finished."""

    policies: tuple[PolicyTerms, ...]


@dataclass(frozen=True, slots=True)
class AdmittedObject:
    """A database or a function that a change of policy admitted, read at event `read_at`. The journal's events of it up
    to `read_at` are older than that read."""

    name: TableName
    read_at: EventId


@dataclass(frozen=True, slots=True)
class RetainedReplica:
    """A replica that no policy looks after any more: the name of its source in `table`, its name at the target in
    `at_target`, and in `shows` the target's position when the replica was left there."""

    table: TableName
    at_target: TableName
    shows: EventId
    reason: str


@dataclass(frozen=True, slots=True)
class OriginNames:
    """The names of sources under which the target's own metastore is known where the source is."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """The number of a scan that the target has taken, together with all scans before it."""

    newest_scan: int


@dataclass(frozen=True, slots=True)
class AnnouncedBridge:
    """A bridge of the table that no epoch has listed yet: from the event that the table showed to the event that the
    bridge leads to."""

    table: TableName
    from_event: EventId
    to_event: EventId


@dataclass(frozen=True, slots=True)
class AnnouncedParts:
    """An operation in parts on the table that no epoch has listed yet. The events are as in `AnnouncedBridge`."""

    table: TableName
    from_event: EventId
    to_event: EventId


class ReadMode(StrEnum):
    """The kind of a read that an operator, or a new policy, asked for."""

    READ = "read"
    COUNT = "count"
    """The objects that the target would lose by the read are counted first."""
    LOOK = "look"
    """The content of files is looked at, also where their times are equal."""
    ADOPT = "adopt"
    """The content of files is looked at as for `LOOK`, and the objects that stand at the target under the table's name
    need not be calque's."""
    COPY = "copy"
    """The policy has the table's files copied from here on: an object outside of the policy's places may lie at one of
    the source's."""


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """The identity of a ledger and of the deployment that it belongs to. `ledger` is 128 random bits in hexadecimal,
    which claims on directories name. A ledger that lost its newest state gets another id, because directories that it
    does not remember any more are not its own. `source_id` and `target_id` are empty where a metastore has no id.
    `hidden` is the random name of the deployment's record in the hidden database."""

    ledger: str
    source_id: str = ""
    target_id: str = ""
    hidden: str = ""
    warehouse: str = ""
    """The first spelling of the warehouse. The lease and the record in the hidden database are named after it."""
    generation: int = 0
    """The newest generation of the target's lease that a writer of this ledger took."""
    writer: str = ""
    """The id of the writer that took `generation`; one writer may take several generations."""
    source_event: EventId = 0
    """The newest event id that the source was seen to have."""
    directories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The directories below which the target writes: from the random name of each to every spelling under which it was
    found."""
    since: int = 0
    """The number of the last epoch that the ledger had when it began to make claims; 0 for a ledger that always made
    them."""


@dataclass(frozen=True, slots=True)
class LeftDirectory:
    """A directory that `epoch` took from readers, or that was never shown, and that a sweep could not remove. `claim`
    is the number of the claim on it, empty where none is known. `is_old` says that a version of calque without claims
    made it."""

    place: str
    claim: str
    epoch: int
    reason: str
    is_old: bool = False


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """The number of an epoch up to which sweeps are done: each directory that an epoch up to this one took from readers
    was removed, or is a `LeftDirectory`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read that operators asked for and that is not done. `requests` counts how often they asked, so that a read that
    began before the last request does not count as its answer."""

    table: TableName
    mode: ReadMode
    requests: int
    reason: str


@dataclass(frozen=True, slots=True)
class DefectiveWork:
    """A count of how often in a row the work on one object met a defect of calque. `work` names the work and the object
    (`table sales.orders`, `read of sales.orders`)."""

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
    """The key of a record: of all records with one key the newest counts. `subject` is empty where a target has one
    record of the kind."""

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
    """Return those of `records` that are of the class `kind`."""
    return [record for record in records if isinstance(record, kind)]


def one_of(records: Iterable[Record], kind: type[R]) -> R | None:
    """Return the first of `records` that is of the class `kind`, None without one. For kinds of which a target has one
    record."""
    return next(iter(all_of(records, kind)), None)
