"""The streaming query of a source in one process: `SourceQuery`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from calque.adapters.spark.event_source import EventStream
from calque.adapters.spark.query import Apply, CheckpointUnusable, Query, discard, start
from calque.errors import Unavailable
from calque.streams.shared import RunForParts

BEGIN_SECONDS = 20.0
"""For which other queries wait until one has begun."""


@dataclass(slots=True)
class SourceQuery:
    """Runs one query at a time, until it ends or `halted` says that it is to end."""

    run: RunForParts
    name: str
    halted: Callable[[], bool]
    query: Query | None = None
    has_failed_to_begin: bool = False
    begins_anew: bool = False
    """The next run discards its checkpoint: its offsets are not those of the log any more."""

    def follow(self, stream: EventStream, apply: Apply, checkpoint: str | None) -> None:
        """Run a query until it ends. Raises what ended it. One that could not begin is `Unavailable` once; the next one
        makes its checkpoint anew."""
        if self.begins_anew and checkpoint is not None:
            discard(self.run.spark(), checkpoint)
        self.begins_anew = False
        try:
            self._run(stream, apply, checkpoint)
        except CheckpointUnusable as unbegun:
            if self.has_failed_to_begin or self.halted():
                raise
            self.has_failed_to_begin = self.begins_anew = True
            what = f"The query {self.name} did not begin"
            raise Unavailable(what, str(unbegun), "It is tried again, once") from unbegun

    def _run(self, stream: EventStream, apply: Apply, checkpoint: str | None) -> None:
        """Queries begin one after the other: each starts a process, which must answer within Spark's ten seconds."""
        with self.run.starting:
            deadline = time.monotonic() + BEGIN_SECONDS
            query = start(self.run.spark(), stream, apply, name=self.name, checkpoint=checkpoint)
            self.query = query
            while query.active and not query.has_begun() and not self.halted() and time.monotonic() < deadline:
                time.sleep(0.05)
        while not query.join(0.5):
            if self.halted():
                query.stop()

    def stop(self) -> None:
        """End the query that runs, from another thread; its batch in hand is finished."""
        if self.query is not None:
            self.query.stop()
