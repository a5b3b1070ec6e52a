"""Where the journal begins."""

from __future__ import annotations

import threading
import time

from calque.adapters.control import locked, unavailable
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.server import MetastoreServer
from calque.engine.check.check import require_strong_log
from calque.engine.sides.journal_reads import begin_of
from calque.errors import Refused
from calque.model.names import EventId
from calque.wiring.journal_location import configured
from calque.wiring.wiring import Wiring


class Beginning:
    """Where the journal begins: fixed by the first process that asks, before anything else, and by each gap."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.lock = threading.Lock()
        self.found: EventId | None = None

    def event(self) -> EventId:
        """The event id after which the journal begins. Raises `Unavailable`, `Refused`."""
        return begin_of(self.wiring.gaps(), self.first())

    def foreseen(self) -> EventId:
        """The same, and fixes nothing: before any process did, where the journal would begin if one did now."""
        recorded = self.recorded()
        return begin_of(self.wiring.gaps(), self.chosen() if recorded is None else recorded)

    def first(self) -> EventId:
        """The same before any gap."""
        with self.lock:
            if self.found is None:
                if not self.wiring.config.source.allow_weak_log:
                    require_strong_log(MetastoreServer(Client(",".join(self.wiring.config.source.metastore))))
                with unavailable("journal"), locked(self.wiring.state / "locks" / "journal.lock"):
                    self.found = self.fix()
            return self.found

    def fix(self) -> EventId:
        recorded = self.recorded()
        if recorded is not None:
            return recorded
        config, after = self.wiring.config, self.chosen()
        where = configured(config).record()
        self.wiring.control.put("journal", {"source": config.source.name, "after": after, "at": time.time(), **where})
        return after

    def recorded(self) -> EventId | None:
        """What was fixed; None before that. Raises `Refused` where the state folder is another source's."""
        record, source = self.wiring.control.read("journal"), self.wiring.config.source.name
        if record is None:
            return None
        if record["source"] != source:
            raise Refused(
                f"The state folder belongs to source {record['source']}, not {source}",
                "its journal is of another log",
                "Give each source a state folder of its own",
            )
        return int(str(record["after"]))

    def chosen(self) -> EventId:
        """Where the journal begins that does not exist yet: at the source's newest event, or before that where the
        first of all targets starts, since they share it."""
        config = self.wiring.config
        starts = (config.policy(name).start for name in config.targets)
        return min([self.wiring.source().log.current(), *(start for start in starts if start is not None)])

    def begun_ns(self) -> int:
        """When the journal began; 0 where that was not recorded."""
        match self.wiring.control.read("journal"):
            case {"at": float(at)}:
                return int(at * 1e9)
        return 0
