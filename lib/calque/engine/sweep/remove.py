"""The removal of directories: claim them, ask ledgers and catalog once more, set the directories aside, and delete
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from calque.core.formats.layout import join
from calque.core.plan.limits import batches
from calque.core.records.claims import ASIDE, claim_file, is_mark, written
from calque.engine.files.claims import chain, is_of_before_claims
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.candidates import HIDDEN, Candidate, KeptPlace, Origin, RemovedPlace
from calque.engine.sweep.directory_tree import DirectoryEntry, node_of
from calque.engine.sweep.evidence import Evidence
from calque.engine.sweep.troubles import own_trouble
from calque.model.claims import Claim
from calque.model.names import TableName
from calque.ports import Conflict, StorageEntry

T = TypeVar("T")
AT_ONCE = 1_000
"""Directories that are claimed before ledgers and catalog are asked."""
THREADS = 8
TAKEN = "it was taken up again, or another process removes it"
FOREIGN = "the claim on it is not the one that the record names"
SHOWN = "the ledger says that it is shown"
REFERENCED = "a table at the target lies there"
ELSEWHERE = "a directory of the same path below another place is known, which may be this one by another name"
CLAIMED_BELOW = "another directory that has an owner lies in it"
OF_BEFORE = "a version of calque before claims left it; `calque sweep --take-stock` lets it go"
WAITING = frozenset({TAKEN, SHOWN, REFERENCED, CLAIMED_BELOW, OF_BEFORE})
"""The reasons to keep a directory that a later sweep may remove. `FOREIGN` is none of them: the directory is not the
one that the record names, and never will be."""
NOBODYS = Claim("", "", "", 0), 1
"""The result of `Removal.look` for a directory without a claim: an empty claim, and the first generation."""
Pool = Callable[[int, str], Executor]
Tell = Callable[[int, int], None]
"""A function that takes the number of directories that were looked at, and the number of all."""


@dataclass(slots=True)
class Removal:
    """The removals of one sweep. `removed` went; `kept` may go as far as it is known, and stays for now."""

    side: TargetSide
    evidence: Evidence
    tell: Tell
    pool: Pool = ThreadPoolExecutor
    removed: list[RemovedPlace] = field(default_factory=list)
    kept: list[KeptPlace] = field(default_factory=list)
    troubles: list[KeptPlace] = field(default_factory=list)
    """Places that were to go and could not be removed; their records stay."""

    def remove(self, candidates: Iterable[Candidate]) -> None:
        """Remove the candidates, a directory that lies in another one before that one. Raises `Unavailable`, and
        `WrittenElsewhere`; what was removed by then is in `removed`."""
        ordered = in_order(candidates)
        done = 0
        for batch in batches(ordered, AT_ONCE):
            self.remove_batch([each for each in batch if each.origin is not Origin.STAGING])
            for candidate in batch:
                if candidate.origin is Origin.STAGING:
                    with own_trouble(self.troubles, candidate.location):
                        self.remove_unclaimed(candidate)
            done += len(batch)
            self.tell(done, len(ordered))

    def remove_batch(self, batch: Sequence[Candidate]) -> None:
        with self.pool(THREADS, "sweep") as pool:
            epoch = self.side.claims.next_epoch()
            claims = list(pool.map(lambda each: self.attempt(each, lambda: self.claim(each, epoch)), batch))
            claimed = [(one, claim) for one, claim in zip(batch, claims, strict=True) if claim is not None]
            if not claimed:
                return
            self.evidence.ask_ledgers()
            self.ask_catalog((candidate, claim) for candidate, (_, claim) in claimed)
            free = []
            for candidate, (file, claim) in claimed:
                with own_trouble(self.troubles, candidate.location):
                    if (reason := self.why_not(candidate)) is not None:
                        self.side.storage.remove([file])
                        self.keep(candidate, reason)
                    else:
                        free.append((candidate, claim))
            for _, level in groupby(sorted(free, key=depth_of, reverse=True), depth_of):
                list(pool.map(lambda each: self.attempt(each[0], lambda: self.delete(*each)), list(level)))

    def attempt(self, candidate: Candidate, work: Callable[[], T]) -> T | None:
        """Return the result of `work`; None, too, if it fails for a reason of this place's own, which is then in
        `troubles`."""
        given: list[T] = []
        with own_trouble(self.troubles, candidate.location):
            given.append(work())
        return given[0] if given else None

    def foresee(self, candidates: Iterable[Candidate]) -> None:
        """Enter in `removed` and `kept` what `remove` would do as things are now, and change nothing."""
        gone: set[str] = set()
        for batch in batches(in_order(candidates), AT_ONCE):
            with self.pool(THREADS, "sweep") as pool:
                looks = list(pool.map(lambda each: self.attempt(each, lambda: self.look(each)), batch))
                found = [(one, look[0]) for one, look in zip(batch, looks, strict=True) if look is not None]
                nodes = list(pool.map(lambda pair: self.attempt(pair[0], lambda: self.node(pair[0])), found))
            self.ask_catalog(found)
            for (candidate, _), node in zip(found, nodes, strict=True):
                if node is not None:
                    self.foresee_one(candidate, node, gone)

    def foresee_one(self, candidate: Candidate, node: DirectoryEntry, gone: set[str]) -> None:
        """Enter one candidate in `removed` or `kept`. `gone` are the directories that would be removed before it; this
        one is added if it would go."""
        reason = self.why_not(candidate)
        if reason is None and not gone.issuperset(claimed_below(node)):
            reason = CLAIMED_BELOW
        if reason is not None:
            self.keep(candidate, reason)
        else:
            content = node.content(gone)
            gone.add(candidate.location)
            self.removed.append(RemovedPlace(candidate.location, candidate.reason, candidate.epoch, *content))

    def claim(self, candidate: Candidate, epoch: int) -> tuple[str, Claim] | None:
        """Make the removal's own claim on the directory, and return the claim's file and the claim; None where the
        directory is not the one meant, or another process made a claim of that generation first."""
        looked = self.look(candidate)
        if looked is None:
            return None
        about, generation = looked
        claim = self.side.claims.new_claim(about.table, about.partition, about.incarnation, removal=True, epoch=epoch)
        file = claim_file(candidate.location, generation)
        if not self.side.storage.create({file: written(claim)}):
            self.keep(candidate, TAKEN)
            return None
        return file, claim

    def look(self, candidate: Candidate) -> tuple[Claim, int] | None:
        """Return the last claim on the directory that is none of a removal, and the generation that a next claim gets.
        None where the directory does not exist, or is not the one that the candidate means."""
        if candidate.origin is Origin.STAGING:
            return NOBODYS
        storage, location = self.side.storage, candidate.location
        names = storage.children(location)
        if not names and not storage.exists(location):
            return None
        claims = chain(storage, location, names)
        taker = next((claim for _, claim in reversed(claims) if claim is None or not claim.removal), None)
        is_old = is_of_before_claims(location, names)
        reason = self.why_not_meant(candidate, taker, is_old=is_old)
        if reason is not None:
            self.keep(candidate, reason)
            return None
        return taker or NOBODYS[0], claims[-1][0] + 1 if claims else 1

    def why_not_meant(self, candidate: Candidate, taker: Claim | None, *, is_old: bool) -> str | None:
        """Return the reason why the directory is not the one that the candidate means, or not yet known to be; None
        where it is. `taker` is the last claim that is none of a removal. `is_old`: the directory has no claim, and a
        version before claims made it."""
        match candidate.origin:
            case Origin.UNKNOWN:
                is_meant = candidate.claim == (taker.number if taker is not None else "")
            case Origin.OLD_RECORD:
                is_meant = is_old
            case Origin.RECORD if is_old and not candidate.claim:
                return OF_BEFORE if candidate.is_before_claims else None
            case _ if taker is None:
                is_meant = False
            case _ if candidate.claim:
                is_meant = taker.number == candidate.claim
            case _:
                # The row that told of the directory did not tell its claim: it can't be younger than what replaced it.
                is_meant = taker.ledger in self.evidence.ledgers and taker.epoch <= (candidate.epoch or 0)
        return None if is_meant else FOREIGN

    def ask_catalog(self, claimed: Iterable[tuple[Candidate, Claim]]) -> None:
        """Read from the catalog what lies at the places of the candidates, and where the tables lie that these were
        claimed for."""
        pairs = list(claimed)
        keys = [self.evidence.spellings.key(candidate.location) for candidate, _ in pairs]
        self.evidence.ask_catalog(keys, {table_of(claim) for _, claim in pairs})

    def why_not(self, candidate: Candidate) -> str | None:
        """Return the reason why the directory must stay; None where it may go. The answer holds because the removal's
        claim keeps others from taking the directory up."""
        key = self.evidence.spellings.key(candidate.location)
        if self.evidence.is_living(key):
            return SHOWN
        if self.evidence.is_referenced(key):
            return REFERENCED
        if candidate.origin in (Origin.DEATH, Origin.UNKNOWN) and self.evidence.is_shown_elsewhere(candidate.location):
            return ELSEWHERE
        return None

    def delete(self, candidate: Candidate, claim: Claim) -> None:
        storage, location = self.side.storage, candidate.location
        node = node_of(storage, location, 0)
        if claimed_below(node):
            self.keep(candidate, CLAIMED_BELOW)
            return
        parent, _, _ = location.rpartition("/")
        now = storage.set_aside(location, join(parent, f"{ASIDE}{claim.number}"))
        # Claims go last: where nothing is set aside they keep others out until all else is gone.
        storage.remove([join(now, name) for name in node.names() if not is_mark(name)])
        storage.remove([now])
        self.removed.append(RemovedPlace(location, candidate.reason, candidate.epoch, *node.content()))

    def remove_unclaimed(self, candidate: Candidate) -> None:
        """Remove a file or directory with a name that only unfinished work has; it needs no claim."""
        storage, location = self.side.storage, candidate.location
        if candidate.is_file:
            size = self.size(candidate)
            storage.remove([location])
            self.removed.append(RemovedPlace(location, candidate.reason, None, 1, size))
            return
        node = node_of(storage, location, 0)
        storage.remove([location])
        self.removed.append(RemovedPlace(location, candidate.reason, None, *node.content()))

    def node(self, candidate: Candidate) -> DirectoryEntry:
        """Return the tree of the candidate; a file counts as a directory that holds this file alone."""
        if not candidate.is_file:
            return node_of(self.side.storage, candidate.location, 0)
        name = candidate.location.rpartition("/")[2]
        return DirectoryEntry(candidate.location, 0, [StorageEntry(name, self.size(candidate), 0)])

    def size(self, candidate: Candidate) -> int:
        """Return the bytes of the candidate, which is a file; 0 if it is gone."""
        return sum(file.size for file in self.side.storage.files([candidate.location]).values())

    def keep(self, candidate: Candidate, reason: str) -> None:
        self.kept.append(KeptPlace(candidate.location, reason))


def claimed_below(node: DirectoryEntry) -> list[str]:
    """Return the directories below `node` that have an owner, without those that lie in a directory set aside, which an
    earlier sweep had begun to remove."""
    return [below for below in node.claimed_below() if f"/{ASIDE}" not in below.removeprefix(node.location)]


def drop_hidden(side: TargetSide, names: Iterable[TableName], troubles: list[KeptPlace]) -> list[RemovedPlace]:
    """Drop the tables `names` of the hidden database, which a dead process left half-built or renamed away, and return
    them."""
    removed = []
    for name in names:
        with own_trouble(troubles, str(name)):
            with suppress(Conflict):
                side.catalog.drop_table(name)
            removed.append(RemovedPlace(str(name), HIDDEN, None, 0, 0))
    return removed


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates so that a directory in another one comes before that one."""
    return sorted(candidates, key=lambda candidate: candidate.location, reverse=True)


def depth_of(each: tuple[Candidate, Claim]) -> int:
    """Return the depth of the candidate's location, by which deeper directories are removed first."""
    return each[0].location.count("/")


def table_of(claim: Claim) -> TableName:
    database, _, table = claim.table.partition(".")
    return TableName(database, table)
