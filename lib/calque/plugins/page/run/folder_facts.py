"""The facts for the page that only the state folder has, and what epochs tell of each target: `FolderReader`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from calque.control.pause_rules import PauseAction, deciding_rule, paused_at, rule_times, rules_of
from calque.control.processes import processes
from calque.control.status import gaps_of
from calque.model.ledger import Bridge, Epoch, Parts, new_bridges, new_parts
from calque.plugins.remotes.config import REMOTES
from calque.plugins.remotes.run.link_states import SET_ASIDE, LinkStates
from calque.ports.records import Json
from calque.serve.known_facts import LostEvents, PausedPattern
from calque.streams.target import TargetReplication
from calque.wiring.wiring import Wiring

SHOWN, MOST_EXCEPTIONS, MOST_EPOCHS = 100, 100, 10


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderFacts:
    """The facts as they were when the state folder was last read. `elsewhere` has targets of other processes with the
    addresses of their pages, `unserved` the targets that no process replicates to. `links` is None where the
    configuration has no section for links."""

    gaps: Sequence[LostEvents] = ()
    exceptions: Sequence[Mapping[str, Json]] = ()
    epochs: Sequence[Mapping[str, Json]] = ()
    elsewhere: Sequence[Mapping[str, Json]] = ()
    unserved: Sequence[str] = ()
    rules: Mapping[str, Sequence[str]] = field(default_factory=dict)
    paused: Mapping[str, float] = field(default_factory=dict)
    patterns: Sequence[PausedPattern] = ()
    links: Sequence[Mapping[str, Any]] | None = None
    aside_since: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Times since when objects are in quarantine, by target and name, as far as epochs tell them."""

    def links_aside(self) -> list[Mapping[str, Any]]:
        return [row for row in self.links or () if row["state"] == SET_ASIDE]

    def links_document(self) -> Json:
        """Return the number of links in each state."""
        if self.links is None:
            return None
        return {"states": dict(Counter(str(row["state"]) for row in self.links))}


@dataclass(slots=True)
class EpochFacts:
    """The facts that the epochs of one target tell: its newest epochs, exceptions (bridges, parts, rereads, disarmed
    tables), and since when objects are in quarantine. `note` takes epochs one by one, in ascending order."""

    epoch: int = 0
    bridges: dict[str, Bridge] = field(default_factory=dict)
    parts: dict[str, Parts] = field(default_factory=dict)
    exceptions: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=MOST_EXCEPTIONS))
    newest: deque[Epoch] = field(default_factory=lambda: deque(maxlen=MOST_EPOCHS))
    quarantined: tuple[str, ...] = ()
    aside_since: Mapping[str, float] = field(default_factory=dict)

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
        if epoch.quarantined != self.quarantined:
            at, before = seconds_of(epoch.published_at), self.aside_since
            self.quarantined, self.aside_since = epoch.quarantined, {n: before.get(n, at) for n in epoch.quarantined}
        self.newest.append(epoch)
        self.epoch = epoch.epoch

    def add(self, target: str, epoch: Epoch, kind: str, table: str, text: str) -> None:
        self.exceptions.append(
            {
                "target": target,
                "epoch": epoch.epoch,
                "event_id": epoch.event_id,
                "at": seconds_of(epoch.published_at),
                "kind": kind,
                "table": table,
                "text": text,
            }
        )


class FolderReader:
    """The reader of the state folder for the page. It keeps what it has read of each target's epochs, and goes on
    behind them."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.epochs: dict[str, EpochFacts] = {}

    def read(self, wiring: Wiring, own: Mapping[str, TargetReplication]) -> FolderFacts:
        """Return the facts now. `own` are the targets of this process. Raises `CalqueError` where the folder can't be
        read."""
        if wiring is not self.wiring:
            self.wiring, self.epochs = wiring, {}
        for name, part in own.items():
            facts = self.epochs.setdefault(name, EpochFacts())
            for epoch in part.current.target.side().ledger.epochs(after=facts.epoch):
                facts.note(name, epoch)
        known = {name: self.epochs[name] for name in own}
        exceptions = [exception for facts in known.values() for exception in facts.exceptions]
        newest = [epoch_document(name, epoch) for name, facts in known.items() for epoch in facts.newest]
        others = [
            {"name": target, "serves": process.serves or None}
            for process in processes(wiring.control)
            for target in process.targets
            if target not in own
        ]
        served = {*own, *(str(other["name"]) for other in others)}
        configured = {*own, *wiring.config.own_targets()}
        return FolderFacts(
            gaps=[
                lost_events(name, gap)
                for name, source in wiring.sources.items()
                for gap in gaps_of(wiring, source)[-MOST_EXCEPTIONS:]
            ],
            exceptions=newest_first(exceptions, MOST_EXCEPTIONS),
            epochs=newest_first(newest, MOST_EPOCHS),
            elsewhere=others,
            unserved=sorted(configured - served),
            rules={
                name: [f"{rule.value} {pattern}" for rule, pattern in rules_of(wiring.control, name)] for name in own
            },
            paused={name: at for name in own if (at := paused_at(wiring.control, name)) is not None},
            patterns=[pattern for name, part in own.items() for pattern in paused_patterns(wiring, name, part)],
            links=self.read_links(),
            aside_since={name: facts.aside_since for name, facts in known.items()},
        )

    def read_links(self) -> Sequence[Mapping[str, Any]] | None:
        if self.wiring.config.section(REMOTES) is None:
            return None
        states = LinkStates(self.wiring)
        return [*states.databases(), *states.tables()]


def paused_patterns(wiring: Wiring, target: str, part: TargetReplication) -> list[PausedPattern]:
    """Return the patterns by which an operator holds tables of the target back, with the number of tables that each of
    them decides on."""
    rules, times = rules_of(wiring.control, target), rule_times(wiring.control, target)
    deciding = deciding_rule(rules)
    counts = Counter(deciding(name) for name in part.report.paused_names()) if rules else Counter()
    return [
        PausedPattern(target=target, pattern=rule[1], since=times.get(rule[1]), tables=counts[rule])
        for rule in rules
        if rule[0] is PauseAction.PAUSE
    ]


def lost_events(source: str, gap: Mapping[str, Any]) -> LostEvents:
    """Return the gap that a document of the status tells."""
    return LostEvents(
        source=source,
        target=gap.get("target", ""),
        first=gap["from"],
        last=gap["to"],
        state=gap["state"],
        cause=gap["cause"],
        found_at=seconds_of(gap["found_at"]),
    )


def epoch_document(target: str, epoch: Epoch) -> Mapping[str, Json]:
    return {
        "target": target,
        "epoch": epoch.epoch,
        "at": seconds_of(epoch.published_at),
        "event_id": epoch.event_id,
        "kind": epoch.kind,
        "tables": epoch.tables,
        "hops": epoch.hops,
        "files": epoch.files,
        "bytes": epoch.bytes,
    }


def newest_first(rows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: float(row["at"]), reverse=True)[:most]


def seconds_of(text: str) -> float:
    """Return a time of the ledger, ISO 8601 in UTC, as seconds since 1970."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
