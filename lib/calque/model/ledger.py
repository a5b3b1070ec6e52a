"""The part of a target's ledger that is promised to readers: epochs, the objects that each epoch changed, and the
states of tables, databases and functions.

The contract fixes the columns (`Ledger`). Times are ISO-8601 in UTC. What calque remembers for itself is in
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
    """The table must be read exactly; no read is under way."""
    READING = "reading"
    STAGING = "staging"
    LIVE = "live"
    WAITING = "waiting"
    QUARANTINED = "quarantined"


class NotLiveReason(StrEnum):
    """The class of a reason why a table is not live. It decides how the table becomes live again."""

    OWN = ""
    """An event, a failure or an operator's request that concerns this table."""
    ALL = "all"
    """A read of all tables, or of a table whose events are not to be had. What the target would lose by the read is
    counted first."""
    GAP = "gap"
    """A gap of the log, after which everything may have changed. The table is compared before it is read, and its
    losses are counted too."""
    HELD = "held"
    """The drops that a comparison with the source found for the table wait for an operator."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table's state. `shows` is the event id that the target shows of the table (None: nothing yet); for a live table
    it is the position. `since_event` is the event at which the table came into its state (None: no event is the
    cause)."""

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
    """A database with a state of its own: one that the target does not take as it is (`QUARANTINED`), or one that the
    source dropped and that the target drops when it is empty (`LIVE`). All other databases have no row."""

    database: str
    state: TableState
    reason: str = ""
    since_event: EventId | None = None

    @property
    def name(self) -> TableName:
        return TableName(self.database)


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function that is calque's at the target, or that is set aside. Functions carry no parameters, so the row itself
    says that the function which stands at the target under the name `at_target` is calque's (None: no function there
    is)."""

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
"""The kind of an object (`table`, `database` or `function`), and its name at the source: the database, and the table or
function."""


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
    """Return the event id that the target shows of the object; None where it shows nothing, and for a database, of
    which no ledger says it."""
    match row:
        case TableRow() | FunctionRow():
            return row.shows
        case DatabaseRow():
            return None
        case other:
            assert_never(other)


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One object that an epoch changed, as the epoch left it. `partition` is empty for the table itself; `change` is
    the operation's name.

    `fingerprint` is that of the source's listing; `files` are the target's, with the checksums of the copy.
    `definition` is what a reader of the files must know (`core.formats.definition`), empty where it stayed as it was.
    `step` is the row's place among the rows of its epoch, in the order in which things were done;
    `core.records.contents` makes tables of the rows.
    """

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
    """The digest of the rows in files that were combined on their way, because the names and sizes of such files say
    nothing about the source's."""
    claim: str = ""
    """The number of the claim on the object's directory (`model.claims`); empty where the row does not tell it."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """An `ObjectRow` with its epoch and without files and definition: as much of it as tells where an object's
    directory lies."""

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
    """A bridge that an epoch tells of: `table` went from the state of `from_event` to that of `to_event` without stops
    at the states between."""

    table: str
    from_event: EventId
    to_event: EventId


@dataclass(frozen=True, slots=True)
class Parts:
    """An operation on `table` whose list was longer than one call takes, so that readers may have seen a part of it."""

    table: str
    from_event: EventId
    to_event: EventId


class RereadCause(StrEnum):
    """The cause for which a table that a target showed is read again."""

    HOLE = "hole"
    """A state of the table is not known, mostly because the files that an event left are not known."""
    GAP = "gap"
    """Events that concern the table are not to be had."""
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Reread:
    """A table that left the windows to be read again. `event_id` is the event that the windows could not go through, or
    at which the read was asked for."""

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
    """The first and the last event that were missing from the log before this epoch, that the log had twice, or that
    the journal removed before this target had taken them; None for none."""
    set_aside: tuple[str, ...] = ()
    """Tables that show another event than the epoch's, without those of `quarantined`."""
    parts: tuple[Parts, ...] = ()
    """The operations of `in_parts`; empty where an older calque wrote the epoch."""
    rereads: tuple[Reread, ...] = ()
    """Tables that left the windows since the epoch before, to be read again."""
    disarmed: tuple[str, ...] = ()
    """Tables whose files are the source's, and of which calque took back changes by the target's users that would have
    let calls reach these files."""
    abandoned: tuple[AbandonedDirectory, ...] = ()
    """Directories that were made for objects of the epoch and are not needed."""
    together: tuple[tuple[str, ...], ...] = ()
    """The tables of each transaction at the target that changed the rows of several."""
    digest: str = ""
    previous_digest: str = ""


Told = TypeVar("Told", Bridge, Parts)


def new_bridges(epoch: Epoch, newest: dict[str, Bridge]) -> Sequence[Bridge]:
    """Return the bridges of `epoch` that no epoch before it has listed. Call it for epochs in their order: `newest` has
    the newest bridge of each table so far, and is brought up to date."""
    return not_told_before(epoch.bridges, newest)


def new_parts(epoch: Epoch, newest: dict[str, Parts]) -> Sequence[Parts]:
    """Return the operations in parts of `epoch` that no epoch before it has listed; `newest` as in `new_bridges`. An
    older calque wrote only the tables of them (`in_parts`): their events are then taken to be those of the whole
    epoch."""
    of_older_calque = tuple(Parts(table, epoch.from_event_id, epoch.event_id) for table in epoch.in_parts)
    return not_told_before(epoch.parts or of_older_calque, newest)


def not_told_before(told: Sequence[Told], newest: dict[str, Told]) -> Sequence[Told]:
    """Return those of `told` that repeat nothing of earlier epochs, and put all of `told` into `newest`.

    Several epochs list one operation where it goes on beside the windows, or where a crash came just after its first
    epoch. Example: epochs 7 and 8 both list the bridge of `t` from event 80 to 95, which counts once; a bridge of `t`
    from 95 to 99 is another one.
    """
    news = [one for one in told if is_another(one, newest.get(one.table))]
    newest |= {one.table: one for one in told}
    return news


def is_another(one: Told, before: Told | None) -> bool:
    """Return whether `one` is another operation than `before`, the newest that was told of the table: it begins at or
    after the event where `before` ended."""
    return before is None or (one != before and one.from_event >= before.to_event)


def count_bridges(epochs: Iterable[Epoch]) -> int:
    """Return the number of bridges of a target, from its epochs in order."""
    newest: dict[str, Bridge] = {}
    return sum(len(new_bridges(epoch, newest)) for epoch in epochs)


def count_parts(epochs: Iterable[Epoch]) -> int:
    """Return the number of operations in parts of a target, from its epochs in order."""
    newest: dict[str, Parts] = {}
    return sum(len(new_parts(epoch, newest)) for epoch in epochs)


def count_rereads(epochs: Iterable[Epoch]) -> Mapping[str, int]:
    """Return the number of rereads by the values of `RereadCause`, 0 included. A reread is listed by one epoch
    alone."""
    counts = Counter(reread.cause.value for epoch in epochs for reread in epoch.rereads)
    return {cause.value: counts[cause.value] for cause in RereadCause}
