"""The requests of operators for one target, and what is done for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from calque.core.policy.patterns import chosen, covering
from calque.core.records.lifecycle import SHOWN, UNREAD
from calque.engine.exact_reads.coordinator import SETTLED, ExactReads
from calque.engine.replica.adopt import Adoption
from calque.engine.replica.release import Release
from calque.engine.replica.replay import Replay
from calque.errors import EventsForgotten
from calque.model.names import TableName
from calque.model.records import ReadMode
from calque.model.requests import Action, Request


@dataclass(frozen=True, slots=True)
class OperatorRequests:
    """The executor of operators' requests for the tables of one target."""

    reads: ExactReads
    adoption: Adoption
    release: Release
    replay: Replay

    def execute(self, request: Request) -> Sequence[TableName] | None:
        """Do what the request asks for, and return the tables that are read. None where that has to wait for the end of
        a comparison, or until the replica has started again. Called between windows only. Raises `Refused` where the
        journal does not reach back as far as a replay wants."""
        takes, reason = chosen(request.tables), f"asked for by {request.action.value}"
        comparing = self.reads.comparing.is_under_way()
        match request.action:
            case Action.RELEASE:
                return self.release.tables(takes, covering(request.tables), reason)
            case Action.RELEASE_DROPS:
                return None if comparing else self.reads.release_drops(takes)
            case Action.BOOTSTRAP if not request.tables:
                return None if comparing else self.reads.read_all_again(reason)
            case Action.BOOTSTRAP:
                return self.reads.reread(takes, reason, SETTLED)
            case Action.REPAIR:
                return self.reads.reread(takes, reason, SETTLED, ReadMode.LOOK)
            case Action.COMPARE:
                return self.reads.reread(takes, reason, SHOWN | UNREAD)
            case Action.ADOPT:
                try:
                    return self.adoption.tables(takes, covering(request.tables), reason)
                except EventsForgotten:
                    return None
            case Action.REPLAY:
                return self.replay.tables(request.after, takes, reason)
        assert_never(request.action)
