"""The answers of a running process to the page at `/`, and the actions that the page asks of it.

Values that change all the time come from this process's memory. Values that only the state folder has (gaps,
exceptions, pauses, objects set aside that are no tables) are read again after a time that grows with how long reading
took. So the page costs the streams little, for any number of viewers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.control.actions import OperatorAction, action_of, do, require_possible
from calque.control.table_history import table_history
from calque.errors import CalqueError, Refused, nearest
from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName
from calque.plugins.clusters.page import ClusterLooks
from calque.plugins.notices.config import channel_of
from calque.plugins.page.run.about import about
from calque.plugins.page.run.documents import (
    aside_other,
    aside_table,
    channel_document,
    documents_of_problems,
    gap_document,
    source_document,
    summary,
    table_advice,
    table_document,
    target_document,
)
from calque.plugins.page.run.folder_facts import SHOWN, FolderFacts, FolderReader
from calque.plugins.page.run.lag_series import LOOK_SECONDS, LagSample, LagSeries
from calque.plugins.page.run.routes import ActionRequest, Console, LinkQuery, front_page
from calque.plugins.page.run.table_list import TableOrder, TableQuery, in_order, takes_text
from calque.plugins.page.run.table_sizes import TableSize, TableSizes
from calque.ports.records import Json
from calque.serve.front_page import FrontPage
from calque.serve.known_facts import AsideObject, KnownFacts, LateTable
from calque.serve.problems import LATE_SECONDS, problem_count, problems
from calque.streams.background import BackgroundThread
from calque.streams.kinds import RunningProcess
from calque.streams.target import TargetReplication
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
LOOK_AGAIN_SECONDS = 1.0
READ_AGAIN_SECONDS, READ_SHARE = 5.0, 0.02
"""The least seconds between two readings of the state folder, and the share of all time that reading may take."""
MOST_ACTIONS, MOST_LATE = 20, 20


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


class PageData:
    """The page's answers for one process. A thread samples the lags of its targets from `begin` to `end`."""

    def __init__(self, run: RunningProcess, has_token: bool) -> None:
        self.run, self.has_token, self.began = run, has_token, time.time()
        self.series = LagSeries()
        self.sampling = BackgroundThread("page-lags", self.sample, lambda error: LOG.warning("lags: %s", error))
        self.lock, self.acting = threading.Lock(), threading.Lock()
        self.answer: Json = None
        self.answered_at = 0.0
        self.reader = FolderReader(run.wiring)
        self.facts = FolderFacts()
        self.first_seen_aside: dict[tuple[str, str], float] = {}
        """Times since when this process has seen objects in quarantine, by target and name."""
        self.sizes: dict[str, TableSizes] = {}
        self.clusters = ClusterLooks()
        self.read_next = 0.0
        self.actions: deque[PageAction] = deque(maxlen=MOST_ACTIONS)

    def front(self) -> FrontPage:
        return front_page(self.console(), self.has_token)

    def console(self) -> Console:
        return Console(
            overview=self.overview,
            lags=self.lags,
            tables=self.tables,
            every_table=self.every_table,
            table=self.table,
            links=self.links,
            about=lambda: about(self.run.wiring.config, self.began),
            act=self.act,
        )

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
        view, parts, now = self.run.snapshot(), self.targets(), time.time()
        clusters = self.clusters.document(self.run.wiring)
        found = problems(view, self.known_facts(parts, clusters, now), now)
        captures = {source.name: source.capture for source in view.sources}
        facts, config = self.facts, self.run.wiring.config
        return {
            "at": now,
            "began": self.began,
            "problems": documents_of_problems(found, SHOWN),
            "problem_count": problem_count(found),
            "headline": found[0].what if found else "",
            "sources": [source_document(source) for source in view.sources],
            "targets": [
                target_document(look, part, captures.get(part.stream.name))
                for look in view.targets
                if (part := parts.get(look.name)) is not None
            ],
            "channels": [channel_document(look, channel_of(config, look.name).at) for look in view.channels],
            "silent": list(view.silent),
            "state_free_bytes": view.free_bytes,
            "actions": [one.document() for one in reversed(self.actions)],
            "may_act": self.has_token,
            "clusters": clusters,
            "gaps": [gap_document(gap) for gap in facts.gaps],
            "exceptions": list(facts.exceptions),
            "epochs": list(facts.epochs),
            "elsewhere": list(facts.elsewhere),
            "unserved": list(facts.unserved),
            "rules": {name: list(rules) for name, rules in facts.rules.items()},
            "links": facts.links_document(),
        }

    def known_facts(self, parts: Mapping[str, TargetReplication], clusters: Any, now: float) -> KnownFacts:
        facts = self.facts
        late = {name: part.report.late_tables(LATE_SECONDS, MOST_LATE) for name, part in parts.items()}
        aside = {name: self.aside(name, part, now) for name, part in parts.items()}
        seen = {(name, one.name): one.since or now for name, (_, objects) in aside.items() for one in objects}
        self.first_seen_aside = seen
        told_as_tables = self.quarantined_links(parts)
        links_aside = [row for row in facts.links_aside() if row["name"] not in told_as_tables]
        listed: list[LateTable] = [one for _, tables in late.values() for one in tables]
        return KnownFacts(
            aside=[one for _, objects in aside.values() for one in objects],
            aside_counts={name: count for name, (count, _) in aside.items()},
            late=listed,
            late_counts={name: count for name, (count, _) in late.items()},
            paused=facts.paused,
            patterns=facts.patterns,
            gaps=facts.gaps,
            unserved=facts.unserved,
            links_aside=[(str(row["name"]), str(row["reason"])) for row in links_aside[:SHOWN]],
            links_aside_count=len(links_aside),
            silent_clusters=[(one["name"], one["metastore"]) for one in clusters if one["reachable"] is False],
        )

    def quarantined_links(self, parts: Mapping[str, TargetReplication]) -> set[str]:
        """Return the local names of links whose tables are in quarantine at their projection, which tells of them."""
        targets = self.run.wiring.config.targets
        projections = [part for name, part in parts.items() if name in targets and targets[name].links is not None]
        return {
            str(part.current.target.admission().name_at_target(row.name))
            for part in projections
            for row in part.report.find_all_tables(lambda _: True, TableState.QUARANTINED.value)
        }

    def aside(self, target: str, part: TargetReplication, now: float) -> tuple[int, Sequence[AsideObject]]:
        """Return how many objects the target has in quarantine, and the first of them."""
        told = self.facts.aside_since.get(target, {})

        def since(name: str) -> float:
            return self.first_seen_aside.get((target, name)) or told.get(name, now)

        count, rows = part.report.find_tables(lambda _: True, TableState.QUARANTINED.value, 0, SHOWN)
        others = part.report.others_aside()
        return count + len(others), [
            *(aside_table(target, row, since(str(row.name))) for row in rows),
            *(aside_other(target, row, since(str(row.name))) for row in others[:SHOWN]),
        ]

    def read_folder(self) -> None:
        """Read the state folder, unless it was read a short while ago. Where it can't be read, the values of the last
        time stay."""
        if time.monotonic() < self.read_next:
            return
        began = time.monotonic()
        try:
            self.facts = self.reader.read(self.run.wiring, self.targets())
        except CalqueError as error:
            LOG.warning("the page tells what it knew: %s", error)
        took = time.monotonic() - began
        self.read_next = time.monotonic() + max(READ_AGAIN_SECONDS, took / READ_SHARE)

    # Tables

    def part(self, target: str) -> TargetReplication:
        """Return the part of the target. Raises `Refused` for a target that is not one of this process's."""
        parts = self.targets()
        if target not in parts:
            raise Refused(f'"{target}" is no target of this process', "", nearest(target, parts))
        return parts[target]

    def tables(self, query: TableQuery) -> Json:
        part, sizes = self.part(query.target), self.sizes_of(query.target)
        takes, window = takes_text(query.text), slice(query.offset, query.offset + query.limit)
        if query.order is TableOrder.NAME and not query.is_turned:
            total, rows = part.report.find_tables(takes, query.state, query.offset, query.limit)
        else:
            found = part.report.find_all_tables(takes, query.state)
            total, rows = len(found), in_order(found, query, sizes)[window]
        return {
            "target": query.target,
            "total": total,
            "offset": query.offset,
            "has_sizes": bool(sizes),
            "tables": [table_document(part, row, sizes.get(row.name)) for row in rows],
        }

    def every_table(self, query: TableQuery) -> Iterator[Mapping[str, Json]]:
        """Return all tables that the query takes, one after the other. Its offset and limit do not count."""
        part, sizes = self.part(query.target), self.sizes_of(query.target)
        rows = in_order(part.report.find_all_tables(takes_text(query.text), query.state), query, sizes)
        return (table_document(part, row, sizes.get(row.name)) for row in rows)

    def table(self, target: str, name: str) -> Json:
        part = self.part(target)
        database, _, table = name.partition(".")
        side = part.current.target.side()
        history = table_history(part.current.source.side().journal, side.ledger, TableName(database, table))
        row = part.report.find_table(TableName(database, table))
        return {**history, **self.known_of_table(part, row), "target": target}

    def known_of_table(self, part: TargetReplication, row: TableRow | None) -> Mapping[str, Json]:
        if row is None:
            return {}
        size = self.sizes_of(part.name).get(row.name)
        return {**table_document(part, row, size), **table_advice(part.name, row)}

    def sizes_of(self, target: str) -> Mapping[TableName, TableSize]:
        """Return the sizes of the target's tables as far as they are counted by now."""
        if target not in self.sizes:
            self.sizes[target] = TableSizes(lambda: self.part(target).current.target.ledger().view())
        return self.sizes[target].look()

    def links(self, query: LinkQuery) -> Json:
        """Return the links that the query takes, as they were when the state folder was last read."""
        with self.lock:
            self.read_folder()
        takes = takes_text(query.text)
        found = [row for row in self.facts.links or () if takes(link_name(row)) and query.state in ("", row["state"])]
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
        self.answered_at = self.read_next = 0.0
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


def link_name(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the database and the table of a link; the table is empty for the link of a database."""
    database, _, table = str(row["name"]).partition(".")
    return database, table
