"""What a target remembers: epochs, the objects each epoch changed, and the state of tables that are not plainly live.

The contract fixes the columns (`Ledger`). Times are ISO-8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.files import File
from calque.model.names import EventId


class TableState(StrEnum):
    UNKNOWN = "unknown"
    """Must be read exactly; nothing is under way."""
    READING = "reading"
    STAGING = "staging"
    LIVE = "live"
    WAITING = "waiting"
    QUARANTINED = "quarantined"


class Why(StrEnum):
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
    the position. `exact_at` is where a finished exact read left it."""

    database: str
    table: str
    state: TableState
    shows: EventId | None = None
    reason: str = ""
    since_event: EventId | None = None
    kind: str = "table"
    """"table", "database" or "function"; "cursor" where a bootstrap began; "gap" and "behind"
    (`engine.exact_reads.gap_recovery`);
    "policy", "admitted" and "kept" (`engine.policy.change`); "bridge" or "in_parts" is for the next epoch to list
    (`engine.sides.announced_exceptions`); "read_again", "count_again", "look_again" or "adopt" is asked for
    (`engine.sides.read_requests`)."""
    owned: str = ""
    """The name at the target, of things that carry no parameters (functions)."""
    why: Why = Why.OWN


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One object that an epoch changed. `partition` is empty for the table itself; `change` is the operation's name.
    `fingerprint` is that of the source's listing; files are the target's, with the checksums of the copy. `definition`
    is what a reader of the files must know (`core.definition`), empty where it stayed as it was; `step` is the row's
    place among those of its epoch, in the order in which things were done (`core.contents` makes tables of them)."""

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


@dataclass(frozen=True, slots=True)
class Bridge:
    table: str
    from_event: EventId
    to_event: EventId


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
    digest: str = ""
    previous_digest: str = ""
