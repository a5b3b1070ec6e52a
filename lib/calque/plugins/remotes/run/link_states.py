"""The states of links for `SHOW REMOTE TABLES`, from the registry, the ledgers, and the status of `run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from calque.config.plugs import HiveTarget
from calque.control.status_records import UNREAD, capture_record, position_of, target_record
from calque.core.images.own_parameters import CONNECTED_TO
from calque.core.policy.admit import Admission
from calque.errors import Unavailable
from calque.model.ledger import DatabaseRow, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.part_states import FAILED
from calque.plugins.remotes.model import LinkRecord
from calque.plugins.remotes.run.reconcile_links import is_followed
from calque.plugins.remotes.wiring.remotes import remotes_at, target_of, with_links
from calque.wiring.wiring import Wiring

LIVE, READING, WAITING = "live", "reading", "waiting"
UNREACHABLE, GONE, SET_ASIDE = "unreachable", "gone", "set_aside"
NOT_FOLLOWED = "No `calque run` follows links"
BY_STATE = {TableState.LIVE: LIVE, TableState.QUARANTINED: SET_ASIDE}
Row = Mapping[str, object]


@dataclass(slots=True)
class ProjectionState:
    """The state of one projection: the rows of its ledger, its position, and the trouble with its remote catalog
    (`state` and `problem`, both empty where there is none). `unread` has the tables that can't be looked at there, with
    the reasons."""

    admission: Admission
    rows: Mapping[TableName, StateRow]
    position: EventId | None
    state: str
    problem: str
    unread: Mapping[TableName, str]
    followed: bool = True
    """Whether a process follows the links."""


@dataclass(slots=True)
class LinkStates:
    """The states of all links of a configuration. Each ledger is read once, so that one object answers one
    statement."""

    wiring: Wiring
    projections: dict[str, ProjectionState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Replace the wiring by one with the links that the registry has now."""
        self.wiring = Wiring(with_links(self.wiring.config), self.wiring.runtime)

    def tables(self) -> Iterator[Row]:
        """Return the rows of linked tables, and then those of the tables of linked databases."""
        links = remotes_at(self.wiring).registry().links
        for name, record in sorted(links.items()):
            if name.table:
                yield self.row(name, record)
        for name, record in sorted(links.items()):
            target = target_of(self.wiring.config, name) if not name.table else None
            if target is not None and record.definition is not None:
                yield from self.tables_of(name, record, target)

    def databases(self) -> Iterator[Row]:
        for name, record in sorted(remotes_at(self.wiring).registry().links.items()):
            if not name.table:
                yield self.row(name, record)

    def row(self, name: TableName, record: LinkRecord) -> Row:
        target = target_of(self.wiring.config, name)
        if record.reason or record.definition is None or target is None:
            return row_of(name, record.connected_to, record.via, SET_ASIDE, None, record.reason)
        projection = self.projection(target)
        remote = record.definition.remote
        state, event_id, reason = of_table(projection, remote) if name.table else of_database(projection, remote)
        return row_of(name, record.connected_to, record.via, state, event_id, reason)

    def tables_of(self, name: TableName, record: LinkRecord, target: HiveTarget) -> Iterator[Row]:
        projection = self.projection(target)
        assert record.definition is not None
        for remote in sorted({*projection.rows, *projection.unread}):
            row = projection.rows.get(remote)
            if (row is None or isinstance(row, TableRow)) and remote.database == record.definition.remote.database:
                local = projection.admission.name_at_target(remote)
                if local.database == name.database and projection.admission.takes(remote):
                    yield row_of(local, str(remote), record.via, *of_table(projection, remote))

    def projection(self, target: HiveTarget) -> ProjectionState:
        if target.name not in self.projections:
            self.projections[target.name] = self.looked_up(target)
        return self.projections[target.name]

    def looked_up(self, target: HiveTarget) -> ProjectionState:
        wiring, ledger = self.wiring, self.wiring.ledger(target.name)
        capture = capture_record(wiring, wiring.sources[target.source].places)
        report: Mapping[str, Any] = target_record(wiring, target.name)
        state = UNREACHABLE if capture["last_error"] else ""
        if FAILED in (capture["state"], report["state"]):
            state = SET_ASIDE
        problem = str(capture["last_error"] or report["last_error"] or "") if state else ""
        rows: dict[TableName, StateRow] = {}
        position = None
        try:
            position = position_of(wiring, target.name, ledger.last_epoch())
            rows = {row.name: row for row in ledger.tables().values() if isinstance(row, TableRow | DatabaseRow)}
        except Unavailable as error:
            state, problem = state or UNREACHABLE, problem or str(error)
        unread: Mapping[str, str] = capture.get(UNREAD) or {}
        named = {TableName(*name.split(".", 1)): reason for name, reason in unread.items()}
        followed = is_followed(remotes_at(wiring)) or report["state"] != "stopped"
        return ProjectionState(target.admission(), rows, position, state, problem, named, followed)


def row_of(name: TableName, connected_to: str, via: str, state: str, event_id: EventId | None, reason: str) -> Row:
    return {
        "name": str(name),
        "connected_to": connected_to or CONNECTED_TO,
        "via": via or "thrift",
        "state": state,
        "event_id": event_id,
        "reason": reason,
    }


def of_table(projection: ProjectionState, remote: TableName) -> tuple[str, EventId | None, str]:
    row = projection.rows.get(remote)
    shows = row.shows if isinstance(row, TableRow) else None
    if row is not None and row.state is TableState.LIVE and shows is None:
        shows = projection.position
    if projection.state:
        return projection.state, shows, projection.problem
    if remote in projection.unread:
        return SET_ASIDE, shows, projection.unread[remote]
    if row is not None and row.state in BY_STATE:
        return BY_STATE[row.state], shows, row.reason
    if row is not None or projection.position is None:
        return to_be_read(projection, shows, "" if row is None else row.reason)
    return GONE, projection.position, f"{remote} is not there; the link stays, empty, and comes back with it"


def of_database(projection: ProjectionState, remote: TableName) -> tuple[str, EventId | None, str]:
    if projection.state:
        return projection.state, projection.position, projection.problem
    row = projection.rows.get(remote)
    if isinstance(row, DatabaseRow) and row.state is TableState.QUARANTINED:
        return SET_ASIDE, projection.position, row.reason
    if projection.position is None:
        return to_be_read(projection, None, "")
    return LIVE, projection.position, ""


def to_be_read(projection: ProjectionState, shows: EventId | None, reason: str) -> tuple[str, EventId | None, str]:
    """Return the state of an object that does not show all yet: a process reads it, or it waits for one."""
    return (READING, shows, reason) if projection.followed else (WAITING, shows, NOT_FOLLOWED)
