"""Remove what nothing needs any more at one target, and from its ledger.

Only directories that calque made are looked at: natural ones say so by a hidden child, versioned ones by their place.
One goes when four things hold:

1. Nothing at the target refers to it, nor to anything below it.
2. Nothing that is still to be done may want it: it belongs to no event beyond the position and to no table that is set
   aside. So neither a copy that takes hours nor the repetition after a crash is hit.
3. No reader may be left in it: it was seen unreferenced `grace` ago by an earlier sweep, or the ledger proves that
   nothing lost its files since. While the target changes it proves nothing, and the first sweep only takes notes.
4. Nothing in it was written within `grace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calque.core.admit import Admission
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.directory_tree import DirectoryEntry
from calque.engine.sweep.hidden_tables import hidden_tables
from calque.engine.sweep.references import references_of
from calque.engine.sweep.remove import RemovedItem, drop_hidden, remove_directory, remove_staging
from calque.engine.sweep.target_position import ended_ns, published_ns, target_position_of
from calque.engine.sweep.unreferenced_directories import UnreferencedDirectories
from calque.model.ledger import Epoch
from calque.ports import Journal, Ledger


@dataclass(frozen=True, slots=True)
class Unsent:
    """What a channel of notices at the target has still to tell of: epochs after `sent_epoch`, unless they were shown
    before `before_ns`."""

    sent_epoch: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep of one target did. `noted` are the directories that nothing refers to and that stay for now, each
    with the time by which that was so (nanoseconds): the next sweep wants it back."""

    removed: tuple[RemovedItem, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)
    epochs: int = 0


def keep_nothing(_before: int) -> None:
    """What is kept of epochs below that number where there is no history."""


def sweep_target(
    side: TargetSide,
    journal: Journal,
    now_ns: int,
    noted: Mapping[str, int],
    other_admissions: Sequence[Admission] = (),
    held_ns: int | None = None,
    unsent: Unsent | None = None,
    keep: Callable[[int], None] = keep_nothing,
) -> SweepResult:
    """Sweep one target. `noted` is what its last sweep returned; `other_admissions` are the admissions of other targets
    whose warehouse overlaps this one's: what they may have made is left to them. What was shown at `held_ns` or later
    is held by readers, and stays; of `unsent` epochs the rows stay. `keep` is called with the number below which epochs
    are about to be forgotten. A target without epochs keeps all; of one whose data stay at the source no directory is
    looked at.
    Raises `Unavailable` and `Refused`; what was removed by then is gone."""
    target_position = target_position_of(side.ledger, journal)
    if target_position is None:
        return SweepResult(noted=noted)
    before_ns = now_ns - int(side.policy.grace * 1e9)
    before_ns = before_ns if held_ns is None else min(before_ns, held_ns)
    hidden_names = hidden_tables(side) if target_position.is_idle else []
    directories: Sequence[DirectoryEntry] = ()
    staging: Sequence[DirectoryEntry] = ()
    if side.admission.copies_some:
        leftovers = UnreferencedDirectories(side, target_position, references_of(side), before_ns, other_admissions)
        leftovers.look()
        directories, staging = leftovers.directories, leftovers.staging
    if not directories and not staging and not hidden_names:
        return SweepResult(epochs=forget_epochs(side.ledger, before_ns, unsent, keep))
    if directories:
        # The first look was no snapshot: a rename under it hides a table. A second one has to miss the same.
        references = references_of(side)
        directories = [node for node in directories if not references.within(node.key)]
    later_position = target_position_of(side.ledger, journal)
    is_doubtful = later_position is None or not later_position.set_aside <= target_position.set_aside
    unreferenced_since_ns = (
        ended_ns(side.ledger, before_ns) if target_position.is_idle and later_position == target_position else now_ns
    )
    next_noted: dict[str, int] = {}
    removed = [remove_staging(side.storage, node) for node in staging]
    for name in hidden_names:
        first_seen_ns = noted.get(str(name), unreferenced_since_ns)
        if later_position == target_position and first_seen_ns <= before_ns:
            removed.append(drop_hidden(side.catalog, name))
        else:
            next_noted[str(name)] = first_seen_ns
    for node in directories:
        first_seen_ns = noted.get(node.key, unreferenced_since_ns)
        if not is_doubtful and first_seen_ns <= before_ns and node.newest_ns() <= before_ns:
            removed.append(remove_directory(side.storage, node))
        else:
            next_noted[node.key] = first_seen_ns
    return SweepResult(tuple(removed), next_noted, forget_epochs(side.ledger, before_ns, unsent, keep))


def forget_epochs(
    ledger: Ledger, before_ns: int, unsent: Unsent | None = None, keep: Callable[[int], None] = keep_nothing
) -> int:
    """Forget epochs that were superseded before then, and that no channel of notices has still to tell of. How many
    went."""
    old = [epoch.epoch for epoch in ledger.epochs() if is_forgotten(epoch, before_ns, unsent)]
    keep(old[-1] if old else 0)
    return ledger.forget(old[-1]) if old else 0


def is_forgotten(epoch: Epoch, before_ns: int, unsent: Unsent | None) -> bool:
    shown_ns = published_ns(epoch)
    is_unsent = unsent is not None and epoch.epoch > unsent.sent_epoch and shown_ns > unsent.before_ns
    return shown_ns <= before_ns and not is_unsent
