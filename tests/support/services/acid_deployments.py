"""Deployments whose source has ACID tables of all kinds; readers that know transactions read the targets.

After each change the source's rows are noted; what readers saw is judged by that in the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.judges.acid_tables import Lines, Reads, TableReader
from support.services.deployments import NUMBERS, Deployment, Target
from support.worlds.worlds import ABSENT, History

T = TypeVar("T")
COMPACTORS = "tmp_compactor_"
"""So begin the names of tables that a compaction of an insert-only table makes and drops."""
PAUSE = 0.02
"""Seconds between two reads of a reader."""


@dataclass(slots=True)
class Replica:
    """The tables of a target, and what a reader saw of them. `of_source` is their database at the source."""

    target: Target
    reader: TableReader
    of_source: str
    seen: Reads = field(default_factory=Reads)

    def watch(self, is_over: threading.Event) -> None:
        while not is_over.wait(PAUSE):
            now = time.time()
            for name, lines in kept(self.reader.read() or {}).items():
                self.seen.see(now, TableName(self.of_source, name), lines)


class AcidTables(Deployment):
    """A source with ACID tables in the first of its databases, and targets that have them in the form of their policies
    (`Policy.acid`)."""

    def __init__(self, root: Path, source: Metastore, targets: Mapping[str, Metastore]) -> None:
        super().__init__(root, next(NUMBERS), source, targets, 1)
        self.database = self.databases[0]
        self.history, self.at_source = History(), TableReader.at(source.uri, self.database)
        self.replicas = [Replica(one, self.reader_at(one), self.database) for one in self.targets]
        self.watchers: list[threading.Thread] = []

    def reader_at(self, target: Target) -> TableReader:
        return TableReader.at(target.uri, target.policy.rename.get(self.database, self.database))

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        include = (f"{self.databases[0]}.*",)
        return Policy(name, "hq", include=include, warehouse=f"file:{self.root}/wh_{name}", acid="native")

    def text(self, source: Metastore) -> str:
        text = super().text(source)
        for target in self.targets:
            text = text.replace(f"[targets.{target.name}]", f'[targets.{target.name}]\nacid = "{target.policy.acid}"')
        return text

    # The source

    def note_rows(self) -> None:
        """A table that is new was empty first. One that is gone was empty at last, because a metastore forgets or moves
        its write ids a moment before its name."""
        states = {TableName(self.database, name): lines for name, lines in self.read_source().items()}
        known = {name: rows[-1][1] for name, rows in self.history.states.items() if rows[-1][1] is not ABSENT}
        empty: dict[TableName, Lines] = dict.fromkeys(states.keys() ^ known.keys(), ())
        event_id = self.source.current()
        self.history.note(event_id, {**known, **empty})
        self.history.note(event_id, states)

    def read_source(self) -> Mapping[str, Lines]:
        return kept(wait_for(self.at_source.read))

    # The targets

    def watch_rows(self) -> None:
        """A reader at each target, until `stop_watching`."""
        self.watchers = [threading.Thread(target=one.watch, args=(self.watching,)) for one in self.replicas]
        for thread in self.watchers:
            thread.start()

    def stop_watching(self) -> None:
        self.watching.set()
        for thread in self.watchers:
            thread.join()

    def close(self) -> None:
        super().close()
        self.stop_watching()

    def judged(self, replica: Replica, reads: Reads) -> list[str]:
        bridges = self.bridges(replica.target)
        return reads.problems(
            self.history,
            lambda name, at: any(name in tables and since <= at <= until for tables, since, until in bridges),
        )

    def problems(self) -> list[str]:
        return [f"{one.target.name} {problem}" for one in self.replicas for problem in self.judged(one, one.seen)]

    def reads(self) -> int:
        """How often a table was read."""
        return sum(one.seen.count for one in self.replicas)


def kept(lines: Mapping[str, Lines]) -> Mapping[str, Lines]:
    """Without what a compactor makes for itself."""
    return {name: rows for name, rows in lines.items() if not name.startswith(COMPACTORS)}


def wait_for(look: Callable[[], T | None], seconds: float = 30) -> T:
    """Look until there is something."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline
    return found
