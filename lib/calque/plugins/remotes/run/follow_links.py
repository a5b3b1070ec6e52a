"""The watch that follows the local catalog by its own log, and records which of its objects are links."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from calque.config import Config
from calque.control.requests import leave_request
from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_TABLE
from calque.core.events.keys import keys_of
from calque.errors import Broken, CalqueError, Refused, Unavailable
from calque.model.journal import Event, EventKind
from calque.model.ledger import TableState
from calque.model.names import EventId, TableName
from calque.model.requests import Action
from calque.plugins.remotes.config import REMOTES
from calque.plugins.remotes.engine.linked_catalog import put_back
from calque.plugins.remotes.model import LinkRegistry
from calque.plugins.remotes.run.reconcile_links import disarm, is_far, look, settle
from calque.plugins.remotes.run.relinked import names_of, relinked
from calque.plugins.remotes.wiring.remotes import ROLE, RemotesWiring, remotes_at, target_of
from calque.ports.records import MISSING, Stamp
from calque.streams.background import BackgroundThread
from calque.streams.kinds import RunningProcess, WatchKind
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
POLL_SECONDS, LONGEST_SECONDS = 0.25, 15.0
AGAIN_SECONDS = 2.0
AT_ONCE = 1000


class LinkWatch:
    """The watch for links, as `streams.kinds.Watch`. `on_room` is called with names under which the local log says that
    a table was dropped, or from which it was renamed. `on_failure` is called with the error that ends the watch."""

    name = "links"

    def __init__(
        self,
        remotes: RemotesWiring,
        on_failure: Callable[[CalqueError], None],
        on_room: Callable[[Sequence[TableName]], None],
    ) -> None:
        self.remotes, self.on_failure, self.on_room = remotes, on_failure, on_room
        self.seen: Stamp = remotes.stamp()
        self.later = 0.0
        """The time, by the monotonic clock, before which `has_news` returns False."""
        self.position: EventId | None = None
        """The event up to which the local log was read. The registry has it from time to time."""
        self.recorded: EventId | None = None
        self.is_to_judge = False
        self.problem: str | None = None
        """The reason why the local catalog is not followed now; None while it is."""
        self.thread = BackgroundThread("links", self.follow, self.failed)

    @staticmethod
    def of(run: RunningProcess) -> LinkWatch:
        return LinkWatch(remotes_at(run.wiring), run.fail, lambda names: retry_set_aside(run, names))

    def begin(self) -> None:
        self.thread.begin()

    def stop(self) -> None:
        self.thread.stop()

    def failed(self, defect: BaseException) -> None:
        LOG.error("links are not followed any more", exc_info=defect)
        self.on_failure(
            defect if isinstance(defect, CalqueError) else Broken("Following links ended", repr(defect), "See the log")
        )

    def has_news(self) -> bool:
        """Tell whether the registry has changed since the last call. The result is false for a while after `again`."""
        if time.monotonic() < self.later:
            return False
        stamp = self.remotes.stamp()
        changed, self.seen = stamp != self.seen, stamp
        return changed

    def is_owing(self) -> bool:
        """Tell whether objects that were links are still to be dropped or unmarked."""
        return bool(self.remotes.registry().leaving)

    def retry_later(self) -> None:
        """Have `has_news` return True once more, after `AGAIN_SECONDS`."""
        self.seen, self.later = MISSING, time.monotonic() + AGAIN_SECONDS

    def take_over(self, before: Config, wiring: Wiring) -> None:
        """Go on with the configuration of `wiring`. Where `[remotes]` differs, all links are judged by the new
        section."""
        if before.section(REMOTES) != wiring.config.section(REMOTES):
            self.remotes, self.is_to_judge = remotes_at(wiring), True

    def settle(self, names: Collection[TableName] | None = None) -> None:
        """Make the objects of these names (None: of all links) fit the registry. Raises `Unavailable`."""
        settle(self.remotes, names)

    def follow(self, stopping: threading.Event) -> None:
        """Follow the local log until `stopping` is set. Where the catalog does not answer, ask again, with growing
        pauses."""
        delay = POLL_SECONDS
        while not stopping.wait(delay):
            try:
                self.step(stopping)
            except (Refused, Unavailable) as error:
                if self.problem != str(error):
                    LOG.warning("links are not followed: %s", error)
                self.problem, delay = str(error), min(2 * delay, LONGEST_SECONDS)
            else:
                self.problem, delay = None, POLL_SECONDS

    def step(self, stopping: threading.Event) -> None:
        """Take up the events of the local log since the last step. Where the log does not reach back to them any more,
        the next step looks at the local catalog anew (`look_anew`)."""
        if self.position is None or self.is_to_judge:
            self.is_to_judge = False
            self.position = look_anew(self.remotes).position
        log = self.remotes.log()
        while not stopping.is_set() and self.position is not None:
            events = log.read(self.position, AT_ONCE)
            if not events and log.current() >= self.position:
                return
            if not events or events[0].event_id > self.position + 1:
                self.position = None
                return
            names, upto = list(dict.fromkeys(touched(events))), events[-1].event_id
            if names:
                disarm(self.remotes, names)
            if names or is_far(upto, self.recorded):
                self.recorded = look(self.remotes, names, upto).position
            self.position = upto
            self.on_room(list(left(events)))


def roles(config: Config) -> Mapping[str, float]:
    """Return the role of the one process that follows the local catalog, with the seconds of its lease; nothing without
    `[remotes]`."""
    remotes = config.section(REMOTES)
    return {} if remotes is None else {ROLE: remotes.lease}


def prepare(wiring: Wiring) -> None:
    """Make links again that a dead process left missing, and look at the local catalog. Raises `Unavailable`."""
    remotes = remotes_at(wiring)
    put_back(remotes.catalog(), remotes.missing_links())
    look_anew(remotes)
    settle(remotes)


def retry_set_aside(run: RunningProcess, names: Sequence[TableName]) -> None:
    """Have tables tried again that were set aside because a local object had their names. `names` are names that local
    objects have left."""
    parts = run.target_parts()
    for name in names:
        target = target_of(run.wiring.config, name)
        part = parts.get(target.name) if target is not None else None
        remote = part.current.target.admission().source_of(name) if part is not None else None
        row = part.report.find_table(remote) if part is not None and remote is not None else None
        if part is not None and row is not None and row.state is TableState.QUARANTINED:
            leave_request(run.wiring, part.name, Action.RELEASE, [str(row.name)])


def left(events: Sequence[Event]) -> Iterator[TableName]:
    """Return the names that a table had before one of the events dropped it, or renamed it."""
    for event in events:
        keys = keys_of(event)
        if keys.table is not None and keys.kind is EventKind.DROP_TABLE:
            yield keys.table
        elif keys.other is not None and keys.kind is EventKind.RENAME_TABLE:
            yield keys.other


def look_anew(remotes: RemotesWiring) -> LinkRegistry:
    """Look at the whole local catalog, and go on from its newest event. Where an earlier look is recorded and the log
    reaches back to it, look only at the known links, because all else comes as events. Return the registry. Raises
    `Unavailable`."""
    registry, log = remotes.registry(), remotes.log()
    current = log.current()
    position = registry.position
    if position is not None and position <= current and reaches(log.read(position, 1), position, current):
        return look(remotes, registry.links)
    return look(remotes, None, current)


def reaches(events: Sequence[Event], position: EventId, current: EventId) -> bool:
    return position == current or (bool(events) and events[0].event_id == position + 1)


def touched(events: Sequence[Event]) -> Iterator[TableName]:
    """Return the names of the objects that the events made, changed or dropped."""
    for event in events:
        keys = keys_of(event)
        if keys.table is not None and keys.kind in MAY_BE_OF_DATABASE_OR_TABLE:
            yield keys.table
            if keys.other is not None:
                yield keys.other


WATCH = WatchKind(
    roles=roles,
    prepare=prepare,
    unprepared="links are those that were known before",
    make=LinkWatch.of,
    relinked=relinked,
    names=names_of,
)
