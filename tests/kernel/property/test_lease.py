"""Writers of one target that are stopped, delayed and killed between any two calls: never do two of them write."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.engine.lease.keeper import Lease, LeaseHeldByOther
from calque.errors import Broken, Unavailable
from calque.model.names import OURS
from support.faults.leases import SECONDS, leases_of, writer
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, MemoryMetastore, ServerHabits
from support.runs.seeds import history_seeds

SEEDS = history_seeds(12, most=300)
RATES = (1.0, 1.05, 0.95)
"""How fast the clocks of hosts go."""
PAUSES = (0.0, 0.0, 0.0, 0.0, 1.0, 5.0, 9.0, 9.0, 14.0, 19.0, 32.0)
ACTIONS = ("renew", "renew", "renew", "renew", "wait", "release", "die")
IN_FLIGHT = SECONDS / 5
"""A call that takes no longer has ended when the next writer may begin its first, whatever the clocks."""

Step = tuple[float, int, int, str]
"""After how many seconds which host goes on, over how many calls, and what it does where it has the choice."""


class Over(BaseException):
    """The play has ended."""


@dataclass
class Play:
    """A target's metastore and several hosts, one of which moves at a time."""

    habits: ServerHabits = HIVE_3
    now: float = 0.0
    writers: list[str] = field(default_factory=list)
    """Who might begin calls, one after the other."""
    last: float = 0.0
    """Until when the last of them might."""
    released: set[str] = field(default_factory=set)
    started: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryMetastore(self.habits, "file:/warehouse")
        self.hosts = [Host(self, rate) for rate in RATES]

    def run(self, steps: Sequence[Step]) -> None:
        try:
            for seconds, index, calls, action in steps:
                self.now += seconds
                for _ in range(calls):
                    self.hosts[index].go_on(action)
                    self.look()
        finally:
            for host in self.hosts:
                host.end()

    def look(self) -> None:
        """At every moment one writer at most may begin a call; none may after another; and what it began has ended."""
        may = [host for host in self.hosts if host.may_write()]
        assert len(may) < 2, f"{[host.name for host in may]} write at {self.now}"
        for host in may:
            if self.writers[-1:] != [host.name]:
                assert host.name not in self.writers, f"{host.name} writes again after {self.writers[-1]}"
                if self.writers and self.writers[-1] not in self.released:
                    assert self.now - self.last >= IN_FLIGHT, f"{host.name} comes {self.now - self.last} after another"
                self.writers.append(host.name)
            assert host.lease is not None
            self.last = host.lease.until / host.rate


class Host:
    """Starts one writer after the other."""

    def __init__(self, play: Play, rate: float) -> None:
        self.play, self.rate, self.action, self.name = play, rate, "", ""
        self.lease: Lease | None = None
        self.turn, self.back = threading.Semaphore(0), threading.Semaphore(0)
        self.over = False
        self.catalog = MemoryCatalog(play.store, before=self.wait, after=self.wait)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.back.acquire()

    # By the play

    def go_on(self, action: str) -> None:
        self.action = action
        self.turn.release()
        self.back.acquire()

    def may_write(self) -> bool:
        if self.lease is None:
            return False
        try:
            self.lease.permit()
        except (Unavailable, Broken):
            return False
        return True

    def end(self) -> None:
        self.over = True
        self.turn.release()
        self.thread.join()

    # By the host's own thread

    def wait(self, _: str = "") -> None:
        self.back.release()
        self.turn.acquire()
        if self.over:
            raise Over

    def clock(self) -> float:
        return self.play.now * self.rate

    def run(self) -> None:
        try:
            while True:
                self.wait()
                self.live()
        except Over:
            return

    def live(self) -> None:
        """A process, from its start to its end."""
        self.play.started += 1
        self.name = f"w{self.play.started}"
        self.lease = Lease(leases_of(self.catalog), "dr", SECONDS, self.clock)
        try:
            while self.lease.attempt(writer(self.name)) is not None:
                self.wait()
            self.write(self.lease)
        except (LeaseHeldByOther, Broken):
            return
        finally:
            self.lease = None

    def write(self, lease: Lease) -> None:
        while True:
            self.wait()
            match self.action:
                case "renew":
                    lease.renew()
                case "release":
                    self.play.released.add(self.name)
                    lease.release()
                    return
                case "die":
                    return


STEPS = st.lists(
    st.tuples(
        st.sampled_from(PAUSES),
        st.integers(0, len(RATES) - 1),
        st.sampled_from((1, 2, 5, 30)),
        st.sampled_from(ACTIONS),
    ),
    max_size=100,
)


@given(steps=STEPS, habits=st.sampled_from([HIVE_3, HIVE_4]))
def test_two_writers_never_write_by_turns(steps: Sequence[Step], habits: ServerHabits) -> None:
    Play(habits).run(steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_nor_do_they_in_long_stories_of_many_takeovers(seed: int) -> None:
    rng = random.Random(seed)
    play = Play()
    play.run(
        [
            (rng.choice(PAUSES), rng.randrange(len(RATES)), rng.choice((1, 1, 1, 2, 3, 5, 10, 30)), rng.choice(ACTIONS))
            for _ in range(1000)
        ]
    )
    writers = {*play.writers}
    assert len(writers - play.released) > 0, "writers that were replaced"
    assert len(writers & play.released) > 0, "writers that ended"
    assert len(play.store.tables(OURS)) < 10
