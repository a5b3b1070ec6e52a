"""The journal as its readers see it: with the commits of transactions that changed ACID tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calque.core.policy.admit import Admission
from calque.engine.sides.sides import SourceSide
from calque.model.journal import Entry
from calque.model.names import EventId, Span
from calque.ports import Commits, Journal
from calque.ports.forwarding import ForwardingJournal


class CommittedJournal(ForwardingJournal):
    """A `Journal` whose entries have, after that of a commit, one for each ACID table that the commit changed. It ends
    where the commits are not known yet."""

    def __init__(self, journal: Journal, commits: Commits) -> None:
        super().__init__(journal)
        self._commits = commits

    def last(self) -> EventId | None:
        last = super().last()
        return min(last, self._commits.upto()) if last is not None else None

    def entries(self, span: Span) -> Sequence[Entry]:
        entries = super().entries(span)
        commits = self._commits.commits(span)
        if not commits:
            return entries
        return sorted([*entries, *(commit.entry() for commit in commits)], key=lambda entry: entry.event_id)


def with_commits(source: SourceSide, admission: Admission) -> SourceSide:
    """Return the source as a target with this policy reads it."""
    if source.commits is None:
        return source
    journal = CommittedJournal(source.journal, source.commits)
    return replace(source, journal=journal, natively=lambda name: admission.acid(name) == "native")
