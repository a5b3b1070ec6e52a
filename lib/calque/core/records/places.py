"""Directories by a ledger: those that its target shows, and those that the target left, with the epoch and the reason.

The rows of a ledger, in the order of epoch and step, are put together as `core.records.contents` does it. An epoch
leaves a directory where an object had it before the epoch, or within it, and no object has it at the epoch's end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from calque.core.formats.layout import place
from calque.core.records.contents import BEGINNINGS, UNSURE
from calque.model.ledger import Epoch, PlaceRow
from calque.model.names import TableName


def key_of(location: str) -> str:
    """Return one spelling for all spellings of one place that differ in form only."""
    return str(place(location))


REPLACED, DROPPED, NEVER_SHOWN = "replaced", "dropped", "never shown"


@dataclass(frozen=True, slots=True)
class LeftPlace:
    """A directory that `epoch` left. `claim` is the number of the claim on it, empty where no row tells the number."""

    place: str
    claim: str
    epoch: int
    reason: str
    table: TableName


@dataclass(frozen=True, slots=True)
class Held:
    """A directory that an object has, with the number of the claim on it, empty where no row tells the number."""

    place: str
    claim: str


@dataclass(slots=True)
class TableDirectories:
    """The directories of one table: its own, those of its partitions, and those of partitions between two names."""

    incarnation: str
    own: Held | None = None
    partitions: dict[str, Held] = field(default_factory=dict)
    between_names: dict[tuple[str, int], Held] = field(default_factory=dict)
    before: dict[str, Held] = field(default_factory=dict)
    """The directories of partitions before a row that begins the table's content anew. A later row that names a
    partition and no directory means the directory that the partition had here."""

    def all(self) -> list[Held]:
        own = [self.own] if self.own is not None else []
        return [*own, *self.partitions.values(), *self.between_names.values()]


@dataclass(slots=True)
class LedgerPlaces:
    """The directories that a ledger tells of. `living` counts the objects that have each directory, by its key; `left`
    are the directories that were left, each as of the last epoch that left it; `told` are the numbers of all claims in
    the ledger."""

    living: Counter[str] = field(default_factory=Counter)
    left: dict[str, LeftPlace] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    epoch: int = 0
    tables: dict[TableName, TableDirectories] = field(default_factory=dict)
    key: Callable[[str], str] = key_of
    _renamed: dict[tuple[str, int], TableDirectories] = field(default_factory=dict)
    _released: dict[str, LeftPlace] = field(default_factory=dict)

    def holds(self, key: str) -> bool:
        """Tell whether an object has the directory with that key."""
        return self.living[key] > 0

    def _take(self, row: PlaceRow) -> None:
        if row.epoch != self.epoch:
            self._settle()
            self.epoch = row.epoch
        if row.claim:
            self.told.add(row.claim)
        if row.partition:
            self._of_partition(self.tables.setdefault(row.name, TableDirectories("")), row)
        elif row.change == "drop_table":
            if (table := self.tables.pop(row.name, None)) is not None:
                self._release(table.all(), row, DROPPED)
        elif row.change == "rename_away":
            if (table := self.tables.pop(row.name, None)) is not None:
                self._renamed[row.incarnation, row.event_id] = table
        elif row.change != UNSURE:
            self._of_table(row)

    def _of_table(self, row: PlaceRow) -> None:
        before = self.tables.get(row.name)
        if row.change in BEGINNINGS:
            table = TableDirectories(row.incarnation)
            if before is not None:
                table.own, table.before = before.own, before.partitions
                self._release([*before.partitions.values(), *before.between_names.values()], row, REPLACED)
        elif before is not None and before.incarnation in (row.incarnation, ""):
            table = before
            table.incarnation = row.incarnation
        elif (renamed := self._renamed.pop((row.incarnation, row.event_id), None)) is not None:
            table = renamed
        else:
            table = TableDirectories(row.incarnation)
        self.tables[row.name] = table
        table.own = self._moved(table.own, row)

    def _of_partition(self, table: TableDirectories, row: PlaceRow) -> None:
        link = (row.incarnation, row.event_id)
        held = table.partitions.pop(row.partition, None)
        if row.change == "drop_partition":
            if held is not None:
                self._release([held], row, DROPPED)
            return
        if row.change == "rename_away":
            if held is not None:
                table.between_names[link] = held
            return
        if row.change == "rename_partition" and link in table.between_names:
            held = table.between_names.pop(link)
        if held is None and not row.location and (known := table.before.get(row.partition)) is not None:
            held = self._acquired(known)
        moved = self._moved(held, row)
        if moved is not None:
            table.partitions[row.partition] = moved

    def _moved(self, held: Held | None, row: PlaceRow) -> Held | None:
        """Return the object's directory after the row: `held`, the one before, where the row names none."""
        if not row.location:
            return held
        key = self.key(row.location)
        if held is not None and held.place == key:
            return Held(key, row.claim or held.claim)
        if held is not None:
            self._release([held], row, REPLACED)
        return self._acquired(Held(key, row.claim))

    def _acquired(self, held: Held) -> Held:
        self.living[held.place] += 1
        self.left.pop(held.place, None)
        return held

    def _release(self, directories: Iterable[Held], row: PlaceRow, reason: str) -> None:
        for held in directories:
            self.living[held.place] -= 1
            if held.place in self._released and not held.claim:
                continue
            self._released[held.place] = LeftPlace(held.place, held.claim, row.epoch, reason, row.name)

    def _settle(self) -> None:
        for key, left in self._released.items():
            if not self.holds(key):
                self.left[key] = left
        self._released.clear()


def places_of(
    rows: Iterable[PlaceRow], epochs: Iterable[Epoch] = (), key: Callable[[str], str] = key_of
) -> LedgerPlaces:
    """Return the directories that the rows tell of, with those that `epochs` say were abandoned. `rows` are in the
    order of epoch and step; `key` gives one spelling for one place."""
    places = LedgerPlaces(key=key)
    for row in rows:
        places._take(row)
    places._settle()
    for epoch in epochs:
        for directory in epoch.abandoned:
            place_key = key(directory.place)
            places.told.add(directory.claim)
            before = places.left.get(place_key)
            if not places.holds(place_key) and (before is None or before.epoch < epoch.epoch):
                nobody = TableName("", "")
                places.left[place_key] = LeftPlace(place_key, directory.claim, epoch.epoch, NEVER_SHOWN, nobody)
    return places
