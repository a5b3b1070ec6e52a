"""The directories of a partition of an ACID table, and those that a state reads: `readable`.

The rules are those by which Hive chooses (AcidUtils.getAcidState and ParsedDeltaLight of Hive 3.1 to 4.2): the base
with the highest valid write id, then the deltas above it, wider ones before narrower ones, so that a compacted delta
hides those that it was made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from calque.core.acid.write_ids import ValidWriteIds

NAME = re.compile(r"(base|delta|delete_delta)_(\d+)(?:_(\d+))?(?:_(\d+))?(?:_v(\d+))?")


class DirectoryKind(StrEnum):
    BASE = "base"
    """All rows up to a write id."""
    DELTA = "delta"
    """Rows that were inserted."""
    DELETE_DELTA = "delete_delta"
    """The ids of rows that were deleted."""


@dataclass(frozen=True, slots=True)
class AcidDirectory:
    """A directory of an ACID table: its rows have the write ids from `low` to `high`.

    `statement` numbers the directories of one transaction; None in a name without such a number. `visibility` is the
    transaction that shows the directory, None where its write ids alone do. `is_compacted` says of a base
    that a compaction has made it of others: an INSERT OVERWRITE and a TRUNCATE make bases, too.
    """

    name: str
    kind: DirectoryKind
    low: int
    high: int
    statement: int | None = None
    visibility: int | None = None
    is_compacted: bool = False


def directory_of(name: str, compacted_bases: frozenset[str] = frozenset()) -> AcidDirectory | None:
    """Return what a directory's name says; None for any other name. `compacted_bases` are the names of bases whose file
    `_metadata_acid` says that a compaction wrote them, as Hive 3 does in place of a suffix."""
    found = NAME.fullmatch(name)
    if found is None:
        return None
    kind, first, second, third, visibility = found.groups()
    shown_by = int(visibility) if visibility is not None else None
    if kind == DirectoryKind.BASE:
        if second is not None:
            return None
        is_compacted = shown_by is not None or name in compacted_bases
        return AcidDirectory(name, DirectoryKind.BASE, 0, int(first), None, shown_by, is_compacted)
    if second is None:
        return None
    statement = int(third) if third is not None else None
    return AcidDirectory(name, DirectoryKind(kind), int(first), int(second), statement, shown_by)


@dataclass(frozen=True, slots=True)
class ReadableDirectories:
    """The directories whose rows a state has, in the order in which they were written. `base` is None where no base is
    among them: then files beside the directories, which are from before the table became transactional, have rows of
    the state, too (`reads_originals`). `obsolete` are directories that no reader of this or a later state needs."""

    base: AcidDirectory | None
    deltas: tuple[AcidDirectory, ...]
    obsolete: tuple[AcidDirectory, ...] = ()

    @property
    def reads_originals(self) -> bool:
        return self.base is None

    def all(self) -> tuple[AcidDirectory, ...]:
        return self.deltas if self.base is None else (self.base, *self.deltas)


class HistoryGone(Exception):
    """The error for a state whose directories a compaction has replaced: only bases of later states are left."""


def everything_committed(_transaction: int) -> bool:
    return True


def readable(
    directories: Iterable[AcidDirectory],
    valid: ValidWriteIds,
    is_committed: Callable[[int], bool] = everything_committed,
) -> ReadableDirectories:
    """Return the directories that a reader with these valid write ids reads. `is_committed` tells of the transactions
    in the suffixes of names. Raises `HistoryGone`.

    Example: with `delta_1_1`, `delta_2_2`, `delta_1_2_v9` and `delta_3_3` a reader of the write ids up to 3 reads
    `delta_1_2_v9` and `delta_3_3`. Before transaction 9 is committed it reads the three others.
    """
    shown = [one for one in directories if one.visibility is None or is_committed(one.visibility)]
    bases = [one for one in shown if one.kind is DirectoryKind.BASE]
    base = max(
        (one for one in bases if (valid.holds_all(one.high) if one.is_compacted else valid.holds(one.high))),
        key=lambda one: (one.high, one.visibility or 0),
        default=None,
    )
    oldest = min(bases, key=lambda one: one.high, default=None)
    if base is None and oldest is not None and oldest.is_compacted:
        raise HistoryGone(f"the oldest base is {oldest.name}")
    deltas = (one for one in shown if one.kind is not DirectoryKind.BASE and valid.holds_any(one.low, one.high))
    chosen, hidden = chosen_deltas(sorted(deltas, key=written_order), base.high if base is not None else 0, valid)
    obsolete_bases = [one for one in bases if one is not base and base is not None and one.high <= base.high]
    return ReadableDirectories(base, tuple(chosen), (*obsolete_bases, *hidden))


def written_order(one: AcidDirectory) -> tuple[int, int, int, str]:
    """Return the key by which deltas are looked at: a wider one comes before those that it was made of."""
    return one.low, -one.high, -1 if one.statement is None else one.statement, one.name


def chosen_deltas(
    deltas: Iterable[AcidDirectory], covered: int, valid: ValidWriteIds
) -> tuple[list[AcidDirectory], list[AcidDirectory]]:
    """Return the deltas that are read, and those that others hide. `deltas` come in `written_order`; rows up to the
    write id `covered` are in the base."""
    chosen: list[AcidDirectory] = []
    hidden: list[AcidDirectory] = []
    for one in deltas:
        last = chosen[-1] if chosen else None
        if one.high > covered:
            if valid.holds_any(covered + 1, one.high):
                chosen.append(one)
                covered = one.high
        elif last is not None and one.high == covered and belongs_to(one, last):
            chosen.append(one)
        else:
            hidden.append(one)
    return chosen, hidden


def belongs_to(one: AcidDirectory, last: AcidDirectory) -> bool:
    """Tell whether a directory is read beside the one that was chosen last: another statement of one transaction, or
    the inserts beside the deletes of one compaction."""
    is_same_range = (one.low, one.high, one.statement) == (last.low, last.high, last.statement)
    return last.statement is not None or is_same_range
