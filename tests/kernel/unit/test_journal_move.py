"""Moving a journal: whatever was there, and wherever it is interrupted, the new one says the same in the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import table_of
from calque.engine.capture.journal_copy import CopiedJournal, JournalOwner, JournalStore, move
from calque.engine.failpoints import FailpointGuard
from calque.errors import Refused
from calque.model.files import Evidence, File, Listing
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import EventId, Span, TableName
from support.memory.journal import MemoryJournal

KEYS = Keys(EventKind.INSERT, TableName("d1", "t"), partitions=("p=1",), locations=("file:/t",), replaces=True)


def event(event_id: EventId, history: str = "") -> Event:
    return Event(event_id, event_id, "INSERT", "hive", "d1", "t", "json-0.2", f'{{"said": "{history}{event_id}"}}')


def rows(ids: Iterable[EventId], history: str = "") -> pa.Table:
    return table_of((event(event_id, history), KEYS) for event_id in ids)


def listing(event_id: EventId, history: str = "") -> Evidence:
    return Evidence(event_id, Listing("file:/t", (File(f"{history}{event_id}", 1, 2),)))


def kept(ids: range = range(0), history: str = "", considered: EventId | None = None) -> JournalStore:
    """One that captured these, and found evidence up to `considered`, or all."""
    found = JournalStore("old", MemoryJournal(), MemoryEvidence())
    if ids:
        found.journal.append(rows(ids, history))
        upto = ids[-1] if considered is None else considered
        found.evidence.append([listing(event_id, history) for event_id in ids if event_id <= upto], upto)
    return found


def said(kept: JournalStore, ids: Iterable[EventId]) -> object:
    """All that readers get of these events."""
    wanted = list(ids)
    return (
        [kept.journal.entries(Span(event_id - 1, event_id)) for event_id in wanted],
        kept.journal.events(wanted),
        kept.evidence.evidence(wanted),
        kept.evidence.considered(),
        kept.journal.last(),
    )


def test_an_empty_journal_gets_everything() -> None:
    old, new = kept(range(5, 6000), considered=5900), kept()
    seen: list[tuple[EventId, EventId]] = []
    assert move(old, new, JournalOwner.ANYBODY, 0, lambda *reached: seen.append(reached)) == CopiedJournal(
        5995, 5896, 5999
    )
    assert said(new, range(5, 6000)) == said(old, range(5, 6000))
    assert new.journal.oldest() == 5
    assert seen[-1] == (5999, 5999)


def test_moving_again_copies_nothing_but_what_came_since() -> None:
    old, new = kept(range(1, 300)), kept()
    move(old, new, JournalOwner.ANYBODY, 0)
    assert move(old, new, JournalOwner.ANYBODY, 0) == CopiedJournal(0, 0, 299)
    old.journal.append(rows(range(300, 320)))
    old.evidence.append([listing(250, "again"), listing(310)], 315)
    assert move(old, new, JournalOwner.ANYBODY, 0) == CopiedJournal(20, 2, 319)
    assert said(new, range(1, 320)) == said(old, range(1, 320))


def test_nothing_captured_is_nothing_to_copy() -> None:
    new = kept()
    assert move(kept(), new, JournalOwner.ANYBODY, 0) == CopiedJournal(0, 0, None)
    assert new.journal.last() is None


def test_a_journal_that_begins_anew_after_a_gap_takes_its_end_along() -> None:
    old, new = kept(range(1, 10)), kept()
    old.journal.restart(50)
    old.evidence.restart(50)
    assert move(old, new, JournalOwner.ANYBODY, 50) == CopiedJournal(0, 0, 50)
    assert (new.journal.last(), new.journal.oldest(), new.evidence.considered()) == (50, None, 50)
    assert move(old, new, JournalOwner.ANYBODY, 50) == CopiedJournal(0, 0, 50)


def test_back_again_only_what_came_meanwhile_is_copied() -> None:
    old, new = kept(range(1, 100)), kept()
    move(old, new, JournalOwner.ANYBODY, 0)
    new.journal.append(rows(range(100, 150)))
    new.evidence.append([listing(120)], 140)
    assert move(new, old, JournalOwner.US, 0) == CopiedJournal(50, 1, 149)
    assert said(old, range(1, 150)) == said(new, range(1, 150))


def test_a_journal_of_ours_that_fell_behind_what_is_kept_begins_anew() -> None:
    old, new = kept(range(1, 200)), kept(range(1, 50))
    old.journal.forget(80)
    assert move(old, new, JournalOwner.US, 80) == CopiedJournal(119, 119, 199)
    assert new.journal.oldest() == 81
    assert said(new, range(81, 200)) == said(old, range(81, 200))


def test_rows_of_another_history_go_where_the_journal_is_ours_and_are_refused_where_it_is_not() -> None:
    old, shared = kept(range(40, 60)), kept(range(1, 90), "other")
    with pytest.raises(Refused, match="old has events 1 to 89, and events 40 to 59 of old do not continue them"):
        move(old, shared, JournalOwner.ANYBODY, 0)
    assert move(old, shared, JournalOwner.US, 0) == CopiedJournal(20, 20, 59)
    assert said(shared, range(40, 60)) == said(old, range(40, 60))


def test_events_between_the_two_are_refused() -> None:
    with pytest.raises(Refused, match="do not continue"):
        move(kept(range(50, 60)), kept(range(1, 40)), JournalOwner.ANYBODY, 0)


def test_a_shared_topic_that_another_hub_filled_further_is_taken_as_it_is() -> None:
    old, shared = kept(range(20, 60), considered=55), kept(range(10, 90), considered=30)
    assert move(old, shared, JournalOwner.ANYBODY, 0) == CopiedJournal(0, 25, 59)
    assert (shared.journal.last(), shared.evidence.considered()) == (89, 55)


def test_a_shared_topic_that_begins_later_is_taken_only_when_targets_need_nothing_before() -> None:
    old, shared = kept(range(20, 60)), kept(range(40, 90))
    with pytest.raises(Refused, match="do not continue"):
        move(old, shared, JournalOwner.ANYBODY, 38)
    assert move(old, shared, JournalOwner.ANYBODY, 39).events == 0


class Death(BaseException):
    pass


def test_a_move_that_dies_anywhere_goes_on_and_loses_nothing() -> None:
    old = kept(range(81, 900), considered=850)
    for stale in (kept(), kept(range(1, 50), "other"), kept(range(70, 300)), kept(range(81, 1200), "other")):
        dying, deaths = replace(stale), 0
        effects = 0
        while True:
            left = effects

            def hit(name: str) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Death(name)

            guarded = JournalStore(
                "new", FailpointGuard(hit).journal(dying.journal), FailpointGuard(hit).evidence(dying.evidence)
            )
            try:
                move(old, guarded, JournalOwner.US, 80)
                break
            except Death:
                deaths += 1
                effects += 1
        assert deaths > 3
        assert said(dying, range(81, 900)) == said(old, range(81, 900))
        assert dying.journal.last() == 899
