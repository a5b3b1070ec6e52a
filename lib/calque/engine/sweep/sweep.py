"""The sweep of one target: it removes directories that nothing needs any more, and forgets old epochs.

A directory goes only if it was recorded before it became garbage: an epoch of the target's ledger left it, or tells
that it was abandoned; or it carries a claim of that ledger of which no epoch tells, and the process that made the claim
is dead. Two more things must be true. `grace` has passed since. Ledgers and catalog agree that nothing shown lies
there, and are asked after the directory was claimed for removal, because no process can take it up then. All else is
reported, and goes when an operator says so (`SweepTerms.unknown`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.core.formats.layout import place
from calque.core.records.places import LedgerPlaces
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.candidates import Candidate, KeptPlace, Origin, RemovedPlace
from calque.engine.sweep.evidence import Evidence, Neighbour, Spellings
from calque.engine.sweep.hidden_tables import hidden_tables
from calque.engine.sweep.remove import WAITING, Pool, Removal, drop_hidden
from calque.engine.sweep.stock import own_places, since_of
from calque.engine.sweep.target_position import TargetPosition, ended_ns, published_ns, target_position_of
from calque.engine.sweep.walk import WarehouseWalk
from calque.model.ledger import Epoch
from calque.model.records import LeftDirectory, RecordKey, RecordKind, SweepProgress, all_of, one_of
from calque.ports import Journal, Ledger

YOUNG = "it was not unknown for as long as the grace by now"
LEAST = 10
"""Fewer unknown directories than this go without an operator's confirmation, even if they are a large share of all."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """The epochs that a channel of notices at the target has not yet told of: those after `sent_epoch`, unless they
    were shown at `before_ns` or earlier."""

    sent_epoch: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class UnknownDirectory:
    """A directory that has neither a record nor an owner."""

    place: str
    reason: str
    files: int
    bytes: int


def keep_nothing(_before: int) -> None:
    """Keep nothing of the epochs below `_before`; the default where no history is kept."""


def tell_nobody(_done: int, _all: int) -> None:
    """Ignore how far the sweep is; the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTerms:
    """The terms of one target's sweep. `noted` is what its last sweep returned. `living_writer` is the process that may
    be writing there now, empty where there is none. What was shown at `held_ns` or later stays, because readers hold
    it; the rows of `unsent` epochs stay. `keep` is called with the number below which epochs are about to be forgotten.
    `aliases` are the spellings of the target's warehouse. With `unknown`, directories without a record and an owner go
    too; with `confirmed`, also if they are suspiciously many. With `dry` nothing is done, and `removed` is what would
    be tried."""

    noted: Mapping[str, int] = field(default_factory=dict)
    neighbours: Sequence[Neighbour] = ()
    living_writer: str = ""
    held_ns: int | None = None
    unsent: Unsent | None = None
    keep: Callable[[int], None] = keep_nothing
    aliases: tuple[str, ...] = ()
    unknown: bool = False
    confirmed: bool = False
    dry: bool = False
    tell: Callable[[int, int], None] = tell_nobody
    pool: Pool = ThreadPoolExecutor


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of one target's sweep. `kept` may go by its record, and stays. `unknown` has neither a record nor an
    owner. `held` are unknown directories that an operator has to confirm. `noted` are things that stay for now, each
    with the time since which it was seen so (nanoseconds): unknown directories by place, directories that deaths left
    by the number of their claim, hidden tables by name. `records` counts directories that wait for their grace.
    `epochs` counts forgotten epochs. `troubles` could not be looked at or not be removed, with the reason; they stay,
    and so do their records."""

    removed: tuple[RemovedPlace, ...] = ()
    kept: tuple[KeptPlace, ...] = ()
    unknown: tuple[UnknownDirectory, ...] = ()
    held: tuple[str, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)
    records: int = 0
    epochs: int = 0
    troubles: tuple[KeptPlace, ...] = ()


def sweep_target(side: TargetSide, journal: Journal, now_ns: int, terms: SweepTerms | None = None) -> SweepResult:
    """Sweep one target at the time `now_ns`. A target without epochs keeps everything. If all of its data stay at the
    source, no directory is looked at. Without `terms` nothing is held back for others and no operator has confirmed
    anything. Raises `Unavailable` and `Refused` as the ports do; what was removed by then is gone."""
    terms = terms or SweepTerms()
    position = target_position_of(side.ledger, journal)
    if position is None:
        return SweepResult(noted=terms.noted)
    before_ns = now_ns - int(side.policy.grace * 1e9)
    before_ns = before_ns if terms.held_ns is None else min(before_ns, terms.held_ns)
    sweep = Sweep(side, journal, terms, position, now_ns, before_ns)
    return sweep.run()


@dataclass(slots=True)
class Sweep:
    """One sweep of one target. A directory may go if the epoch that took it from readers was published at `before_ns`
    or earlier."""

    side: TargetSide
    journal: Journal
    terms: SweepTerms
    position: TargetPosition
    now_ns: int
    before_ns: int
    troubles: list[KeptPlace] = field(default_factory=list)

    def run(self) -> SweepResult:
        if self.side.admission.copies_some:
            spellings = Spellings((self.side.policy.warehouse, *self.terms.aliases))
            removal = Removal(
                self.side, Evidence(self.side, self.terms.neighbours, spellings), self.terms.tell, self.terms.pool
            )
            result = self.sweep_directories(removal)
            self.troubles += removal.troubles
        else:
            result = SweepResult()
        dropped, noted = self.hidden()
        epochs = 0
        if not self.terms.dry:
            epochs = forget_epochs(self.side.ledger, self.before_ns, self.terms.unsent, self.terms.keep)
        removed = (*result.removed, *dropped)
        notes = {**result.noted, **noted}
        return SweepResult(
            removed, result.kept, result.unknown, result.held, notes, result.records, epochs, tuple(self.troubles)
        )

    def sweep_directories(self, removal: Removal) -> SweepResult:
        evidence = removal.evidence
        dues = [self.due(ledger, places) for ledger, places in self.swept(evidence)]
        due = [candidate for each in dues for candidate in each.candidates]
        recorded = {evidence.spellings.key(candidate.location) for candidate in due}
        recorded |= {key for each in dues for key in each.waiting} | self.left_to_others(evidence)
        walk = WarehouseWalk(
            self.side,
            evidence,
            self.position,
            [one.admission for one in self.terms.neighbours if one.admission is not None],
            self.terms.living_writer,
            self.before_ns,
            recorded,
        )
        walk.look()
        self.troubles += walk.troubles
        # No record says since when these have no readers, so the grace counts from the first sweep that found them so.
        deaths = [each for each in walk.candidates if each.origin is Origin.DEATH]
        seen = {note_of(each): self.terms.noted.get(note_of(each), self.now_ns) for each in (*walk.unknown, *deaths)}
        waiting = [each for each in deaths if seen[note_of(each)] > self.before_ns]
        unknown = [each for each in walk.unknown if seen[note_of(each)] <= self.before_ns and self.is_old(each)]
        held = self.held(evidence, unknown)
        chosen = unknown if self.terms.unknown and not held else []
        if self.terms.unknown:
            removal.kept += [KeptPlace(each.location, YOUNG) for each in walk.unknown if each not in unknown]
        candidates = [*due, *(each for each in walk.candidates if each not in waiting), *chosen]
        if self.terms.dry:
            removal.foresee(candidates)
        else:
            removal.remove(candidates)
            for each in dues:
                record(each, removal)
        gone = {each.place for each in removal.removed} if not self.terms.dry else set()
        left = [each for each in walk.unknown if each.location not in gone]
        noted = [*left, *(each for each in deaths if each.location not in gone)]
        return SweepResult(
            tuple(removal.removed),
            tuple(removal.kept),
            tuple(self.as_unknown(each) for each in left),
            tuple(each.location for each in held),
            {note_of(each): seen[note_of(each)] for each in noted},
            records=sum(len(each.waiting) for each in dues) + len(waiting),
        )

    def is_old(self, candidate: Candidate) -> bool:
        """Tell whether nothing was written in the directory after `before_ns`."""
        return candidate.node is not None and candidate.node.newest_ns() <= self.before_ns

    def swept(self, evidence: Evidence) -> list[tuple[Ledger, LedgerPlaces]]:
        """Return the ledgers whose left directories this sweep removes, each with what it says: the target's own, and
        those of neighbours that are swept along."""
        others = zip(self.terms.neighbours, evidence.others, strict=True)
        along = [(neighbour.ledger, places) for neighbour, places in others if neighbour.is_swept_along]
        return [(self.side.ledger, evidence.own), *along]

    def due(self, ledger: Ledger, places: LedgerPlaces) -> DueDirectories:
        """Return the directories of one ledger that are due: left by epochs that are old enough for no reader to be
        there and that no sweep has dealt with, and those that earlier sweeps could not remove."""
        numbers = [epoch.epoch for epoch in ledger.epochs() if published_ns(epoch) <= self.before_ns]
        horizon, records = numbers[-1] if numbers else 0, ledger.records()
        progress = one_of(records, SweepProgress)
        done = progress.epoch if progress is not None else 0
        since = since_of(records)
        own = [each for each in places.left.values() if each.epoch > done and self.is_own_place(each.place)]
        new = [
            Candidate(
                left.place, Origin.RECORD, left.claim, left.epoch, left.reason, is_before_claims=left.epoch <= since
            )
            for left in own
            if left.epoch <= horizon
        ]
        kept = [
            Candidate(
                each.place, origin_of(each), each.claim, each.epoch, each.reason, is_before_claims=each.epoch <= since
            )
            for each in all_of(records, LeftDirectory)
            if each.epoch <= horizon or each.is_old
        ]
        return DueDirectories(ledger, horizon, new, kept, [left.place for left in own if left.epoch > horizon])

    def left_to_others(self, evidence: Evidence) -> set[str]:
        """Return the keys of directories that epochs of neighbours left which have sweeps of their own."""
        others = zip(self.terms.neighbours, evidence.others, strict=True)
        return {key for neighbour, places in others if not neighbour.is_swept_along for key in places.left}

    def is_own_place(self, location: str) -> bool:
        """Tell whether the location lies where calque writes at this target."""
        return any(place(base).contains(place(location)) for base in own_places(self.side.policy))

    def held(self, evidence: Evidence, unknown: Sequence[Candidate]) -> list[Candidate]:
        """Return `unknown` if these directories are suspiciously many and the operator has not confirmed: at least
        `LEAST`, and a larger share of all directories than `max_drop`. Else return none."""
        if not self.terms.unknown or self.terms.confirmed or len(unknown) < LEAST:
            return []
        others = sum(count > 0 for count in evidence.own.living.values())
        is_much = len(unknown) > self.side.policy.max_drop * (len(unknown) + others)
        return list(unknown) if is_much else []

    def hidden(self) -> tuple[list[RemovedPlace], Mapping[str, int]]:
        """Drop tables of the hidden database that are left behind and old enough, while the target has nothing to do.
        Return those that were dropped, and the others with the time since which they were seen (nanoseconds)."""
        side, terms = self.side, self.terms
        names = hidden_tables(side, self.troubles) if self.position.is_idle else []
        if not names or terms.dry:
            return [], {}
        later = target_position_of(side.ledger, self.journal)
        is_same = later == self.position
        since_ns = ended_ns(side.ledger, self.before_ns) if is_same else self.now_ns
        first_seen = {name: terms.noted.get(str(name), since_ns) for name in names}
        due = [name for name in names if is_same and first_seen[name] <= self.before_ns]
        return drop_hidden(side, due, self.troubles), {str(name): first_seen[name] for name in names if name not in due}

    def as_unknown(self, candidate: Candidate) -> UnknownDirectory:
        content = candidate.node.content() if candidate.node is not None else (0, 0)
        return UnknownDirectory(candidate.location, candidate.reason, *content)


@dataclass(frozen=True, slots=True)
class DueDirectories:
    """The directories of one ledger that a sweep has to deal with: those that epochs up to the `horizon` left (`new`),
    those that earlier sweeps could not remove (`kept`), and the places of those that are `waiting` for their grace."""

    ledger: Ledger
    horizon: int
    new: Sequence[Candidate]
    kept: Sequence[Candidate]
    waiting: Sequence[str]

    @property
    def candidates(self) -> list[Candidate]:
        return [*self.new, *self.kept]


def note_of(candidate: Candidate) -> str:
    """Return the name by which later sweeps know the candidate again: the location, or for a directory that a death
    left the number of its claim, because the place may be taken up again."""
    return candidate.claim if candidate.origin is Origin.DEATH else candidate.location


def origin_of(record: LeftDirectory) -> Origin:
    return Origin.OLD_RECORD if record.is_old else Origin.RECORD


def record(due: DueDirectories, removal: Removal) -> None:
    """Record in the ledger which of the due directories stay and may go later, before the epochs that tell of them are
    forgotten, and that the sweep has dealt with the epochs up to the horizon."""
    waiting = {each.place for each in removal.kept if each.reason in WAITING}
    waiting |= {each.place for each in removal.troubles}
    kept = [
        LeftDirectory(each.location, each.claim, each.epoch or 0, each.reason)
        for each in due.new
        if each.location in waiting
    ]
    done = [RecordKey(RecordKind.LEFT_DIRECTORY, each.location) for each in due.kept if each.location not in waiting]
    if kept:
        due.ledger.put_records(kept)
    if done:
        due.ledger.remove_records(done)
    if due.new:
        due.ledger.put_records([SweepProgress(due.horizon)])


def forget_epochs(
    ledger: Ledger, before_ns: int, unsent: Unsent | None = None, keep: Callable[[int], None] = keep_nothing
) -> int:
    """Forget the epochs that others superseded at `before_ns` or earlier, and return how many went. The newest epoch
    published by then stays, because readers saw it until the next one. Epochs that a channel of notices has still to
    tell of stay, too. `keep` is called first with the number below which epochs go (0: none go)."""
    old = [epoch.epoch for epoch in ledger.epochs() if is_forgotten(epoch, before_ns, unsent)]
    keep(old[-1] if old else 0)
    return ledger.forget(old[-1]) if old else 0


def is_forgotten(epoch: Epoch, before_ns: int, unsent: Unsent | None) -> bool:
    shown_ns = published_ns(epoch)
    is_unsent = unsent is not None and epoch.epoch > unsent.sent_epoch and shown_ns > unsent.before_ns
    return shown_ns <= before_ns and not is_unsent
