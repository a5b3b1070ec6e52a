"""What a sweep may remove."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from calque.engine.sweep.directory_tree import DirectoryEntry

DEATH = "a death left it before anybody saw it"
STAGING = "copies that were never published"
ASIDE_REASON = "a sweep that died had begun to remove it"
HIDDEN = "a hidden table that nobody builds any more"


class Origin(Enum):
    """How a sweep came upon it."""

    RECORD = "record"
    """The ledger says that an epoch left it, or that it was abandoned."""
    OLD_RECORD = "old record"
    """So does what was recorded of the time before claims."""
    DEATH = "death"
    """A claim of this ledger's that no epoch tells of."""
    STAGING = "staging"
    """A name that only unfinished work has, below a directory that stays."""
    UNKNOWN = "unknown"
    """Neither a record nor an owner."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A directory, or a file where `is_file`. `claim` is the number of the claim that must still count there, empty
    where none is known; `epoch` the one that left it, of the time before claims where `is_before_claims`."""

    location: str
    origin: Origin
    claim: str
    epoch: int | None
    reason: str
    is_file: bool = False
    is_before_claims: bool = False
    node: DirectoryEntry | None = None


@dataclass(frozen=True, slots=True)
class RemovedPlace:
    """What went: a directory or a file, or a hidden table by its name."""

    place: str
    reason: str
    epoch: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """What may go as far as its record says, and stays."""

    place: str
    reason: str
