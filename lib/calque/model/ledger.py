"""What a target's ledger promises readers: epochs, the objects that each epoch changed, and the states of tables,
databases and functions.

The contract fixes the columns (`Ledger`). Times are ISO-8601 in UTC. What calque remembers for itself is
`model.records`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, assert_never

from calque.model.claims import AbandonedDirectory
from calque.model.files import File
from calque.model.names import EventId, TableName


class TableState(StrEnum):
    UNKNOWN = "unknown"
    """Must be read exactly; nothing is under way."""
    READING = "reading"
    STAGING = "staging"
    LIVE = "live"
    WAITING = "waiting"
    QUARANTINED = "quarantined"


class NotLiveReason(StrEnum):
    """Why a table is not live, where it depends on that how it becomes so again."""

    OWN = ""
    """An event, a failure or an operator's wish that concerns it."""
    ALL = "all"
    """All tables are to be read, or events that concern it are not to be had: what the target would lose by that is
    counted first."""
    GAP = "gap"
    """All may have changed: it is compared before it is read, and counted too."""
    HELD = "held"
    """What it would lose by difference waits for an operator."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table's state. `shows` is the event id that the target shows of it (None: nothing yet); of a live table it is
    the position. `since_event` is the event at which it came into its state (None: no event is the cause)."""

    database: str
    table: str
    state: TableState
    shows: EventId | None = None
    reason: str = ""
    since_event: EventId | None = None
    why: NotLiveReason = NotLiveReason.OWN

    @property
    def name(self) -> TableName:
        return TableName(self.database, self.table)


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    """A database that the target does not take as it is (`QUARANTINED`), or that the source dropped and that is dropped
    when it is empty (`LIVE`); all others have no row."""

    database: str
    state: TableState
    reason: str = ""
    since_event: EventId | None = None

    @property
    def name(self) -> TableName:
        return TableName(self.database)


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function that is calque's at the target, or that is set aside. Functions carry no parameters: `at_target` is
    the name under which the one that stands at the target is calque's (None: none does)."""

    database: str
    function: str
    state: TableState
    shows: EventId | None = None
    reason: str = ""
    since_event: EventId | None = None
    at_target: TableName | None = None

    @property
    def name(self) -> TableName:
        return TableName(self.database, self.function)


StateRow = TableRow | DatabaseRow | FunctionRow
"""A row of the ledger's `tables`."""
StateKey = tuple[str, str, str]
"""What kind of object it is, and its name at the source."""


def state_key(row: StateRow) -> StateKey:
    match row:
        case TableRow():
            return "table", *row.name
        case DatabaseRow():
            return "database", *row.name
        case FunctionRow():
            return "function", *row.name
        case other:
            assert_never(other)


def shown_event(row: StateRow) -> EventId | None:
    """The event id that the target shows of the object; no ledger has that of a database."""
    match row:
        case TableRow() | FunctionRow():
            return row.shows
        case DatabaseRow():
            return None
        case other:
            assert_never(other)


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One object that an epoch changed. `partition` is empty for the table itself; `change` is the operation's name.
    `fingerprint` is that of the source's listing; files are the target's, with the checksums of the copy. `definition`
    is what a reader of the files must know (`core.formats.definition`), empty where it stayed as it was; `step` is the
    row's place among those of its epoch, in the order in which things were done (`core.records.contents` makes tables
    of them)."""

    database: str
    table: str
    partition: str
    incarnation: str
    event_id: EventId
    change: str
    location: str = ""
    fingerprint: str = ""
    files: tuple[File, ...] = ()
    delta_version: int | None = None
    definition: str = ""
    step: int = 0
    row_digest: str = ""
    """Of the rows in files that were combined on their way, from whose names and sizes nothing can be told."""
    claim: str = ""
    """The number of the claim on its directory (`model.claims`); empty where the row does not tell it."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """What a row says of an object's directory: an `ObjectRow` with its epoch, and without files and definition."""

    epoch: int
    database: str
    table: str
    partition: str
    incarnation: str
    event_id: EventId
    change: str
    location: str
    claim: str

    @property
    def name(self) -> TableName:
        return TableName(self.database, self.table)


@dataclass(frozen=True, slots=True)
class Bridge:
    table: str
    from_event: EventId
    to_event: EventId


@dataclass(frozen=True, slots=True)
class Parts:
    """An operation on the table that was larger than one call takes."""

    table: str
    from_event: EventId
    to_event: EventId


class RereadCause(StrEnum):
    """Why a table that a target showed was read again."""

    HOLE = "hole"
    """A state of it is not known: mostly for want of the files that an event left."""
    GAP = "gap"
    """Events are not to be had."""
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Reread:
    """The event is the one that could not be gone through, or at which it was asked for."""

    table: str
    event_id: EventId
    cause: RereadCause
    reason: str


@dataclass(frozen=True, slots=True)
class Epoch:
    """One published window. `digest` covers the epoch and its object rows, chained through `previous_digest`."""

    epoch: int
    event_id: EventId
    from_event_id: EventId
    published_at: str
    kind: str
    """"bootstrap", "window" or "repair"."""
    tables: int = 0
    events: int = 0
    hops: int = 0
    calls: int = 0
    files: int = 0
    bytes: int = 0
    quarantined: tuple[str, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    in_parts: tuple[str, ...] = ()
    rebasing: tuple[str, ...] = ()
    gap: tuple[EventId, EventId] | None = None
    """The first and the last event that the log lacked before this epoch, or had twice, or that the journal let go of
    before this target had taken them."""
    set_aside: tuple[str, ...] = ()
    """Tables that show another event, `quarantined` ones apart."""
    parts: tuple[Parts, ...] = ()
    """The operations of `in_parts`; empty where an older calque wrote the epoch."""
    rereads: tuple[Reread, ...] = ()
    """Tables that left the windows since the epoch before, to be read again."""
    disarmed: tuple[str, ...] = ()
    """Tables of which users' changes were taken back that would have had calls reach the source's files."""
    abandoned: tuple[AbandonedDirectory, ...] = ()
    """Directories that were made and are not needed."""
    digest: str = ""
    previous_digest: str = ""


Told = TypeVar("Told", Bridge, Parts)


def new_bridges(epoch: Epoch, newest: dict[str, Bridge]) -> Sequence[Bridge]:
    """Those of `epoch` that no epoch before it has told of. `newest`, the newest one of each table, is brought up to
    date."""
    return not_told_before(epoch.bridges, newest)


def new_parts(epoch: Epoch, newest: dict[str, Parts]) -> Sequence[Parts]:
    """The same of operations in parts."""
    of_older_calque = tuple(Parts(table, epoch.from_event_id, epoch.event_id) for table in epoch.in_parts)
    return not_told_before(epoch.parts or of_older_calque, newest)


def not_told_before(told: Sequence[Told], newest: dict[str, Told]) -> Sequence[Told]:
    """What goes on, or whose epoch came just before a crash, is told of by several epochs."""
    news = [one for one in told if is_another(one, newest.get(one.table))]
    newest |= {one.table: one for one in told}
    return news


def is_another(one: Told, before: Told | None) -> bool:
    return before is None or (one != before and one.from_event >= before.to_event)


def count_bridges(epochs: Iterable[Epoch]) -> int:
    """Of a target, by its epochs in order."""
    newest: dict[str, Bridge] = {}
    return sum(len(new_bridges(epoch, newest)) for epoch in epochs)


def count_parts(epochs: Iterable[Epoch]) -> int:
    """The same of operations in parts."""
    newest: dict[str, Parts] = {}
    return sum(len(new_parts(epoch, newest)) for epoch in epochs)


def count_rereads(epochs: Iterable[Epoch]) -> Mapping[str, int]:
    """By each cause; one epoch alone tells of a reread."""
    counts = Counter(reread.cause.value for epoch in epochs for reread in epoch.rereads)
    return {cause.value: counts[cause.value] for cause in RereadCause}
