"""Word of the journal for targets whose source another process captures: `JournalPart`."""

from __future__ import annotations

import logging

from calque.adapters.spark.journal_stream import journal_stream
from calque.engine.sides.journal_reads import newest
from calque.errors import CalqueError
from calque.model.names import EventId
from calque.streams.part import Part
from calque.streams.shared import RunForParts, SourceStream
from calque.streams.source_query import SourceQuery

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 5.0


class JournalPart(Part):
    """A query over the journal: targets of this process look at it when a batch comes. Its offsets are forgotten with
    the process, as positions are the ledgers'."""

    def __init__(self, run: RunForParts, stream: SourceStream) -> None:
        name = f"journal {stream.name}"
        super().__init__(run, stream, name, run.wiring.sources[stream.name].places.role)
        self.query = SourceQuery(run, name, self.halted)
        self.gap = 0

    def start(self) -> None:
        """Whether the log goes on is the other process's business; of the journal nothing is told here, as targets say
        how far they came."""
        self.stream.looked.set()
        self.thread.start()

    def keep_up(self) -> None:
        """What was refused is tried again: targets say meanwhile what they met."""
        while not self.stopped():
            super().keep_up()
            self.sleep(AGAIN_SECONDS)

    def failed(self, error: CalqueError) -> None:
        if not self.stopped():
            LOG.warning("%s is tried again: %s", self.name, error)

    def halted(self) -> bool:
        return self.stopped() or newest(self.source.gaps()) != self.gap

    def once(self) -> None:
        while not self.stopped():
            self.gap = newest(self.source.gaps())
            starting = self.source.side().journal.last() or 0
            self.stream.ring()
            stream = journal_stream(self.source.journal_opener(), starting)
            self.query.follow(stream, lambda _: self.stream.ring(), checkpoint=None)

    def ask(self) -> EventId:
        return 0

    def turns(self) -> bool:
        return self.thread.is_alive()

    def tell_state(self) -> None:
        """Its record is that of the process which captures."""

    def take_back(self) -> None:
        """Nothing was told."""
