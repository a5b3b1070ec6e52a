"""`engine.capture.continuity`: where the log does not go on as the journal ends, and what becomes of journal and
evidence then."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.capture.gap_guard import fenced
from calque.engine.capture.log_watch import watch
from calque.engine.check.log_strength import newest_rows, weaknesses
from calque.engine.failpoints import EFFECTS, FailpointGuard
from calque.engine.sides.journal_reads import begin_of
from calque.engine.sides.log_reads import events_after
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import Refused, Unavailable
from calque.model.files import Evidence, Listing
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Database
from calque.model.journal import Event
from calque.model.names import EventId, Span
from calque.streams.background import BackgroundThread
from support.memory.gaps import MemoryGaps
from support.memory.metastore import HIVE_3, MemoryMetastore
from support.worlds.worlds import Died, World

LOG = "_log"


class Site:
    """A source whose log can be tampered with, and what captures it."""

    def __init__(self, *, stop: bool = False, weak: bool = False) -> None:
        self.world = World(1, HIVE_3, pins=True)
        self.world.clock.asleep = lambda: None
        self.store: MemoryMetastore = self.world.source
        self.source = replace(self.world.source_side, gaps=MemoryGaps())
        self.stop, self.weak = stop, weak
        self.names = (f"d{number}" for number in count())
        self.start()

    def start(self) -> None:
        """As a new process."""
        self.continuity = Continuity(self.source, 0, stop=self.stop, weak=self.weak)
        self.gatherer = EvidenceGatherer(self.source, lambda _: True)
        self.capture = Capture(self.source, 0, self.gatherer, self.continuity)

    def write(self, events: int) -> None:
        for _ in range(events):
            self.world.clock.now += 1_000_000_000
            self.store.create_database(Database(next(self.names)))

    def take(self) -> EventId:
        self.capture.take(self.source.log.current())
        return self.capture.last()

    def lose(self, *ids: EventId) -> None:
        """Rows that somebody deletes."""
        log = self.store.__dict__[LOG]
        log[:] = [event for event in log if event.event_id not in ids]

    def repeat(self, event_id: EventId, by: str = "d_other") -> None:
        """A second event with that id."""
        log = self.store.__dict__[LOG]
        [first] = [event for event in log if event.event_id == event_id]
        log.append(replace(first, message=first.message.replace("d0", by)))
        log.sort(key=lambda event: event.event_id)

    def saved(self) -> dict[str, object]:
        names = ("_last_id", "_tables_made", LOG, "_functions", "_tables", "_databases")
        return {name: copy.deepcopy(self.store.__dict__[name]) for name in names}

    def restore(self, saved: dict[str, object]) -> None:
        self.store.__dict__.update(copy.deepcopy(saved))

    @property
    def found(self) -> list[tuple[EventId, EventId, GapCause]]:
        assert self.source.gaps is not None
        return [(gap.after, gap.at, gap.cause) for gap in self.source.gaps.recorded()]

    def gap(self) -> Gap:
        assert self.source.gaps is not None
        return self.source.gaps.recorded()[-1]

    def goes_on(self) -> bool:
        """Whether capture takes what is written next."""
        self.write(2)
        return self.take() == self.source.log.current() and self.continuity.mend() is None


@pytest.fixture
def site() -> Site:
    made = Site()
    made.write(10)
    made.take()
    return made


def test_what_was_purged_before_it_was_read_is_a_gap_behind_which_the_journal_begins_anew(site: Site) -> None:
    site.write(10)
    site.store.purge(15)
    with pytest.raises(Interrupted, match=r"events 11 to 15 are missing"):
        site.take()
    site.continuity.mend("suspected")
    assert site.found == [(10, 20, GapCause.PURGED)]
    assert (site.source.journal.oldest(), site.source.journal.last()) == (None, 20)
    assert site.gap().span == (11, 20)
    assert site.goes_on()


def test_a_log_that_was_purged_to_its_end_has_a_gap_and_one_of_an_idle_source_has_none(site: Site) -> None:
    site.store.purge(10)
    site.start()
    assert (site.continuity.mend(), site.found) == (None, [])
    assert site.goes_on()
    site.write(5)
    site.store.purge(17)
    site.start()
    site.continuity.mend()
    assert site.found == [(12, 17, GapCause.PURGED)]


def test_rows_deleted_from_the_middle_are_found_when_they_are_read(site: Site) -> None:
    site.write(10)
    site.lose(14, 15)
    site.start()
    assert site.continuity.mend() is None
    with pytest.raises(Interrupted, match="After event 13 the log goes on with event 16"):
        site.take()
    assert site.capture.last() == 10
    site.continuity.mend("suspected")
    assert site.found == [(10, 20, GapCause.PURGED)]
    assert site.goes_on()


def test_rows_deleted_behind_the_newest_id_are_missing_too(site: Site) -> None:
    site.write(3)
    site.lose(13)
    with pytest.raises(Interrupted, match="The log ends at event 12, not 13"):
        site.take()
    site.continuity.mend("suspected")
    assert site.found == [(10, 13, GapCause.PURGED)]


def test_a_restored_metastore_is_a_gap_although_no_id_is_missing(site: Site) -> None:
    saved = site.saved()
    site.write(10)
    site.take()
    site.restore(saved)
    with pytest.raises(Interrupted, match="it ends at event 10, but event 20 was read already"):
        site.continuity.require()
    site.continuity.mend()
    assert site.found == [(20, 10, GapCause.WENT_BACK)]
    assert (site.source.journal.last(), site.source.evidence.considered()) == (10, 10)
    assert site.goes_on()


@pytest.mark.parametrize("grown", [10, 11, 15])
def test_a_restored_metastore_is_found_when_its_log_has_grown_past_what_was_read(site: Site, grown: int) -> None:
    saved = site.saved()
    site.write(10)
    site.take()
    site.restore(saved)
    site.write(grown)
    site.world.clock.now += 2_000_000_000
    with pytest.raises(Interrupted, match=r"event 1[3-9] is not the one that was read before"):
        site.take()
    site.start()
    site.continuity.mend()
    assert site.found == [(20, 10 + grown, GapCause.WENT_BACK)]
    assert site.goes_on()


@pytest.mark.parametrize("grown", [3, 5, 9])
def test_a_metastore_that_is_restored_again_is_found_behind_a_gap_that_left_no_event(site: Site, grown: int) -> None:
    saved = site.saved()
    site.write(5)
    site.store.purge(12)
    site.continuity.mend()
    assert (site.found, site.source.journal.oldest()) == ([(10, 15, GapCause.PURGED)], None)
    site.restore(saved)
    site.write(grown)
    site.continuity.mend()
    assert site.found[1:] == [(15, 10 + grown, GapCause.WENT_BACK)]


@pytest.mark.parametrize("weak", [False, True])
def test_an_id_that_comes_twice_is_a_gap_also_where_the_read_ends_with_it(weak: bool) -> None:
    site = Site(weak=weak)
    site.write(3)
    site.repeat(3)
    with pytest.raises(Interrupted, match="After event 3 the log goes on with event 3"):
        site.take()
    assert site.source.journal.last() is None
    site.continuity.mend("suspected")
    assert site.found == [(0, 3, GapCause.REPEATED)]
    assert site.goes_on()


def test_a_second_event_of_an_id_that_comes_late_is_found(site: Site) -> None:
    site.repeat(9)
    site.continuity.mend()
    assert site.found == [(10, 10, GapCause.REPEATED)]
    assert site.continuity.mend() is None
    site.repeat(10)
    site.continuity.mend()
    assert site.found[1:] == [(10, 10, GapCause.REPEATED)]
    assert site.goes_on()


def test_a_copy_of_an_event_is_taken_for_another_one() -> None:
    """Two inserts into a table in one second may say the same."""
    site = Site()
    site.write(2)
    site.repeat(1, "d0")
    site.continuity.mend("suspected")
    assert site.found == [(0, 2, GapCause.REPEATED)]


def test_with_gap_stop_capture_is_refused_and_nothing_is_lost() -> None:
    site = Site(stop=True)
    site.write(5)
    site.take()
    site.write(5)
    site.store.purge(7)
    with pytest.raises(Refused, match=r"events 6 to 7 are missing.*when_needed") as refused:
        site.continuity.mend()
    assert "\n" not in str(refused.value)
    assert (site.found, site.source.journal.last(), site.source.journal.oldest()) == ([], 5, 1)


def test_what_is_not_so_when_it_is_read_again_is_no_gap(site: Site) -> None:
    log = site.store.__dict__[LOG]
    site.write(2)
    gone, site.store.__dict__[LOG] = log, [event for event in log if event.event_id != 11]
    site.world.clock.asleep = lambda: site.store.__dict__.update({LOG: gone})
    assert site.continuity.mend() is None
    with pytest.raises(Unavailable, match="it does when it is read again"):
        site.continuity.mend("After event 10 the log goes on with event 12")
    assert site.found == []
    assert site.goes_on()


def test_events_that_the_journal_lost_at_its_end_are_read_again_and_no_gap(site: Site) -> None:
    site.write(4)
    [new] = site.continuity.read(14)
    site.source.journal.restart(0)
    [old] = site.continuity.read(5)
    site.source.journal.append(old)
    assert site.capture.append(new) == 4
    assert [entry.event_id for entry in site.source.journal.entries(Span(0, 14))] == list(range(1, 15))
    assert (site.found, site.goes_on()) == ([], True)


def test_listings_and_pins_of_ids_that_come_again_are_gone(site: Site) -> None:
    pins = site.source.pins
    assert pins is not None
    saved = site.saved()
    site.write(2)
    site.take()
    site.world.storage.write("file:/t/f", b"1")
    listing = site.world.storage.list(["file:/t"])["file:/t"]
    site.source.evidence.append([Evidence(12, listing)], 12)
    assert pins.keep(12, listing.location, listing)
    site.restore(saved)
    site.continuity.mend()
    assert (site.source.evidence.evidence([12]), list(pins.events())) == ({}, [])


POINTS = [
    f"{port}.{method}.{side}"
    for port, method in (
        ("gaps", "add"),
        ("journal", "restart"),
        ("evidence", "restart"),
        ("pins", "release"),
        ("gaps", "settle"),
    )
    for side in ("before", "after")
]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_death_at_any_point_is_healed_by_the_next_start(site: Site, point: str, back: bool) -> None:
    saved = site.saved()
    site.write(5)
    site.take()
    site.source.evidence.append([Evidence(12, Listing("file:/t", ()))], 15)
    site.source.journal.forget(12)
    if back:
        site.restore(saved)
    else:
        site.write(5)
        site.store.purge(18)

    def hit(name: str) -> None:
        if name == point:
            raise Died

    whole, port = site.source, point.partition(".")[0]
    site.source = replace(whole, **{port: getattr(FailpointGuard(hit), port)(getattr(whole, port))})
    site.start()
    with pytest.raises(Died):
        site.continuity.mend()
    assert point.split(".")[1] in EFFECTS[port]
    site.source = whole
    if site.source.gaps is not None and site.source.gaps.settled() < len(site.found):
        with pytest.raises(Unavailable, match="not begun anew"):
            begin_of(site.source.gaps, 0)
    site.start()
    site.continuity.mend()
    assert len(site.found) == 1
    assert begin_of(site.source.gaps, 0) == site.gap().at == site.source.journal.last()
    assert site.source.journal.oldest() is None
    assert (site.source.evidence.considered(), site.source.evidence.evidence([12])) == (site.gap().at, {})
    assert site.goes_on()


def test_a_journal_says_nothing_to_a_reader_who_does_not_know_the_newest_gap(site: Site) -> None:
    reader = fenced(site.source).journal
    assert (reader.last(), len(reader.entries(Span(0, 10)))) == (10, 10)
    site.write(1)
    site.store.purge(11)
    site.continuity.mend()
    for ask in (reader.last, reader.oldest, lambda: reader.entries(Span(0, 10)), lambda: reader.events([3])):
        with pytest.raises(Unavailable, match="A gap in the log was found"):
            ask()
    assert fenced(site.source).journal.last() == 11


def test_an_idle_log_is_looked_at(site: Site) -> None:
    noticed: list[str] = []
    failed: list[BaseException] = []
    vigil = BackgroundThread(
        "vigil", lambda stopping: watch(site.continuity, noticed.append, stopping, 0.001), failed.append
    )
    site.repeat(9)
    vigil.begin()
    vigil.thread.join(10)
    assert (noticed, failed) == (["The log gave event id 9 to two events"], [])
    vigil.stop()


def test_what_goes_on_beside_capture_ends_when_it_is_told_to() -> None:
    ended: list[str] = []
    failed: list[BaseException] = []

    def work(stopping: threading.Event) -> None:
        assert stopping.wait(10)
        ended.append("work")

    beside = BackgroundThread("work", work, failed.append)
    beside.stop()
    beside = BackgroundThread("work", work, failed.append)
    beside.begin()
    beside.stop()
    assert (ended, failed) == (["work"], [])


def test_what_goes_on_beside_capture_hands_on_what_nobody_expected() -> None:
    failed: list[BaseException] = []
    defect = KeyError("d1.t")

    def work(_: threading.Event) -> None:
        raise defect

    beside = BackgroundThread("work", work, failed.append)
    beside.begin()
    beside.stop()
    assert failed == [defect]


class Rows:
    """A log with these ids."""

    def __init__(self, *ids: EventId) -> None:
        self.rows = [Event(event_id, 0, "T", "", "", "", "", str(place)) for place, event_id in enumerate(ids)]

    def current(self) -> EventId:
        return self.rows[-1].event_id

    def read(self, after: EventId, limit: int) -> list[Event]:
        return [event for event in self.rows if event.event_id > after][:limit]


def spans(top: EventId) -> Iterator[tuple[EventId, EventId]]:
    return ((after, upto) for after in range(top) for upto in range(after, top + 1))


@pytest.mark.parametrize(
    "ids", [(1, 2, 3, 4), (1, 1, 2, 3), (1, 2, 2, 2, 2, 3), (2, 4, 4, 5), (4, 4, 4), (1, 2, 3, 3)], ids=str
)
@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_no_page_ends_between_events_that_share_an_id(ids: tuple[EventId, ...], page: int) -> None:
    log = Rows(*ids)
    for after, upto in spans(max(ids)):
        found = list(events_after(log, after, upto, page))
        assert found == [event for event in log.rows if after < event.event_id <= upto]


def test_check_names_what_is_weak_about_the_log_with_its_price_and_cure(site: Site) -> None:
    def said() -> list[str]:
        current = site.source.log.current()
        return [" ".join(parts) for parts in weaknesses(newest_rows(site.source.log, current), current)]

    assert said() == []
    site.store.purge(2)
    assert said() == []
    site.repeat(7)
    site.lose(4, 5, 10)
    log = site.store.__dict__[LOG]
    log[0] = replace(log[0], event_type="CREATE_TABLE", message="{}")
    twice, lacks, bare = said()
    assert "event id 7 to two events" in twice
    assert "lacks events 4 to 5, and 1 others" in lacks
    assert "1 of the log's newest 6 events" in bare
    assert ["law 1" in text for text in (twice, lacks, bare)] == [True, True, False]
    assert "(law 2)" in bare
    assert all("Let " in text for text in (twice, lacks, bare))
