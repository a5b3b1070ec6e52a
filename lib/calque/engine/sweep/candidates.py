"""The records of a sweep: what it may remove, what it removed, and what it kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from calque.engine.sweep.directory_tree import DirectoryEntry

DEATH = "a death left it before anybody saw it"
STAGING = "copies that were never published"
ASIDE_REASON = "a sweep that died had begun to remove it"
HIDDEN = "a hidden table that nobody builds any more"


class Origin(Enum):
    """The way in which a sweep found a directory or file that it may remove."""

    RECORD = "record"
    """The ledger says that an epoch left the directory, or that it was abandoned."""
    OLD_RECORD = "old record"
    """The ledger says so of a directory from the time before claims (`take_stock`)."""
    DEATH = "death"
    """The directory has a claim of this ledger of which no epoch tells."""
    STAGING = "staging"
    """The name is one that only unfinished work has, below a directory that stays."""
    UNKNOWN = "unknown"
    """No record names the directory, and no claim on it says that it may go."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A directory, or with `is_file` a file, that a sweep may remove. `claim` is the number of the claim that must
    still count there, empty where none is known. `epoch` is the number of the epoch that left it; `is_before_claims`
    says that this epoch is of the time before claims. `node` is the tree of an unknown directory."""

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
    """A removed directory or file, or a hidden table by its name, with the files and bytes that went with it."""

    place: str
    reason: str
    epoch: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """A directory, file or hidden table that was a candidate and stays, with the reason."""

    place: str
    reason: str
