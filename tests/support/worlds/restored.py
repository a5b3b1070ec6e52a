"""Stories in which calque's own records are put back as they were: a ledger, a journal, all of the state folder."""

from __future__ import annotations

import copy
from typing import Any

from calque.adapters.held_evidence import MemoryEvidence
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.worlds.histories import Player, Story, Write

RESTORES = (
    "copy_ledger",
    "restore_ledger",
    "copy_journal",
    "restore_journal",
    "copy_state",
    "restore_state",
    "lose_state",
    "copy_folder",
    "restore_folder",
)


class Restorer(Player):
    """Between windows calque is stopped, copies are put in the place of what was there, and it is started again."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.ledger: MemoryLedger | None = None
        self.journal: tuple[MemoryJournal, MemoryEvidence] | None = None
        self.restored = 0

    def write(self, write: Write) -> None:
        if write.operation not in RESTORES:
            super().write(write)
        elif not self.world.gathering and not self.world.busy and not self.writes:
            self.put_back(write.operation)

    def put_back(self, operation: str) -> None:
        world = self.world
        match operation:
            case "copy_state":
                self.put_back("copy_ledger")
                self.put_back("copy_journal")
            case "restore_state" if self.ledger is not None and self.journal is not None:
                world.ledger = self.ledger.copy()
                self.put_back("restore_journal")
            case "copy_ledger":
                self.ledger = world.ledger.copy()
            case "restore_ledger" if self.ledger is not None:
                world.ledger = self.ledger.copy()
                world.restart()
                self.restored += 1
            case "copy_journal":
                self.journal = copied(world.journal), copied(world.evidence)
            case "restore_journal" if self.journal is not None:
                world.journal.__dict__.update(copied(self.journal[0]).__dict__)
                world.evidence.__dict__.update(copied(self.journal[1]).__dict__)
                world.restart()
                self.restored += 1
            case "copy_folder":
                # The journal is elsewhere, on Kafka.
                self.put_back("copy_state")
            case "restore_folder" if self.ledger is not None and self.journal is not None:
                world.evidence.__dict__.update(copied(self.journal[1]).__dict__)
                self.put_back("restore_ledger")
            case "lose_state":
                world.ledger = MemoryLedger(world.recorded)
                world.journal.__dict__.update(MemoryJournal().__dict__)
                world.evidence.__dict__.update(MemoryEvidence().__dict__)
                world.begin = world.source.current()
                self.ledger = self.journal = None
                world.restart()
                world.reread |= {*world.history.states}
                self.restored += 1


def copied(thing: Any) -> Any:
    other = copy.copy(thing)
    locks = {key: value for key, value in thing.__dict__.items() if "lock" in key}
    plain = {key: copy.deepcopy(value) for key, value in thing.__dict__.items() if key not in locks}
    other.__dict__.update({**plain, **locks})
    return other
