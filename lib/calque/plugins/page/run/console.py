"""The answers of a running process to the page at `/`, and the actions that the page asks of it.

Values that change all the time come from this process's memory. Values that only the state folder has (gaps,
exceptions, objects set aside that are no tables) are read again after a time that grows with how long reading took. So
the page costs the streams little, for any number of viewers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from calque.control.actions import OperatorAction, action_of, do, require_possible
from calque.control.pause_rules import rules_of
from calque.control.processes import processes
from calque.control.status import gaps_of
from calque.control.status_records import copying_of, reading_of
from calque.control.table_history import table_history
from calque.errors import CalqueError, Refused, nearest
from calque.model.ledger import (
    Bridge,
    DatabaseRow,
    Epoch,
    FunctionRow,
    Parts,
    TableRow,
    TableState,
    new_bridges,
    new_parts,
)
from calque.model.names import TableName
from calque.plugins.clusters.page import ClusterLooks
from calque.plugins.notices.config import channel_of
from calque.plugins.page.run.lag_series import LOOK_SECONDS, LagSample, LagSeries
from calque.plugins.page.run.routes import ActionRequest, Console, LinkQuery, TableQuery, front_page
from calque.plugins.remotes.config import REMOTES
from calque.plugins.remotes.run.link_states import SET_ASIDE, LinkStates
from calque.ports.records import Json
from calque.serve.front_page import FrontPage
from calque.serve.samples import TargetSample
from calque.serve.table_lag import lagging_of
from calque.streams.background import BackgroundThread
from calque.streams.kinds import RunningProcess
from calque.streams.target import TargetReplication
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
LOOK_AGAIN_SECONDS = 1.0
READ_AGAIN_SECONDS, READ_SHARE = 5.0, 0.02
"""The least seconds between two readings of the state folder, and the share of all time that reading may take."""
SHOWN, MOST_EXCEPTIONS, MOST_ACTIONS = 100, 100, 20
WHAT_TO_DO = {
    "calque adopt": "Move the object away at the target, or take it over with `calque adopt`; then release the table.",
    "transactional": "Tables of this kind are not replicated: exclude the table, or make it another kind.",
    "lost": "See whether they are meant to go; then release the drops.",
}
MEND_OTHER = "Mend the cause that the reason names, then release it."
MEND = "Mend the cause that the reason names, then release the table: it is read again."


@dataclass(slots=True)
class PageAction:
    """An action that the page asked for, with its state (`running`, `done` or `failed`) and its result."""

    action: OperatorAction
    target: str
    tables: tuple[str, ...]
    at: float = field(default_factory=time.time)
    state: str = "running"
    problem: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> Json:
        return {
            "action": self.action.value,
            "target": self.target,
            "tables": list(self.tables),
            "at": self.at,
            "state": self.state,
            "problem": self.problem,
            "result": summary(self.action, self.result),
        }


@dataclass(slots=True)
class TargetFacts:
    """The exceptions of one target: its newest bridges, parts, rereads and disarmed tables. `note` takes the ledger's
    epochs one by one, in ascending order."""

    epoch: int = 0
    bridges: dict[str, Bridge] = field(default_factory=dict)
    parts: dict[str, Parts] = field(default_factory=dict)
    exceptions: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=MOST_EXCEPTIONS))

    def note(self, target: str, epoch: Epoch) -> None:
        for kind, news in (
            ("bridge", new_bridges(epoch, self.bridges)),
            ("parts", new_parts(epoch, self.parts)),
        ):
            for one in news:
                self.add(target, epoch, kind, one.table, f"from event {one.from_event} to {one.to_event}")
        for reread in epoch.rereads:
            self.add(target, epoch, f"read again ({reread.cause.value})", reread.table, reread.reason)
        for table in epoch.disarmed:
            self.add(target, epoch, "disarmed", table, "a user's change endangered the source's files")
        self.epoch = epoch.epoch

    def add(self, target: str, epoch: Epoch, kind: str, table: str, text: str) -> None:
        self.exceptions.append(
            {
                "target": target,
                "epoch": epoch.epoch,
                "event_id": epoch.event_id,
                "at": epoch.published_at,
                "kind": kind,
                "table": table,
                "text": text,
            }
        )


class PageData:
    """The page's answers for one process. A thread samples the lags of its targets from `begin` to `end`."""

    def __init__(self, run: RunningProcess, has_token: bool) -> None:
        self.run, self.has_token = run, has_token
        self.series = LagSeries()
        self.sampling = BackgroundThread("page-lags", self.sample, lambda error: LOG.warning("lags: %s", error))
        self.lock, self.reading, self.acting = threading.Lock(), threading.Lock(), threading.Lock()
        self.answer: Json = None
        self.answered_at = 0.0
        self.facts: dict[str, TargetFacts] = {}
        self.slow: Mapping[str, Json] = {
            "gaps": [],
            "exceptions": [],
            "elsewhere": [],
            "rules": {},
            "links": None,
        }
        self.link_rows: Sequence[Mapping[str, Any]] = ()
        self.clusters = ClusterLooks()
        self.read_next = 0.0
        self.wiring = run.wiring
        self.actions: deque[PageAction] = deque(maxlen=MOST_ACTIONS)

    def front(self) -> FrontPage:
        return front_page(self.console(), self.has_token)

    def console(self) -> Console:
        return Console(self.overview, self.lags, self.tables, self.table, self.links, self.act)

    def begin(self) -> None:
        self.sampling.begin()

    def end(self) -> None:
        self.sampling.stop()

    def targets(self) -> Mapping[str, TargetReplication]:
        return self.run.target_parts()

    # How it is

    def sample(self, stopping: threading.Event) -> None:
        while not stopping.wait(LOOK_SECONDS):
            now = time.time()
            for name, part in self.targets().items():
                self.series.note(name, LagSample(now, *part.report.lag()))

    def lags(self, since: float) -> Json:
        """Return three columns for each target: times (seconds since the epoch), lag in seconds, and lag in events, of
        the samples after `since`."""
        return {
            "now": time.time(),
            "targets": {
                name: [list(column) for column in zip(*samples, strict=True)]
                for name, samples in self.series.since(since).items()
            },
        }

    def overview(self) -> Json:
        """Return the state of the process. All calls within `LOOK_AGAIN_SECONDS` get the same answer."""
        with self.lock:
            if time.monotonic() - self.answered_at > LOOK_AGAIN_SECONDS:
                self.read_folder()
                self.answer, self.answered_at = self.look(), time.monotonic()
            return self.answer

    def look(self) -> Json:
        view, parts = self.run.snapshot(), self.targets()
        return {
            "at": time.time(),
            "sources": [
                {
                    "name": source.name,
                    "captured_here": source.capture is not None,
                    "state": source.capture.state if source.capture else None,
                    "problem": source.capture.problem if source.capture else None,
                    "reachable": source.capture.reachable if source.capture else None,
                    "head": source.capture.head if source.capture else None,
                    "journal": source.capture.last if source.capture else None,
                }
                for source in view.sources
            ],
            "targets": [target_document(look, parts[look.name]) for look in view.targets if look.name in parts],
            "channels": [
                {
                    "name": look.name,
                    "at": channel_of(self.run.wiring.config, look.name).at,
                    "state": look.state,
                    "problem": look.problem,
                    "lag_events": look.lag_events,
                }
                for look in view.channels
            ],
            "silent": list(view.silent),
            "actions": [one.document() for one in reversed(self.actions)],
            "may_act": self.has_token,
            "clusters": self.clusters.document(self.run.wiring),
            **self.slow,
        }

    def read_folder(self) -> None:
        """Read the state folder, unless it was read a short while ago. Where it can't be read, the values of the last
        time stay."""
        if time.monotonic() < self.read_next:
            return
        began = time.monotonic()
        try:
            self.slow = self.read_slowly()
        except CalqueError as error:
            LOG.warning("the page tells what it knew: %s", error)
        took = time.monotonic() - began
        self.read_next = time.monotonic() + max(READ_AGAIN_SECONDS, took / READ_SHARE)

    def read_slowly(self) -> Mapping[str, Json]:
        if self.run.wiring is not self.wiring:
            self.wiring, self.facts = self.run.wiring, {}
        wiring, own = self.wiring, self.targets()
        exceptions: list[Mapping[str, Json]] = []
        for name in own:
            facts = self.facts.setdefault(name, TargetFacts())
            for epoch in own[name].current.target.side().ledger.epochs(after=facts.epoch):
                facts.note(name, epoch)
            exceptions += facts.exceptions
        if wiring.config.section(REMOTES) is not None:
            states = LinkStates(wiring)
            self.link_rows = [*states.databases(), *states.tables()]
        elsewhere = [
            {"name": target, "serves": process.serves or None}
            for process in processes(wiring.control)
            for target in process.targets
            if target not in own
        ]
        return {
            "gaps": [
                {"source": name, **gap}
                for name, source in wiring.sources.items()
                for gap in gaps_of(wiring, source)[-MOST_EXCEPTIONS:]
            ],
            "exceptions": sorted(exceptions, key=lambda one: str(one["at"]), reverse=True)[:MOST_EXCEPTIONS],
            "elsewhere": elsewhere,
            "rules": {
                name: [f"{rule.value} {pattern}" for rule, pattern in rules_of(wiring.control, name)] for name in own
            },
            "links": links_document(self.link_rows) if wiring.config.section(REMOTES) is not None else None,
        }

    # Tables

    def part(self, target: str) -> TargetReplication:
        """Return the part of the target. Raises `Refused` for a target that is not one of this process's."""
        parts = self.targets()
        if target not in parts:
            raise Refused(f'"{target}" is no target of this process', "", nearest(target, parts))
        return parts[target]

    def tables(self, query: TableQuery) -> Json:
        part = self.part(query.target)
        total, rows = part.report.find_tables(taking(query.text), query.state, query.offset, query.limit)
        return {
            "target": query.target,
            "total": total,
            "offset": query.offset,
            "tables": [table_document(part, row) for row in rows],
        }

    def table(self, target: str, name: str) -> Json:
        part = self.part(target)
        database, _, table = name.partition(".")
        side = part.current.target.side()
        history = table_history(part.current.source.side().journal, side.ledger, TableName(database, table))
        row = part.report.find_table(TableName(database, table))
        now = {} if row is None else table_document(part, row)
        return {**history, **now, "target": target}

    def links(self, query: LinkQuery) -> Json:
        """Return the links that the query takes, as they were when the state folder was last read."""
        with self.lock:
            self.read_folder()
        takes = taking(query.text)
        found = [
            row
            for row in self.link_rows
            if takes((*str(row["name"]).split(".", 1), "")[:2]) and query.state in ("", row["state"])
        ]
        shown = found[query.offset : query.offset + query.limit]
        return {"total": len(found), "offset": query.offset, "links": shown}

    # Actions

    def act(self, request: ActionRequest) -> Json:
        action = action_of(request.action)
        wiring = self.run.wiring.afresh()
        require_possible(wiring, request.target, request.tables)
        page_action = PageAction(action, request.target, request.tables)
        with self.acting:
            same = [one for one in self.actions if one.state == "running" and one.target == request.target]
            if action.takes_long() and same:
                raise Refused(f"{request.target} is being compared", "One comparison goes on at a time", "Wait for it")
            self.actions.append(page_action)
        LOG.info("the page asks: %s %s %s", action.value, request.target, " ".join(request.tables) or "all")
        if action.takes_long():
            thread = threading.Thread(
                target=self.carry_out, args=(wiring, page_action), name=f"page-{action.value}", daemon=True
            )
            thread.start()
        else:
            self.carry_out(wiring, page_action)
        self.answered_at = 0.0
        return page_action.document()

    def carry_out(self, wiring: Wiring, page_action: PageAction) -> None:
        try:
            page_action.result = do(
                wiring, page_action.action, page_action.target, page_action.tables, self.run.comparisons
            )
        except CalqueError as error:
            page_action.problem = str(error)
            page_action.state = "failed"
        except Exception:
            page_action.state, page_action.problem = "failed", "See the log of the process."
            LOG.exception("%s, asked for by the page", page_action.action.value)
        else:
            page_action.state = "done"


def target_document(look: TargetSample, part: TargetReplication) -> Json:
    quarantined = part.report.find_tables(lambda _: True, TableState.QUARANTINED.value, 0, SHOWN)[1]
    return {
        "name": look.name,
        "source": part.stream.name,
        "state": look.state,
        "problem": look.problem,
        "reachable": look.reachable,
        "position": look.position,
        "epoch": look.epoch,
        "lag_events": look.lag_events,
        "lag_seconds": round(look.lag_seconds, 1),
        "tables": dict(look.tables),
        "copying": copying_of(look.copying),
        "reading": reading_of(look.reading, look.copying),
        "lagging": lagging_of(look.lagging),
        "quarantined": [
            *(table_document(part, row) for row in quarantined),
            *(other_document(row) for row in part.report.others_aside()[:SHOWN]),
        ],
    }


def table_document(part: TargetReplication, row: TableRow) -> dict[str, Json]:
    name_at_target = part.current.target.admission().name_at_target(row.name)
    return {
        "table": str(row.name),
        "kind": "table",
        "at_target": None if name_at_target == row.name else str(name_at_target),
        "state": row.state.value,
        "shows": row.shows,
        "reason": row.reason,
        "since_event": row.since_event,
        "what_to_do": what_to_do(row),
        "why": row.why.value,
    }


def other_document(row: DatabaseRow | FunctionRow) -> dict[str, Json]:
    """Return the document of a database or function that is set aside, with the keys of a table's. `release` is the
    pattern that the action to release it takes."""
    is_function = isinstance(row, FunctionRow)
    return {
        "table": str(row.name),
        "kind": "function" if is_function else "database",
        "state": row.state.value,
        "shows": row.shows if isinstance(row, FunctionRow) else None,
        "reason": row.reason,
        "since_event": row.since_event,
        "what_to_do": MEND_OTHER,
        "why": "",
        "release": str(row.name) if is_function else f"{row.name}.*",
    }


def links_document(rows: Sequence[Mapping[str, Any]]) -> Json:
    """Return the number of links in each state, and the rows of those that are set aside, at most `SHOWN`."""
    aside = [row for row in rows if row["state"] == SET_ASIDE]
    return {"states": dict(Counter(str(row["state"]) for row in rows)), "aside": aside[:SHOWN]}


def what_to_do(row: TableRow) -> str:
    if row.state is not TableState.QUARANTINED:
        return ""
    if row.why.value == "held":
        return WHAT_TO_DO["lost"]
    return next((text for sign, text in WHAT_TO_DO.items() if sign in row.reason), MEND)


def taking(text: str) -> Any:
    """Return a function that tells whether a name, as (database, table), contains the text, or matches it where the
    text is a glob."""
    wanted = text.strip().lower()
    if not wanted:
        return lambda _: True
    if any(sign in wanted for sign in "*?["):
        return lambda name: fnmatchcase(f"{name[0]}.{name[1]}", wanted)
    return lambda name: wanted in f"{name[0]}.{name[1]}"


def summary(action: OperatorAction, result: Mapping[str, Any]) -> Json:
    """Return those parts of a comparison's or repair's result that the page shows, lists cut to `SHOWN` entries; None
    for no result."""
    if not result:
        return None
    if action is OperatorAction.REPAIR:
        return {
            "event_id": result["event_id"],
            "tables": list(islice(result["tables"], SHOWN)),
            "left": list(islice(result["left"], SHOWN)),
        }
    return {
        "event_id": result["event_id"],
        "compared": result["compared"].tables,
        "count": len(result["differences"]),
        "differences": list(islice(result["differences"], SHOWN)),
        "set_aside": len(result["set_aside"]),
    }
