"""The journal into one target: its replica is opened, followed, exchanged for another and closed here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from calque.control.pause_rules import chosen_by, rules_of, stamp_of
from calque.control.status_records import position_of
from calque.engine.apply import database_looks
from calque.engine.capture.gap_guard import fenced
from calque.engine.replica.replica import Replica
from calque.engine.sides.journal_reads import newest
from calque.engine.sides.sides import ending_source
from calque.errors import Broken, CalqueError, StateUnusable
from calque.model.names import EventId
from calque.serve.heartbeat import PATIENCE_SECONDS
from calque.streams.background import BackgroundThread, again_and_again
from calque.streams.current_replica import CurrentReplica
from calque.streams.followers import Follower
from calque.streams.lease_holder import LeaseHolder
from calque.streams.shared import RunForParts, SourceStream
from calque.streams.supervisor import Attempts, StatusRecord, Supervisor, Work, nothing
from calque.streams.target_report import TargetReport
from calque.streams.window_loop import WindowLoop

if TYPE_CHECKING:
    from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)
LANDING_SECONDS = 0.5
"""Tables that land are recorded, and let join the windows, together: single ones would cost a commit each."""
LOOK_SECONDS = 0.5
"""Between two looks for what rings no bell: operators' requests, gaps, files that were waited for."""
ATTEMPTS = Attempts(first=2.0, longest=60.0, never=(Broken, StateUnusable))
"""What was refused is tried again: somebody may have mended it. What is damaged in the state folder is not: it is put
right while nothing runs."""


class TargetPart:
    """One target's replica, fed by the journal. Nobody else writes to the target until all its calls have ended; what
    goes wrong here ends no other part."""

    def __init__(self, run: RunForParts, stream: SourceStream, name: str, attempts: Attempts = ATTEMPTS) -> None:
        self.run, self.stream, self.name = run, stream, name
        self.current = CurrentReplica(run, stream, name)
        self.metastore = self.current.target.impatient_server(PATIENCE_SECONDS)
        work = Work(
            once=self.once,
            close=self.close,
            end=self.end,
            failed=self.failed,
            stop=self.stop,
            cut=self.cut,
            problem=self.current.problem,
            ask=self.ask,
            status=StatusRecord(lambda: self.report.write_status(), lambda: self.report.remove_status()),
        )
        self.supervisor = Supervisor(run, name, work, attempts, {"source": stream.name, "target": name})
        self.holder = LeaseHolder(self.current.target, self.supervisor)
        self.windows = WindowLoop(self.current, self.supervisor, self.holder)
        self.report = TargetReport(self.current, self.supervisor)
        self.following: list[BackgroundThread] = []
        self.looking: BackgroundThread | None = None
        self.between: Callable[[], None] = nothing
        """Called before the replica of the next policy opens."""

    def exchange(self, target: TargetWiring, between: Callable[[], None]) -> None:
        """Go on under another policy of the same target without beginning anew: before the next window. `between` is
        called when nothing writes under the old policy any more."""
        target.share_lease(self.current.target)
        self.between = between
        self.current.next_target = target
        self.current.bell.ring()

    def ask(self) -> EventId:
        self.metastore.ping()
        return 0

    def stop(self) -> None:
        if self.current.replica is not None:
            self.current.replica.player.stopping.set()
        self.current.bell.ring()

    def cut(self) -> None:
        self.current.target.side().stopping.set()

    def failed(self, error: CalqueError) -> None:
        LOG.warning("%s failed: %s", self.name, error)

    def once(self) -> None:
        """Replicate; with each gap that is found, begin anew behind it."""
        current, bells = self.current, self.stream.bells
        if current.bell not in bells:
            bells.append(current.bell)
        self.holder.take()
        self.holder.settle_identity()
        while not self.supervisor.stopped():
            self.close()
            current.gap = newest(current.source.gaps())
            try:
                self.replicate(self.stream.begin.event())
            except Exception as error:
                # Behind a gap a window may have met two histories in one journal: no error says anything then.
                if not current.is_behind():
                    raise
                LOG.info("%s begins anew behind a gap: %s", self.name, error)
            if not current.is_behind():
                return

    def replicate(self, after: EventId) -> None:
        """Follow the journal, which begins after that event, until the part is to end or a gap is found."""
        current = self.current
        current.after = after
        self.open_replica()
        self.begin_followers()
        self.look_at_databases()
        heard, is_due = current.bell.rings, True
        while not self.supervisor.stopped() and not current.is_behind():
            if is_due:
                current.is_woken.clear()
                self.supervisor.retry(self.reach)
            rings = current.bell.wait(heard, LOOK_SECONDS)
            heard, is_due = rings, self.windows.is_due(has_rung=rings > heard)

    def reach(self) -> None:
        """Windows as far as the journal goes. While the target does not answer they are tried again."""
        replica = self.current_replica()
        self.windows.apply_until(replica, max(replica.cursor, replica.source.journal.last() or 0))

    def current_replica(self) -> Replica:
        """The replica, opened anew where the target has another policy now."""
        current, target = self.current, self.current.next_target
        if target is not None:
            current.close()
            self.between()
            current.target = target
            self.open_replica()
            if current.next_target is target:
                current.next_target = None
            LOG.info("%s goes on with other links", self.name)
        assert current.replica is not None
        return current.replica

    def open_replica(self) -> None:
        current, control = self.current, self.current.wiring.control
        side, after = current.target.side(), current.after
        replica = Replica(
            ending_source(fenced(current.target.followed()), side.stopping),
            side,
            lambda: after,
            current.wake,
            spread=current.target.spread(),
            readers=current.source.plug.keys.connections,
            pace=LANDING_SECONDS,
        )
        current.rules = stamp_of(control, self.name)
        replica.pause_rules.takes = chosen_by(rules_of(control, self.name))
        replica.pause_rules.is_target_paused = current.is_paused
        current.replica = replica
        replica.open()
        replica.epochs.passed = position_of(current.wiring, self.name, replica.epoch) or 0

    def begin_followers(self) -> None:
        """Beside the windows, what the configuration wants of it."""
        for follower in self.run.followers:
            work = follower.work(self.current.wiring, self.current.target)
            if work is not None:
                name = f"{follower.name} at {self.name}"
                self.following.append(BackgroundThread(name, work, partial(self.follower_failed, follower)))
                self.following[-1].begin()

    def follower_failed(self, follower: Follower, defect: BaseException) -> None:
        LOG.error("%s %s", self.name, follower.ended, exc_info=defect)

    def look_at_databases(self) -> None:
        """Beside the windows, for changes that the source's log has no event of."""

        def look() -> None:
            if (replica := self.current.replica) is not None and replica.opened:
                replica.looks.once(replica.databases, replica.cursor)

        what = f"databases at {self.name}"
        work = again_and_again(look, what, database_looks.SECONDS, database_looks.SHARE)
        self.looking = BackgroundThread(what, work, self.looks_failed)
        self.looking.begin()

    def looks_failed(self, defect: BaseException) -> None:
        LOG.error("%s looks at no databases any more", self.name, exc_info=defect)

    def close(self) -> None:
        while self.following:
            self.following.pop().stop()
        if self.current.replica is not None and self.supervisor.stopped() and self.supervisor.state != "failed":
            with suppress(CalqueError):
                self.current.replica.rest()
        self.current.close()
        # A look waits for no source any more now.
        if self.looking is not None:
            self.looking.stop()
            self.looking = None

    def end(self) -> None:
        if self.current.bell in self.stream.bells:
            self.stream.bells.remove(self.current.bell)
        self.holder.release()
