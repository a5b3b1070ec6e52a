"""The windows of a journal into one target, as far as the journal goes: `WindowLoop`."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from calque.control.pause_rules import chosen_by, rules_of, stamp_of
from calque.control.requests import open_requests, remove_request
from calque.control.window_size import WindowSize
from calque.errors import CalqueError, Refused
from calque.logs.fields import about, log_fields, window_id
from calque.model.names import EventId
from calque.streams.current_replica import CurrentReplica
from calque.streams.lease_holder import LeaseHolder
from calque.streams.supervisor import Supervisor

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica

LOG = logging.getLogger(__name__)


class WindowLoop:
    """The loop of one target that tells when a window is due, and applies windows with what operators ask for
    meanwhile."""

    def __init__(self, current: CurrentReplica, supervisor: Supervisor, holder: LeaseHolder) -> None:
        self.current, self.supervisor, self.holder = current, supervisor, holder
        self.wiring, self.name = current.wiring, current.name
        self.window_size = WindowSize.of(self.wiring, self.name)
        self.was_paused = False
        """Whether the target was paused at the last call of `is_due`."""

    def is_due(self, *, has_signal: bool) -> bool:
        """Tell whether a window has any work. `has_signal` says whether the source has sent a signal since the last
        call.

        A signal alone makes no window due, because each listing sends one, too, and few windows wait for listings. The
        journal is asked only after a signal, because it may lie in a slow store.
        """
        current = self.current
        was_paused, self.was_paused = self.was_paused, current.is_paused()
        if current.replica is None or self.was_paused:
            return False
        is_asked = was_paused or current.is_woken.is_set() or current.next_target is not None or current.has_requests()
        return is_asked or has_more(current.replica) or (has_signal and has_events(current.replica))

    def apply_until(self, replica: Replica, upto: EventId) -> None:
        """Apply events up to `upto`, in windows of the size that is due, until a gap, a pause or a stop. `upto` may be
        far beyond the replica's position. At least one window is applied unless a gap or a pause stands against it; it
        may have no events. A stop waits for the window in hand only."""
        while not self.current.is_behind() and not self.current.is_paused():
            self.apply_window(replica, min(upto, replica.cursor + self.window_size.begin()))
            self.window_size.end(is_behind=replica.cursor < upto)
            if replica.cursor >= upto or self.supervisor.stopped():
                return

    def apply_window(self, replica: Replica, upto: EventId) -> None:
        name = window_id(self.name, replica.epoch.epoch if replica.epoch else None, replica.cursor)
        self.current.window_id = name
        with log_fields(window=name):
            self.hold_back(replica)
            self.take_requests(replica)
            began = time.monotonic()
            window = replica.window(upto)
            if window is not None:
                self.current.run.meters.window(self.name, window, time.monotonic() - began, name)
            self.supervisor.note_progress("running" if replica.epoch is not None else "bootstrapping")
            if window is None or window.epoch is None:
                return
            epoch = window.epoch
            self.current.run.epoch_signal(self.name).send()
            self.holder.note_epoch(epoch.epoch)
            LOG.info(
                "%s: epoch %d at event %d: %d events, %d hops, %d calls, %d files",
                self.name,
                epoch.epoch,
                epoch.event_id,
                epoch.events,
                epoch.hops,
                epoch.calls,
                epoch.files,
                extra=about(epoch=epoch.epoch, event=epoch.event_id),
            )

    def take_requests(self, replica: Replica) -> None:
        """Take up the operators' open requests. The reason of a refused one is told until the next request is taken
        up."""
        for request in open_requests(self.wiring, self.name):
            try:
                names = replica.take_request(request)
            except Refused as refused:
                names, self.current.refused = (), str(refused)
                LOG.warning("%s: %s", self.name, refused)
            else:
                self.current.refused = None
            if names is None:
                continue
            LOG.info("%s: %s of %d tables", self.name, request.action.value, len(names))
            replica.tables.record(replica.epochs.record_states)
            remove_request(self.wiring, request)

    def hold_back(self, replica: Replica) -> None:
        """Have the replica go by the operators' rules of paused tables, where these have changed."""
        stamp = stamp_of(self.wiring.control, self.name)
        if stamp != self.current.rules:
            rules = rules_of(self.wiring.control, self.name)
            replica.hold_back(chosen_by(rules))
            self.current.rules = stamp
            LOG.info("%s: tables: %s", self.name, ", ".join(f"{rule} {text}" for rule, text in rules) or "all go on")


def has_events(replica: Replica) -> bool:
    """Tell whether the journal has events that the replica has not taken. True where the journal does not answer, so
    that a window is begun and tells the error."""
    try:
        return (replica.source.journal.last() or 0) > replica.cursor
    except CalqueError:
        return True


def has_more(replica: Replica) -> bool:
    """Tell whether a window without events would have any work, now or in a moment."""
    reading = not replica.reading.finished.empty() or replica.comparing.has_news()
    owes = replica.scanned.news() or replica.positions.is_due() or bool(replica.looks.found)
    waits = bool(replica.tables.waiting_for_files or replica.retries.later) or not replica.opened
    return waits or reading or owes
