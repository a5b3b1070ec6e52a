"""The part of a process that replicates one journal to one target: it opens, feeds, exchanges and closes a replica:
`TargetReplication`."""

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
from calque.engine.sides.sides import stoppable_source
from calque.errors import Broken, CalqueError, StateUnusable
from calque.model.names import EventId
from calque.serve.liveness_probe import PATIENCE_SECONDS
from calque.streams.background import BackgroundThread, again_and_again
from calque.streams.current_replica import CurrentReplica
from calque.streams.followers import Follower
from calque.streams.lease_holder import LeaseHolder
from calque.streams.shared import ProcessContext, SourceStream
from calque.streams.supervisor import AttemptSchedule, StatusRecord, SupervisedWork, Supervisor, nothing
from calque.streams.target_report import TargetReport
from calque.streams.window_loop import WindowLoop

if TYPE_CHECKING:
    from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)
LANDING_SECONDS = 0.5
"""Seconds for which tables that were read exactly are collected, because recording each one alone would cost a commit
of the ledger."""
LOOK_SECONDS = 0.5
"""Seconds between two looks for what sends no signal: operators' requests, gaps, and files that were waited for."""
ATTEMPTS = AttemptSchedule(first=2.0, longest=60.0, never=(Broken, StateUnusable))
"""The attempts of a target's part. What was refused is tried again, because an operator may have mended it meanwhile. A
damaged state folder is not, because it is mended while nothing runs."""


class TargetReplication:
    """The part that keeps one target equal to its source by the journal. No other process writes to the target before
    all calls of this part have ended. An error here ends no other part."""

    def __init__(
        self, run: ProcessContext, stream: SourceStream, name: str, attempts: AttemptSchedule = ATTEMPTS
    ) -> None:
        self.run, self.stream, self.name = run, stream, name
        self.current = CurrentReplica(run, stream, name)
        self.metastore = self.current.target.impatient_server(PATIENCE_SECONDS)
        work = SupervisedWork(
            run_attempt=self.run_attempt,
            close=self.close,
            end=self.end,
            failed=self.failed,
            stop=self.stop,
            cancel_calls=self.cancel_calls,
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
        """The function that is called before the replica of the next policy opens."""

    def exchange(self, target: TargetWiring, between: Callable[[], None]) -> None:
        """Go on under another policy of the same target with the next window, without beginning anew. `between` is
        called when nothing is written under the old policy any more."""
        target.share_lease(self.current.target)
        self.between = between
        self.current.next_target = target
        self.current.signal.send()

    def ask(self) -> EventId:
        self.metastore.ping()
        return 0

    def stop(self) -> None:
        if self.current.replica is not None:
            self.current.replica.player.stopping.set()
        self.current.signal.send()

    def cancel_calls(self) -> None:
        self.current.target.side().stopping.set()

    def failed(self, error: CalqueError) -> None:
        LOG.warning("%s failed: %s", self.name, error)

    def run_attempt(self) -> None:
        """Take the lease, and replicate until the part is to stop. Behind each gap that is found the replica is opened
        anew."""
        current, signals = self.current, self.stream.signals
        if current.signal not in signals:
            signals.append(current.signal)
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
        """Follow the journal, which begins after event `after`, until the part is to end or a gap is found."""
        current = self.current
        current.after = after
        self.open_replica()
        self.begin_followers()
        self.look_at_databases()
        seen, is_due = current.signal.sent, True
        while not self.supervisor.stopped() and not current.is_behind():
            if is_due:
                current.is_woken.clear()
                self.supervisor.retry(self.apply_journal)
            sent = current.signal.wait(seen, LOOK_SECONDS)
            seen, is_due = sent, self.windows.is_due(has_signal=sent > seen)

    def apply_journal(self) -> None:
        """Apply windows as far as the journal goes."""
        replica = self.current_replica()
        self.windows.apply_until(replica, max(replica.cursor, replica.source.journal.last() or 0))

    def current_replica(self) -> Replica:
        """Return the open replica. Where the target has another policy now, the old replica is closed, and one with the
        new policy opened."""
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
        current.target.try_native()
        side, after = current.target.side(), current.after
        replica = Replica(
            stoppable_source(fenced(current.target.followed()), side.stopping),
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
        """Start the threads that plugins run beside the target's windows, as far as the configuration wants them. A
        defect ends such a thread alone."""
        for follower in self.run.followers:
            work = follower.work(self.current.wiring, self.current.target)
            if work is not None:
                name = f"{follower.name} at {self.name}"
                self.following.append(BackgroundThread(name, work, partial(self.follower_failed, follower)))
                self.following[-1].begin()

    def follower_failed(self, follower: Follower, defect: BaseException) -> None:
        LOG.error("%s %s", self.name, follower.ended, exc_info=defect)

    def look_at_databases(self) -> None:
        """Start the thread that compares databases with the source, for changes that its log has no event of."""

        def look() -> None:
            if (replica := self.current.replica) is not None and replica.opened:
                replica.looks.run_once(replica.databases, replica.cursor)

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
        if self.current.signal in self.stream.signals:
            self.stream.signals.remove(self.current.signal)
        self.holder.release()
