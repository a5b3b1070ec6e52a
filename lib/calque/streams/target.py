"""The journal into one target: who may write, which window is next, what operators asked for, what is told."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from calque.control.identity import RunIdentity
from calque.control.pause_rules import chosen_by, is_paused, rules_of, stamp_of
from calque.control.requests import open_requests, remove_request
from calque.control.status_records import HELD_BACK, copying_of, position_of, reading_of, tell
from calque.control.window_size import WindowSize
from calque.core.records.gap_states import dealt_with
from calque.core.records.lifecycle import UNREAD, State
from calque.core.records.standing import Standing, standing
from calque.engine.apply import database_looks
from calque.engine.capture.gap_guard import fenced
from calque.engine.lease.keeper import Lease
from calque.engine.replica.replica import Replica
from calque.engine.sides.journal_reads import newest
from calque.engine.sides.sides import ending_source
from calque.errors import Broken, CalqueError, Refused, StateUnusable
from calque.logs.fields import about, log_fields, window_id
from calque.model.lease import Writer
from calque.model.ledger import DatabaseRow, FunctionRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.state_places import TargetPlaces
from calque.ports.records import MISSING, Json, Stamp
from calque.serve.heartbeat import PATIENCE_SECONDS
from calque.serve.metrics import TargetLook
from calque.serve.table_lag import TableLag, lagging_of, table_lags
from calque.streams.background import BackgroundThread, again_and_again
from calque.streams.followers import Follower
from calque.streams.part import Part
from calque.streams.shared import Bell, RunForParts, SourceStream

if TYPE_CHECKING:
    from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)
LANDING_SECONDS = 0.5
"""Tables that land are recorded, and let join the windows, together: single ones would cost a commit each."""
LOOK_SECONDS = 0.5
"""Between two looks for what rings no bell: operators' requests, gaps, files that were waited for."""
AGAIN_SECONDS, LONGEST_SECONDS = 2.0, 60.0
"""After which a target that was refused is tried again, while others go on: first, and in the end."""


class IdentityOfPart(Protocol):
    """Who is who, for one target of a process."""

    def begin(self) -> None:
        """Before the lease is taken. Raises `Refused` where another metastore answers than the ledger remembers."""

    def settle(self, lease: Lease) -> str:
        """Once it is taken: what answers is written down. The ledger's id."""


class TargetPart(Part):
    """One target's replica, fed by the journal."""

    def __init__(self, run: RunForParts, stream: SourceStream, name: str) -> None:
        self.places = TargetPlaces(name)
        super().__init__(run, stream, name, self.places.role, target=name)
        self.target = self.wiring.target(name)
        self.replica: Replica | None = None
        self.lease = self.target.lease()
        self.writer: Writer | None = None
        self.identity: IdentityOfPart = RunIdentity(self.target)
        self.ledger_id = ""
        """That of the ledger, by which claims name it; empty before the lease was taken."""
        self.following: list[BackgroundThread] = []
        self.looking: BackgroundThread | None = None
        self.bell = Bell()
        self.is_woken = threading.Event()
        """Something beside the windows wants one."""
        self.gap = 0
        """The newest gap that the replica knows."""
        self.mended_gap = 0
        self.window_size = WindowSize.of(self.wiring, name)
        self.failure: CalqueError | None = None
        """Why it gets nowhere, until it does again."""
        self.over = False
        """This attempt has failed, and begins no window any more."""
        self.again = AGAIN_SECONDS
        self.refused: str | None = None
        """Why what was asked for last is not done."""
        self.is_held = self.was_paused = False
        """As the status has it, and as the windows met it last."""
        self.window_id: str | None = None
        """Of the newest window."""
        record = self.wiring.control.read(self.places.status_record) or {}
        self.last_reported = {key: record[key] for key in ("position", "epoch") if key in record}
        self.rules: Stamp = MISSING
        """Of the record of held back tables that the replica goes by."""
        self.metastore = self.target.impatient_server(PATIENCE_SECONDS)
        self.after: EventId = 0
        """The event after which the journal begins, behind the gap that the replica knows."""
        self.next_target: TargetWiring | None = None
        """The same target under a policy with other links, which the next window is of."""
        self.between: Callable[[], None] = nothing

    def exchange(self, target: TargetWiring, between: Callable[[], None]) -> None:
        """Go on under another policy of the same target without beginning anew: before the next window. `between` is
        called when nothing writes under the old policy any more."""
        target.share_lease(self.target)
        self.between = between
        self.next_target = target
        self.bell.ring()

    def ask(self) -> EventId:
        self.metastore.ping()
        return 0

    def stop(self) -> None:
        super().stop()
        if self.replica is not None:
            self.replica.player.stopping.set()
        self.bell.ring()

    def cut(self) -> None:
        super().cut()
        self.target.side().stopping.set()

    def problem(self) -> str | None:
        return super().problem() or self.refused or self.target.side().troubles.newest()

    def once(self) -> None:
        """Replicate; with each gap that is found, begin anew behind it."""
        self.take_lease()
        self.settle_identity()
        while not self.stopped():
            self.close()
            self.gap = newest(self.source.gaps())
            try:
                self.replicate(self.stream.begin.event())
            except Exception as error:
                # Behind a gap a window may have met two histories in one journal: no error says anything then.
                if not self.is_behind():
                    raise
                LOG.info("%s begins anew behind a gap: %s", self.name, error)
            if not self.is_behind():
                return

    def keep_up(self) -> None:
        """Nobody else writes to the target until all calls have ended. What was refused is tried again: somebody may
        have mended it. What is damaged in the state folder is not: it is put right while nothing runs."""
        delay = self.again
        self.stream.bells.append(self.bell)
        try:
            while True:
                super().keep_up()
                if super().stopped() or self.failure is None or isinstance(self.failure, Broken | StateUnusable):
                    return
                self.sleep(delay)
                if super().stopped():
                    return
                delay, self.over = min(2 * delay, LONGEST_SECONDS), False
        finally:
            self.stream.bells.remove(self.bell)
            self.lease.release()

    def stopped(self) -> bool:
        return super().stopped() or self.over

    def failed(self, error: CalqueError) -> None:
        """The others go on."""
        if not self.stopped():
            self.over, self.failure = True, error
            self.state, self.last_error = "failed", str(error)
            LOG.warning("%s failed: %s", self.name, error)

    def goes_on(self, state: str) -> None:
        """It got somewhere."""
        if not self.over:
            self.state, self.last_error, self.failure = state, None, None

    def take_lease(self) -> None:
        """Wait until nobody else has it. Raises `LeaseHeldByOther`; `Refused` where another metastore answers than the
        target's ledger remembers."""
        lease = self.lease
        if lease.keeper is not None:
            return
        self.identity.begin()
        self.writer = self.writer or self.target.writer(self.run.roles.proof(self.places.role))
        while not self.stopped():
            watched = lease.attempt(self.writer)
            if watched is None:
                self.last_error = str(self.failure) if self.failure is not None else None
                lease.keep(self.failed)
                return
            waiting = f"The lease on {self.name} is of {watched.holder.writer}, and taken over if that is dead"
            if self.last_error != waiting:
                LOG.warning("%s: %s, after %g s without a sign of it", self.name, waiting, watched.holder.seconds)
                self.last_error = waiting
            self.sleep(lease.pause())

    def settle_identity(self) -> None:
        """Write down, once with each lease, which metastores and directories the target is of."""
        if not self.ledger_id and self.lease.mine is not None:
            self.ledger_id = self.identity.settle(self.lease)

    def is_behind(self) -> bool:
        """Whether a gap was found that the replica does not know."""
        return newest(self.source.gaps()) != self.gap

    def replicate(self, after: EventId) -> None:
        """Follow the journal, which begins after that event, until the part is to end or a gap is found."""
        self.after = after
        self.open_replica()
        self.begin_followers()
        self.look_at_databases()
        heard, is_due = self.bell.rings, True
        while not self.stopped() and not self.is_behind():
            if is_due:
                self.is_woken.clear()
                self.patiently(self.reach)
            rings = self.bell.wait(heard, LOOK_SECONDS)
            heard, is_due = rings, self.is_due(has_rung=rings > heard)

    def open_replica(self) -> Replica:
        side, after = self.target.side(), self.after
        replica = Replica(
            ending_source(fenced(self.target.followed()), side.stopping),
            side,
            lambda: after,
            self.wake,
            spread=self.target.spread(),
            readers=self.source.plug.keys.connections,
            pace=LANDING_SECONDS,
        )
        self.rules = stamp_of(self.wiring.control, self.name)
        replica.pause_rules.takes = chosen_by(rules_of(self.wiring.control, self.name))
        replica.pause_rules.is_target_paused = self.paused
        self.replica = replica
        replica.open()
        replica.epochs.passed = position_of(self.wiring, self.name, replica.epoch) or 0
        return replica

    def begin_followers(self) -> None:
        """Beside the windows, what the configuration wants of it."""
        for follower in self.run.followers:
            work = follower.work(self.wiring, self.target)
            if work is not None:
                thread = BackgroundThread(
                    f"{follower.name} at {self.name}", work, partial(self.follower_failed, follower)
                )
                self.following.append(thread)
                thread.begin()

    def follower_failed(self, follower: Follower, defect: BaseException) -> None:
        LOG.error("%s %s", self.name, follower.ended, exc_info=defect)

    def look_at_databases(self) -> None:
        """Beside the windows, for changes that the source's log has no event of."""

        def look() -> None:
            if (replica := self.replica) is not None and replica.opened:
                replica.looks.once(replica.databases, replica.cursor)

        what = f"databases at {self.name}"
        work = again_and_again(look, what, database_looks.SECONDS, database_looks.SHARE)
        self.looking = BackgroundThread(what, work, self.looks_failed)
        self.looking.begin()

    def looks_failed(self, defect: BaseException) -> None:
        LOG.error("%s looks at no databases any more", self.name, exc_info=defect)

    def reach(self) -> None:
        """Windows as far as the journal goes; one at least, which may have no events. While the target does not answer
        they are tried again."""
        replica = self.taken_up()
        self.windows(replica, max(replica.cursor, replica.source.journal.last() or 0))

    def taken_up(self) -> Replica:
        """The replica, opened anew where the target has another policy now."""
        target = self.next_target
        if target is not None:
            self.close_replica()
            self.between()
            self.target = target
            self.open_replica()
            if self.next_target is target:
                self.next_target = None
            LOG.info("%s goes on with other links", self.name)
        assert self.replica is not None
        return self.replica

    def wake(self) -> None:
        """Have a window begin, one without events if there are none."""
        self.is_woken.set()
        self.bell.ring()

    def is_due(self, *, has_rung: bool) -> bool:
        """Whether a window has something to do. The source's bell rings for each listing, too, which few windows wait
        for; the journal, which may lie in a store, is asked when it rang alone."""
        was_paused, self.was_paused = self.was_paused, self.paused()
        replica = self.replica
        if replica is None or self.was_paused:
            return False
        is_asked = was_paused or self.is_woken.is_set() or self.next_target is not None or self.is_told()
        return is_asked or has_more(replica) or (has_rung and self.has_events(replica))

    def has_events(self, replica: Replica) -> bool:
        """Whether the journal has more; also where it does not answer, which a window says."""
        try:
            return (replica.source.journal.last() or 0) > replica.cursor
        except CalqueError:
            return True

    def windows(self, replica: Replica, upto: EventId) -> None:
        """Everything to `upto`, which may be far beyond the replica's position: in windows of the size that is due. A
        stop waits for one of them only."""
        while not self.is_behind() and not self.paused():
            self.window(replica, min(upto, replica.cursor + self.window_size.begin()))
            self.window_size.end(is_behind=replica.cursor < upto)
            if replica.cursor >= upto or self.stopped():
                return

    def window(self, replica: Replica, upto: EventId) -> None:
        name = window_id(self.name, replica.epoch.epoch if replica.epoch else None, replica.cursor)
        self.window_id = name
        with log_fields(window=name):
            self.play(replica, upto, name)

    def play(self, replica: Replica, upto: EventId, window_id: str) -> None:
        self.hold_back(replica)
        for request in open_requests(self.wiring, self.name):
            try:
                names = replica.take_request(request)
            except Refused as refused:
                names, self.refused = (), str(refused)
                LOG.warning("%s: %s", self.name, refused)
            else:
                self.refused = None
            if names is None:
                continue
            LOG.info("%s: %s of %d tables", self.name, request.action.value, len(names))
            replica.tables.record(replica.epochs.record_states)
            remove_request(self.wiring, request)
        began = time.monotonic()
        window = replica.window(upto)
        if window is not None:
            self.run.meters.window(self.name, window, time.monotonic() - began, window_id)
        self.goes_on("running" if replica.epoch is not None else "bootstrapping")
        if window is not None and window.epoch is not None:
            self.run.bell(self.name).ring()
            self.lease.shown = self.ledger_id, window.epoch.epoch
            LOG.info(
                "%s: epoch %d at event %d: %d events, %d hops, %d calls, %d files",
                self.name,
                window.epoch.epoch,
                window.epoch.event_id,
                window.epoch.events,
                window.epoch.hops,
                window.epoch.calls,
                window.epoch.files,
                extra=about(epoch=window.epoch.epoch, event=window.epoch.event_id),
            )

    def paused(self) -> bool:
        return is_paused(self.wiring.control, self.name)

    def hold_back(self, replica: Replica) -> None:
        """Take over which tables operators hold back, where that changed."""
        stamp = stamp_of(self.wiring.control, self.name)
        if stamp != self.rules:
            rules = rules_of(self.wiring.control, self.name)
            replica.hold_back(chosen_by(rules))
            self.rules = stamp
            LOG.info("%s: tables: %s", self.name, ", ".join(f"{rule} {text}" for rule, text in rules) or "all go on")

    def standing(self, event_id: EventId) -> Standing:
        """A target that is held back is not waited for."""
        standing = self.standing_unless_paused(event_id)
        return Standing.WITHOUT if standing is Standing.GOING and self.paused() else standing

    def standing_unless_paused(self, event_id: EventId) -> Standing:
        replica = self.replica
        if (
            replica is None
            or not replica.opened
            or not self.stream.looked.is_set()
            or self.is_behind()
            or not self.is_mended()
        ):
            return Standing.GOING
        if not replica.comparing.is_done() or replica.tables.in_state(*UNREAD - {State.PARKED}) or self.is_told():
            return Standing.GOING
        return standing(replica.epochs.position(), replica.tables.recorded(), event_id).standing

    def is_mended(self) -> bool:
        """Whether the target has dealt with every gap: until then its position is of another history."""
        if self.mended_gap < self.gap:
            self.mended_gap = dealt_with(self.target.ledger().records())
        return self.mended_gap >= self.gap

    def reached(self) -> Mapping[str, Json]:
        """The position, and the epoch that it goes on from; what was told last while that is not looked up."""
        replica = self.replica
        if replica is not None and replica.opened and replica.epoch is not None:
            self.last_reported = {"position": replica.epochs.position(), "epoch": replica.epoch.epoch}
        return self.last_reported

    def tell_state(self) -> None:
        replica = self.replica
        states: dict[str, Json] = {}
        if replica is not None:
            busy = replica.tables.in_state(State.READING, State.STAGING)
            states |= {str(name): replica.tables.rows[name].state.value for name in busy}
            copied_names = (name for job in list(replica.copies.jobs) for name in job.names)
            states |= {str(name): TableState.STAGING.value for name in copied_names}
        copying = self.target.side().copying.look()
        tell(
            self.wiring.control,
            self.places.status_record,
            self.state,
            self.problem(),
            states=states,
            window=self.window_id,
            lagging=lagging_of(self.table_lags()),
            **self.reached(),
            copying=copying_of(copying),
            reading=reading_of(replica.reading.reads.look() if replica is not None else None, copying),
        )
        self.is_held = self.paused()

    def is_told(self) -> bool:
        """Whether operators want something that no window has taken up."""
        control = self.wiring.control
        return bool(open_requests(self.wiring, self.name)) or stamp_of(control, self.name) != self.rules

    def take_back(self) -> None:
        self.wiring.control.remove(self.places.status_record)

    def look(self) -> TargetLook:
        replica = self.replica
        reachable = self.pulse.answered_at is not None and self.pulse.problem is None
        state = "paused" if self.state in HELD_BACK and self.is_held else self.state
        if replica is None:
            return TargetLook(self.name, state, self.problem(), reachable)
        position, head = replica.epochs.position(), self.stream.heads.newest()
        is_behind = position is not None and head is not None and head > position
        return TargetLook(
            self.name,
            state,
            self.problem(),
            reachable,
            position,
            replica.epoch.epoch if replica.epoch is not None else None,
            (head or 0) - (position or 0) if is_behind else 0,
            self.stream.heads.lag_seconds(position or 0, time.time()) if is_behind else 0.0,
            replica.tables.counts(),
            self.target.side().copying.look(),
            replica.reading.reads.look(),
            self.table_lags(),
        )

    def lag(self) -> tuple[float | None, int | None]:
        """Seconds and events that it lacks now; None while that is not known."""
        replica, head = self.replica, self.stream.heads.newest()
        position = replica.epochs.position() if replica is not None and replica.opened else None
        if position is None or head is None:
            return None, None
        events = max(head - position, 0)
        return self.stream.heads.lag_seconds(position, time.time()) if events else 0.0, events

    def find_tables(
        self, takes: Callable[[TableName], bool], state: str, offset: int, limit: int
    ) -> tuple[int, list[TableRow]]:
        """How many tables are wanted, in that state where one is named, and some of them in the order of their names;
        not exact beside the windows."""
        replica = self.replica
        if replica is None:
            return 0, []
        return replica.tables.find(takes, state, offset, limit)

    def find_table(self, name: TableName) -> TableRow | None:
        rows = self.find_tables(lambda one: one == name, "", 0, 1)[1]
        return rows[0] if rows else None

    def others_aside(self) -> list[DatabaseRow | FunctionRow]:
        """Databases and functions that are set aside; not exact beside the windows."""
        replica = self.replica
        if replica is None:
            return []
        functions = [row for row in list(replica.functions.owned.values()) if row.state is TableState.QUARANTINED]
        return [*replica.databases.quarantined_rows.values(), *functions]

    def table_lags(self) -> tuple[TableLag, ...]:
        """Of tables that show less than the target does."""
        replica = self.replica
        position = replica.epochs.position() if replica is not None else None
        if replica is None or position is None:
            return ()
        return table_lags(replica.tables.behind(position), self.stream.heads, time.time())

    def close(self) -> None:
        while self.following:
            self.following.pop().stop()
        if self.replica is not None and self.stopped() and self.state != "failed":
            with suppress(CalqueError):
                self.replica.rest()
        self.close_replica()
        # A look waits for no source any more now.
        if self.looking is not None:
            self.looking.stop()
            self.looking = None

    def close_replica(self) -> None:
        if self.replica is not None:
            self.replica.close()
            self.replica = None


def nothing() -> None:
    pass


def has_more(replica: Replica) -> bool:
    """Whether a window without events has something to do, now or in a moment."""
    reading = not replica.reading.finished.empty() or replica.comparing.has_news()
    owes = replica.scanned.news() or replica.positions.is_due() or bool(replica.looks.found)
    waits = bool(replica.tables.waiting_for_files or replica.retries.later) or not replica.opened
    return waits or reading or owes
