"""The streaming query over a source's log or journal in one process: `SourceQuery`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from calque.adapters.spark.event_source import EventStream
from calque.adapters.spark.query import Apply, CheckpointUnusable, Query, discard, start
from calque.errors import Unavailable
from calque.streams.shared import ProcessContext

BEGIN_SECONDS = 20.0
"""Seconds for which other queries wait at most until one has begun."""


@dataclass(slots=True)
class SourceQuery:
    """A streaming query called `name` that a part runs again and again, one run at a time. A run ends by itself, or
    when `halted` returns True."""

    run: ProcessContext
    name: str
    halted: Callable[[], bool]
    query: Query | None = None
    has_failed_to_begin: bool = False
    begins_anew: bool = False
    """True where the next run discards its checkpoint, because its offsets are not those of the log any more."""

    def follow(self, stream: EventStream, apply: Apply, checkpoint: str | None) -> None:
        """Run a query over `stream` until it ends; `apply` gets the rows of each batch. Raises what ended it.

        Where the query could not begin from its checkpoint this raises `Unavailable` once, and the next run discards
        the checkpoint. A second time it raises `CheckpointUnusable`.
        """
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
        """Run the query. Queries of a process begin one after the other, because each starts a Python process, which
        must answer within Spark's ten seconds."""
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
        """End the query that runs, after its batch in hand. Called from another thread."""
        if self.query is not None:
            self.query.stop()
