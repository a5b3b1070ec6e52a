"""The claims on a directory at a target, which say to whom it belongs.

A directory that calque makes carries a claim from before its first file: a small hidden file `_calque_claim.1`, which
is made only where nothing has that name. A process that takes the directory up later, or is about to remove it, makes
the next claim, `_calque_claim.2`: of several that try, one succeeds. The claim with the greatest number counts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. `number` is 128 random bits in hexadecimal, which no other claim has. `ledger` is the name of the
    ledger that knows what became of the directory (`model.records.LedgerIdentity`), `writer` the process that made the
    claim, `epoch` the first epoch that could tell of it. `removal` says that the directory is about to be removed, and
    is never taken up again. The other fields are for people."""

    number: str
    ledger: str
    writer: str
    epoch: int
    deployment: str = ""
    table: str = ""
    """The table at the target that the directory was made for, as it was called then."""
    partition: str = ""
    incarnation: str = ""
    removal: bool = False


@dataclass(frozen=True, slots=True)
class AbandonedDirectory:
    """A directory that was made and never shown, with the number of the claim on it."""

    place: str
    claim: str


@dataclass(frozen=True, slots=True)
class StandingClaim:
    """The claim that counts in a directory. `generation` is the number in its file's name. `claim` is None where the
    file can't be read as a claim."""

    generation: int
    claim: Claim | None
