"""Follows the local catalog by its own log, and records which of its objects are links."""

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
    """From `begin` to `stop`. `on_room` is called with names that objects have left. A `streams.kinds.Watch`."""

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
        """Before which there are no news."""
        self.position: EventId | None = None
        """Up to which the local log was read; the registry has it from time to time."""
        self.recorded: EventId | None = None
        self.is_to_judge = False
        self.problem: str | None = None
        """Why the local catalog is not followed now."""
        self.thread = BackgroundThread("links", self.follow, self.failed)

    @staticmethod
    def of(run: RunningProcess) -> LinkWatch:
        return LinkWatch(remotes_at(run.wiring), run.fail, lambda names: note_room(run, names))

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
        """Whether the registry is another than at the last call."""
        if time.monotonic() < self.later:
            return False
        stamp = self.remotes.stamp()
        changed, self.seen = stamp != self.seen, stamp
        return changed

    def is_owing(self) -> bool:
        """Whether objects that were links are still to be left."""
        return bool(self.remotes.registry().leaving)

    def again(self) -> None:
        """Have `has_news` say so once more, in a while."""
        self.seen, self.later = MISSING, time.monotonic() + AGAIN_SECONDS

    def take_over(self, before: Config, wiring: Wiring) -> None:
        """With another `[remotes]` all links are judged anew."""
        if before.section(REMOTES) != wiring.config.section(REMOTES):
            self.remotes, self.is_to_judge = remotes_at(wiring), True

    def settle(self, names: Collection[TableName] | None = None) -> None:
        """Raises `Unavailable`."""
        settle(self.remotes, names)

    def follow(self, stopping: threading.Event) -> None:
        """Until `stopping`; what does not answer is asked again."""
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
        """Take up what the local log says since the last one, where it still reaches back so far."""
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
    """What the process that follows the local catalog takes, with the seconds of the lease."""
    remotes = config.section(REMOTES)
    return {} if remotes is None else {ROLE: remotes.lease}


def prepare(wiring: Wiring) -> None:
    """Put back links that are missing, and look at the local catalog. Raises `Unavailable`."""
    remotes = remotes_at(wiring)
    put_back(remotes.catalog(), remotes.in_hand())
    look_anew(remotes)
    settle(remotes)


def note_room(run: RunningProcess, names: Sequence[TableName]) -> None:
    """Have tables tried again that were set aside because of a local object of their name, which has gone."""
    parts = run.target_parts()
    for name in names:
        target = target_of(run.wiring.config, name)
        part = parts.get(target.name) if target is not None else None
        remote = part.current.target.admission().source_of(name) if part is not None else None
        row = part.report.find_table(remote) if part is not None and remote is not None else None
        if part is not None and row is not None and row.state is TableState.QUARANTINED:
            leave_request(run.wiring, part.name, Action.RELEASE, [str(row.name)])


def left(events: Sequence[Event]) -> Iterator[TableName]:
    """Names under which a table was."""
    for event in events:
        keys = keys_of(event)
        if keys.table is not None and keys.kind is EventKind.DROP_TABLE:
            yield keys.table
        elif keys.other is not None and keys.kind is EventKind.RENAME_TABLE:
            yield keys.other


def look_anew(remotes: RemotesWiring) -> LinkRegistry:
    """Look at the whole local catalog, and go on from its newest event; where it was looked before and the log reaches
    back, only at what is known: the rest comes as events. Raises `Unavailable`."""
    registry, log = remotes.registry(), remotes.log()
    current = log.current()
    position = registry.position
    if position is not None and position <= current and reaches(log.read(position, 1), position, current):
        return look(remotes, registry.links)
    return look(remotes, None, current)


def reaches(events: Sequence[Event], position: EventId, current: EventId) -> bool:
    return position == current or (bool(events) and events[0].event_id == position + 1)


def touched(events: Sequence[Event]) -> Iterator[TableName]:
    """Names of objects that the events made, changed or dropped."""
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
