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

    def first(self) -> EventId:
        """The same before any gap."""
        with self.lock:
            if self.found is None:
                if not self.wiring.config.source.allow_weak_log:
                    require_strong_log(MetastoreServer(Client(",".join(self.wiring.config.source.metastore))))
                with unavailable("journal"), locked(self.wiring.state / "locks" / "journal.lock"):
                    self.found = self.look()
            return self.found

    def look(self) -> EventId:
        config, control = self.wiring.config, self.wiring.control
        record = control.read("journal")
        if record is not None:
            if record["source"] != config.source.name:
                raise Refused(
                    f"The state folder belongs to source {record['source']}, not {config.source.name}",
                    "its journal is of another log",
                    "Give each source a state folder of its own",
                )
            return int(str(record["after"]))
        current = self.wiring.source().log.current()
        starts = [config.policy(name).start for name in config.targets]
        after = min([current, *(start for start in starts if start is not None)])
        where = configured(config).record()
        control.put("journal", {"source": config.source.name, "after": after, "at": time.time(), **where})
        return after

    def begun_ns(self) -> int:
        """When the journal began; 0 where that was not recorded."""
        match self.wiring.control.read("journal"):
            case {"at": float(at)}:
                return int(at * 1e9)
        return 0
