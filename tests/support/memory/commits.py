"""The commits of transactions in memory (port `Commits`). Two holders of one object are two holders of one store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.model.names import EventId, Span


class MemoryCommits:
    def __init__(self) -> None:
        self._rows: list[AcidCommit] = []
        self._upto: EventId = 0
        self._memory: TransactionMemory | None = None

    def upto(self) -> EventId:
        return self._upto

    def append(self, commits: Sequence[AcidCommit], upto: EventId) -> None:
        if upto > self._upto:
            self._rows += [commit for commit in commits if commit.event_id > self._upto]
            self._rows.sort(key=lambda commit: (commit.event_id, commit.table))
            self._upto = upto

    def commits(self, span: Span) -> Sequence[AcidCommit]:
        return [commit for commit in self._rows if span.after < commit.event_id <= span.upto]

    def forget(self, upto: EventId) -> int:
        before = len(self._rows)
        self._rows = [commit for commit in self._rows if commit.event_id > upto]
        return before - len(self._rows)

    def restart(self, event_id: EventId) -> None:
        self._rows, self._upto = [], event_id

    def remembered(self) -> TransactionMemory | None:
        return copied(self._memory) if self._memory is not None else None

    def remember(self, memory: TransactionMemory) -> None:
        self._memory = copied(memory)


def copied(memory: TransactionMemory) -> TransactionMemory:
    """What the holder goes on to change is not what was written."""
    return replace(memory, transactions=memory.transactions.copy(), tables=dict(memory.tables))
