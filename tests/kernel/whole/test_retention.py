"""What capture recorded is kept as long as it is young, and no longer, whoever still needs it."""

from __future__ import annotations

import threading
from dataclasses import replace

from calque.engine.sweep.retention import DeletedRows, Limits, forget_journal, is_left_behind, keep, let_go
from calque.errors import Unavailable
from calque.model.files import Listing
from calque.model.journal import TableShape
from calque.model.names import TableName
from calque.model.records import ScanProgress
from calque.model.scan import Scan
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from support.memory.ledger import MemoryLedger
from support.worlds.gapped import POLICY, add, create, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World

DAY = 86_400.0
HOUR = 3600 * 10**9
WIDE = Limits(10**12, 10**12)


def forget(world: World, retention: float = DAY) -> DeletedRows:
    return forget_journal(world.source_side, world.clock.now, retention)


def test_the_journal_has_what_is_younger_than_its_retention_and_nothing_older_though_a_target_needs_it() -> None:
    world = world_of()
    create(world, "early")
    world.clock.now += 20 * HOUR
    create(world, "late")
    add(world, "t0", "new")
    world.capture_all()
    last = world.capture.last()
    assert forget(world) == DeletedRows()
    world.clock.now += 10 * HOUR
    found = forget(world)
    assert (found.upto, found.events, world.journal.oldest()) == (last - 2, 1, last - 1)
    assert forget(world) == DeletedRows()
    world.clock.now += 20 * HOUR
    assert forget(world).upto == last
    assert (world.journal.oldest(), world.journal.last()) == (None, last)
    world.settle()
    assert differences(world) == []
    assert world.ledger.epochs()[-1].kind in ("repair", "window")
    assert "repair" in {epoch.kind for epoch in world.ledger.epochs()}


def test_pins_and_scans_do_not_wait_for_a_target_that_starts_again_anyway() -> None:
    world = world_of()
    pinned = World(1, policy=POLICY, pins=True)
    pins, scans = pinned.source_side.pins, MemoryScans()
    assert pins is not None
    pinned.storage.write("file:/t/f", b"1")
    listing = pinned.storage.list(["file:/t"])["file:/t"]
    source = replace(world.source_side, pins=pins, scans=scans)
    fast = MemoryLedger()
    add(world, "t0", "new")
    world.capture_all()
    last = world.capture.last()
    pins.keep(last, listing.location, listing)
    scans.append([Scan(last, 0, TableName("d1", "t0"), TableShape.PARTITIONED, {"": Listing("file:/t", ())})])
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    fast.publish(replace(epoch, epoch=1, event_id=last), [], [])
    fast.put_records([ScanProgress(1)])
    ledgers = [world.ledger, fast]
    let_go(source, ledgers, DAY, WIDE)
    assert (list(pins.events()), len(scans.entries(0))) == ([last], 1)
    world.clock.now += 30 * HOUR
    let_go(source, ledgers, DAY, WIDE)
    assert [is_left_behind(world.journal, ledger) for ledger in ledgers] == [True, False]
    assert (list(pins.events()), len(scans.entries(0))) == ([], 0)


def test_a_target_that_has_not_begun_is_not_behind() -> None:
    world = world_of()
    world.forget()
    assert not is_left_behind(world.journal, MemoryLedger())
    assert not is_left_behind(world.journal, world.ledger)


class Rounds(threading.Event):
    """Is set after so many rounds; time passes with each."""

    def __init__(self, world: World, rounds: int) -> None:
        super().__init__()
        self.world, self.rounds = world, rounds

    def wait(self, timeout: float | None = None) -> bool:
        self.world.clock.now += int((timeout or 0.0) * 1e9)
        self.rounds -= 1
        return self.rounds < 0


def test_beside_capture_the_journal_is_looked_at_after_a_while_and_trouble_ends_nothing() -> None:
    world = world_of()
    add(world, "t0", "new")
    world.capture_all()
    world.clock.now += 30 * HOUR
    keep(world.source_side, [world.ledger], DAY, WIDE, Rounds(world, 100))
    assert world.journal.oldest() == world.capture.last()
    failing = [Unavailable("The journal can't be written", "", "")]

    class Failing:
        def forget(self, _upto: int) -> int:
            if failing:
                raise failing.pop()
            return 0

    source = replace(world.source_side, evidence=Failing())  # type: ignore[arg-type]
    keep(source, [world.ledger], DAY, WIDE, Rounds(world, 122))
    assert (world.journal.oldest(), failing) == (None, [])
