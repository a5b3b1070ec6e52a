"""A world that is asked whether readers of its target saw a part of a transaction. Nothing hides files there:
where those of a state are not known, no operations lead through it, and tables go apart."""

from __future__ import annotations

from calque.core.acid.transactions import Committed, transaction_event
from calque.core.records import lifecycle
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from support.worlds.acid import REMOVING, STEPS, AcidWriters
from support.worlds.worlds import ABSENT, World


class Joint(World):
    """`parts` are the transactions of which a reader saw one table after the commit, and another before it."""

    def __init__(self, seed: int, policy: Policy) -> None:
        self.commits: list[tuple[EventId, list[TableName]]] = []
        """Of several tables."""
        self.parts: list[str] = []
        self.passed = 0
        super().__init__(seed, policy=policy)
        self.writers = AcidWriters.of(self, seed)
        self.writers.steps = {name: weight for name, weight in STEPS.items() if name not in REMOVING}
        self.writers.overwriting = 0.0

    def note(self) -> None:
        super().note()
        events, self.passed = self.source.events(self.passed), self.source.current()
        for change, event in ((transaction_event(event), event) for event in events):
            if isinstance(change, Committed) and len(tables := self.writers.wrote.get(change.transaction, ())) > 1:
                self.commits.append((event.event_id, list(tables)))

    def looked(self, method: str) -> None:
        before = self.seen_at
        super().looked(method)
        if self.seen_at == before:
            return
        for event_id, tables in self.commits:
            sides = {self.side_of(name, event_id) for name in tables if self.is_steady(name)}
            if sides >= {"before", "after"}:
                self.parts.append(f"{method} shows a part of event {event_id} on {tables}")

    def is_steady(self, name: TableName) -> bool:
        """Whether it goes through windows, and never left them."""
        tables = self.replica.tables
        return tables.is_(name, {lifecycle.State.LIVE}) and name not in tables.positions and name not in self.reread

    def side_of(self, name: TableName, event_id: EventId) -> str:
        """Whether the target shows the table as it was before the event, or as it was after it; empty where that can't
        be told."""
        rows, (shown, _) = self.history.states[name], self.seen.get(name, (ABSENT, False))
        places = [number for number, (_, state) in enumerate(rows) if state == shown]
        if places and all(rows[place][0] >= event_id for place in places):
            return "after"
        ends = [rows[place + 1][0] if place + 1 < len(rows) else event_id + 1 for place in places]
        return "before" if places and max(ends) <= event_id else ""
