"""Word of the journal for targets whose source another process captures: `JournalPart`."""

from __future__ import annotations

import logging

from calque.adapters.spark.journal_stream import journal_stream
from calque.engine.sides.journal_reads import newest
from calque.errors import CalqueError
from calque.streams.shared import RunForParts, SourceStream
from calque.streams.source_query import SourceQuery
from calque.streams.supervisor import Attempts, Supervisor, Work, nothing

LOG = logging.getLogger(__name__)
AGAIN = Attempts(first=5.0, longest=5.0)


class JournalPart:
    """A query over the journal: targets of this process look at it when a batch comes. Its offsets are forgotten with
    the process, as positions are the ledgers'. Whether the log goes on is the other process's business, and nothing is
    told of the journal here, as targets say how far they came."""

    def __init__(self, run: RunForParts, stream: SourceStream) -> None:
        self.stream, self.name = stream, f"journal {stream.name}"
        self.source = run.wiring.sources[stream.name]
        work = Work(once=self.once, close=nothing, failed=self.failed)
        self.supervisor = Supervisor(run, self.name, work, AGAIN, {"source": stream.name})
        self.query = SourceQuery(run, self.name, self.halted)
        self.gap = 0

    def failed(self, error: CalqueError) -> None:
        """What was refused is tried again: targets say meanwhile what they met."""
        LOG.warning("%s is tried again: %s", self.name, error)

    def halted(self) -> bool:
        return self.supervisor.stopped() or newest(self.source.gaps()) != self.gap

    def once(self) -> None:
        self.stream.looked.set()
        while not self.supervisor.stopped():
            self.gap = newest(self.source.gaps())
            starting = self.source.side().journal.last() or 0
            self.supervisor.goes_on("running")
            self.stream.ring()
            stream = journal_stream(self.source.journal_opener(), starting)
            self.query.follow(stream, lambda _: self.stream.ring(), checkpoint=None)
