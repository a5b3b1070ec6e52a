"""The event after which the journal of a source begins: `JournalBeginning`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from calque.engine.check.check_log import require_strong_log
from calque.engine.sides.journal_reads import begin_of
from calque.errors import Refused
from calque.model.names import EventId
from calque.ports.records import Json
from calque.wiring.source import SourceWiring
from calque.wiring.wiring import Wiring


class JournalBeginning:
    """The event after which the journal of `source` begins.

    The first process that asks fixes the event in the state folder before it does anything else. Each gap in the log
    moves it behind the gap. `starts` are the configured `start` of the targets that follow the source. `positions`
    returns the events that targets have reached without a journal, by loading dumps.
    """

    def __init__(
        self,
        source: SourceWiring,
        starts: Sequence[EventId | None],
        positions: Callable[[], Sequence[EventId]] = lambda: (),
    ) -> None:
        self.source, self.starts, self.positions = source, starts, positions
        self.lock = threading.Lock()
        self.found: EventId | None = None

    def event(self) -> EventId:
        """Return the event id after which the journal begins, and fix it if no process has.

        Raises `Refused` as `recorded` does and where the source's log can't give every guarantee, unless
        `allow_weak_log` is set. Raises `Unavailable` where the source does not answer, and while capture has not begun
        the journal anew behind a gap.
        """
        return begin_of(self.source.gaps(), self.first())

    def foreseen(self) -> EventId:
        """Return the event id after which the journal begins, and write nothing.

        Before a process has fixed it: where the journal would begin if a process fixed it now. Raises `Refused` as
        `recorded` does, and `Unavailable` as `event` does. It does not look whether the log is a weak one.
        """
        recorded = self.recorded()
        return begin_of(self.source.gaps(), self.chosen() if recorded is None else recorded)

    def first(self) -> EventId:
        """Return the event id after which the journal began before any gap, and fix it if no process has. Safe from
        several threads and processes. Raises as `event` does, but for gaps."""
        with self.lock:
            if self.found is None:
                if not self.source.plug.keys.allow_weak_log:
                    require_strong_log(self.source.server())
                places = self.source.places
                with self.source.folder.lock(places.journal_lock, places.journal_record):
                    self.found = self.fix()
            return self.found

    def fix(self) -> EventId:
        recorded = self.recorded()
        if recorded is not None:
            return recorded
        source, after = self.source, self.chosen()
        address_record = source.journal_location.configured().record()
        record: dict[str, Json] = {"source": source.plug.name, "after": after, "at": time.time(), **address_record}
        source.folder.control.put(source.places.journal_record, record)
        return after

    def recorded(self) -> EventId | None:
        """Return the event id that was fixed; None before that. Raises `Refused` where the state folder is another
        source's."""
        record, source = self.record(), self.source.plug.name
        if record is None:
            return None
        if record["source"] != source:
            raise Refused(
                f"The state folder belongs to source {record['source']}, not {source}",
                "Its journal is of another log",
                "Give each source a state folder of its own",
            )
        return int(str(record["after"]))

    def chosen(self) -> EventId:
        """Choose the event id after which a journal begins that does not exist yet: the source's newest event, or the
        lowest event at which a target starts where that is lower, because all targets share the journal."""
        starts = [*(start for start in self.starts if start is not None), *self.positions()]
        return min([self.source.side().log.current(), *starts])

    def begun_ns(self) -> int:
        """Return when the journal began, in nanoseconds since 1970; 0 where that was not recorded."""
        match self.record():
            case {"at": float(begun_seconds)}:
                return int(begun_seconds * 1e9)
        return 0

    def record(self) -> Mapping[str, Json] | None:
        return self.source.folder.control.read(self.source.places.journal_record)


def beginning_of(wiring: Wiring, source: str) -> JournalBeginning:
    """Return where the journal of the source called `source` begins, with the starts and the last epochs of all targets
    that follow it. Nothing is read or fixed yet."""
    names = wiring.config.targets_of(source)

    def positions() -> Sequence[EventId]:
        epochs = [wiring.ledger(name).last_epoch() for name in names]
        return [epoch.event_id for epoch in epochs if epoch is not None]

    return JournalBeginning(
        wiring.sources[source], [wiring.config.targets[name].keys.start for name in names], positions
    )
