"""Messages for many groups at once: one pass over the journal, and not one for each group."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from calque.engine.apply.definitions import events_of
from calque.engine.sides.journal_reads import AT_ONCE
from calque.engine.window.groups import Group
from calque.model.journal import Event
from calque.model.names import EventId
from calque.model.plan import GroupPlan
from calque.ports import Journal
from calque.ports.forwarding import ForwardingJournal

BUDGET = 128 << 20
"""Characters of messages that are held for groups to come. While the last groups of one batch are applied, the next
batch may be there too."""
TYPICAL = 8 << 10
"""Characters of a message, as long as none was seen."""
MOST = 5000
"""Messages that are asked for at once."""


def wanted_by(plan: GroupPlan) -> frozenset[EventId]:
    """The events whose messages the plan's application needs."""
    return frozenset({*events_of(plan), *(facet.event_id for facet in plan.facet_events)} - {0})


def prefetched_messages(journal: Journal, groups: Iterable[Group]) -> PrefetchedMessages:
    """For groups that are prepared, each by its first event."""
    plans = {group.first: group.ready.plan for group in groups if group.ready is not None}
    return PrefetchedMessages(journal, {first: wanted_by(plan) for first, plan in plans.items()})


class PrefetchedMessages:
    """Messages by who wants them, in the order in which these come. What the first one of a batch asks for is fetched
    together with what the next ones will. Safe from several threads."""

    def __init__(self, journal: Journal, wanted: Mapping[EventId, Collection[EventId]], budget: int = BUDGET) -> None:
        self.journal, self.wanted, self.budget = journal, wanted, budget
        self.order = list(wanted)
        self.places = {key: place for place, key in enumerate(self.order)}
        self.held: dict[EventId, dict[EventId, Event]] = {}
        self.typical = TYPICAL
        self.fetching = threading.Lock()

    def take(self, key: EventId) -> Journal:
        """The journal for the one that goes by this key, with its messages at hand; they are let go of with it. Raises
        what the journal raises."""
        found = self.held.pop(key, None)
        if found is None:
            with self.fetching:
                if key not in self.held:
                    self.fetch(self.batch(key))
                found = self.held.pop(key, {})
        return JournalAtHand(self.journal, found)

    def batch(self, key: EventId) -> Sequence[EventId]:
        """Those from `key` on whose messages fit, as far as their sizes are known; none where its own do not."""
        left, found = self.budget // self.typical, []
        for one in self.order[self.places[key] :]:
            left -= len(self.wanted[one])
            if left < 0:
                break
            if one not in self.held:
                found.append(one)
        return found

    def fetch(self, keys: Sequence[EventId]) -> None:
        """Hold the messages that these want. Where they are larger than was thought, the last ones get none."""
        owners = {event_id: key for key in keys for event_id in self.wanted[key]}
        found: dict[EventId, dict[EventId, Event]] = {key: {} for key in keys}
        ids, held = sorted(owners), 0
        while ids:
            events = self.journal.events(ids[:MOST], AT_ONCE)
            ids = ids[len(events) :]
            weight = sum(len(event.message) for event in events.values())
            self.typical, held = max(1, weight // len(events)), held + weight
            for event_id, event in events.items():
                found[owners[event_id]][event_id] = event
            while held > self.budget and found:
                gone, theirs = found.popitem()
                held -= sum(len(event.message) for event in theirs.values())
                ids = [event_id for event_id in ids if owners[event_id] != gone]
        self.held.update(found)


class JournalAtHand(ForwardingJournal):
    """A journal of which some events are here."""

    def __init__(self, journal: Journal, known: Mapping[EventId, Event]) -> None:
        super().__init__(journal)
        self._known = known

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        wanted = sorted(set(ids))
        if all(event_id in self._known for event_id in wanted):
            return {event_id: self._known[event_id] for event_id in wanted}
        return super().events(wanted, most)
