"""The messages of many groups, fetched by one pass over the journal in place of one for each group."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from calque.core.events.decode import weight_of
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
"""Characters that a message is taken to have until one was seen."""
MOST = 5000
"""Messages that are asked for at once."""


def wanted_by(plan: GroupPlan) -> frozenset[EventId]:
    """Return the ids of the events whose messages the plan's application needs."""
    return frozenset({*events_of(plan), *(facet.event_id for facet in plan.facet_events)} - {0})


def prefetched_messages(journal: Journal, groups: Iterable[Group]) -> PrefetchedMessages:
    """Return the prefetched messages for those of `groups` that have a plan, each group by its first event."""
    plans = {group.first: group.ready.plan for group in groups if group.ready is not None}
    return PrefetchedMessages(journal, {first: wanted_by(plan) for first, plan in plans.items()})


class PrefetchedMessages:
    """The messages of events by the keys (first events of groups) that want them, in the order in which the keys come.
    When the first key of a batch asks, its messages are fetched together with those of the keys that follow, up to
    `budget` characters. Safe from several threads."""

    def __init__(
        self, journal: Journal, ids_by_key: Mapping[EventId, Collection[EventId]], budget: int = BUDGET
    ) -> None:
        self.journal, self.ids_by_key, self.budget = journal, ids_by_key, budget
        self.order = list(ids_by_key)
        self.places = {key: place for place, key in enumerate(self.order)}
        self.held: dict[EventId, dict[EventId, Event]] = {}
        self.typical = TYPICAL
        self.fetching = threading.Lock()

    def take(self, key: EventId) -> Journal:
        """Return the journal for the group of `key`, with the group's messages at hand. The messages are freed with the
        journal that is returned. Raises what the journal raises."""
        events = self.held.pop(key, None)
        if events is None:
            with self.fetching:
                if key not in self.held:
                    self.fetch(self.batch(key))
                events = self.held.pop(key, {})
        return CachedJournal(self.journal, events)

    def batch(self, key: EventId) -> Sequence[EventId]:
        """Return the keys from `key` on whose messages fit into the budget, as far as their sizes are known; none where
        the messages of `key` alone do not fit."""
        remaining, keys = self.budget // self.typical, []
        for one in self.order[self.places[key] :]:
            remaining -= len(self.ids_by_key[one])
            if remaining < 0:
                break
            if one not in self.held:
                keys.append(one)
        return keys

    def fetch(self, keys: Sequence[EventId]) -> None:
        """Fetch the messages that `keys` want and hold them. Where they are larger than expected, the last keys get
        none."""
        owners = {event_id: key for key in keys for event_id in self.ids_by_key[key]}
        events_by_key: dict[EventId, dict[EventId, Event]] = {key: {} for key in keys}
        ids, held_weight = sorted(owners), 0
        while ids:
            events = self.journal.events(ids[:MOST], AT_ONCE)
            ids = ids[len(events) :]
            weight = sum(map(weight_of, events.values()))
            self.typical, held_weight = max(1, weight // len(events)), held_weight + weight
            for event_id, event in events.items():
                events_by_key[owners[event_id]][event_id] = event
            while held_weight > self.budget and events_by_key:
                dropped_key, dropped_events = events_by_key.popitem()
                held_weight -= sum(map(weight_of, dropped_events.values()))
                ids = [event_id for event_id in ids if owners[event_id] != dropped_key]
        self.held.update(events_by_key)


class CachedJournal(ForwardingJournal):
    """A journal that answers from `events` where all that is asked for is there, and else asks the journal behind
    it."""

    def __init__(self, journal: Journal, events: Mapping[EventId, Event]) -> None:
        super().__init__(journal)
        self._events = events

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        event_ids = sorted(set(ids))
        if all(event_id in self._events for event_id in event_ids):
            return {event_id: self._events[event_id] for event_id in event_ids}
        return super().events(event_ids, most)
