"""News of the journal for targets whose source another process captures: `JournalPoller`."""

from __future__ import annotations

import logging

from calque.adapters.spark.journal_stream import journal_stream
from calque.engine.sides.journal_reads import newest
from calque.errors import CalqueError
from calque.streams.shared import ProcessContext, SourceStream
from calque.streams.source_query import SourceQuery
from calque.streams.supervisor import AttemptSchedule, SupervisedWork, Supervisor, nothing

LOG = logging.getLogger(__name__)
AGAIN = AttemptSchedule(first=5.0, longest=5.0)
"""A failed query over the journal is tried again every five seconds."""


class JournalPoller:
    """The part of a process that follows the journal of a source which another process captures, and wakes the targets
    here at each batch.

    Its offsets end with the process, because positions are kept in the ledgers. It looks for no gap in the log: the
    capturing process does. It writes no status: targets tell how far they came.
    """

    def __init__(self, run: ProcessContext, stream: SourceStream) -> None:
        self.stream, self.name = stream, f"journal {stream.name}"
        self.source = run.wiring.sources[stream.name]
        work = SupervisedWork(run_attempt=self.run_attempt, close=nothing, failed=self.failed)
        self.supervisor = Supervisor(run, self.name, work, AGAIN, {"source": stream.name})
        self.query = SourceQuery(run, self.name, self.halted)
        self.gap = 0

    def failed(self, error: CalqueError) -> None:
        """Log the error only: the query is tried again, and targets tell meanwhile what is wrong with the journal."""
        LOG.warning("%s is tried again: %s", self.name, error)

    def halted(self) -> bool:
        return self.supervisor.stopped() or newest(self.source.gaps()) != self.gap

    def run_attempt(self) -> None:
        self.stream.continuity_checked.set()
        while not self.supervisor.stopped():
            self.gap = newest(self.source.gaps())
            starting = self.source.side().journal.last() or 0
            self.supervisor.note_progress("running")
            self.stream.wake()
            stream = journal_stream(self.source.journal_opener(), starting)
            self.query.follow(stream, lambda _: self.stream.wake(), checkpoint=None)
