"""The statements of ledgers and of the catalog about directories at a target, collected for one sweep."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from calque.core.formats.layout import place
from calque.core.policy.admit import Admission
from calque.core.records.places import LedgerPlaces, places_of
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.stock import own_places
from calque.engine.target.references import ReferencedLocations, lies_in, references_of
from calque.model.names import TableName
from calque.model.records import LedgerIdentity, one_of
from calque.ports import Ledger


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another target of the deployment, or a database that dumps are loaded into, whose ledger may show directories
    below the swept target's warehouse."""

    ledger: Ledger
    admission: Admission | None = None
    """The tables that another target admits; None for a database of dumps."""
    is_swept_along: bool = False
    """True where the sweep also removes what this neighbour's epochs left."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """The comparison of locations: the first of `aliases` is the usual spelling of a directory, the others count as
    equal to it."""

    aliases: tuple[str, ...] = ()

    def key(self, location: str) -> str:
        """Return a spelling that is the same for all ways of writing the place `location`."""
        own = place(location)
        for alias in self.aliases[1:]:
            other = place(alias)
            if other.contains(own):
                return str(place(self.aliases[0] + own.path[len(other.path) :]))
        return str(own)


@dataclass(slots=True)
class Evidence:
    """The evidence for one sweep. `own` is what the swept target's ledger says, `others` what the ledgers of its
    neighbours say; `ledgers` has all of these by the ledgers' names. `references` is what the target's catalog refers
    to."""

    side: TargetSide
    neighbours: Sequence[Neighbour]
    spellings: Spellings
    own: LedgerPlaces = field(init=False)
    others: list[LedgerPlaces] = field(init=False)
    ledgers: dict[str, LedgerPlaces] = field(init=False)
    references: ReferencedLocations = field(init=False)
    _living: list[str] = field(init=False)
    _epochs: tuple[int, ...] | None = None
    _names: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ask_ledgers()
        self.references = references_of(self.side, self.spellings.key)

    def ask_ledgers(self) -> None:
        """Read the ledgers again, unless none of them has a new epoch since the last call."""
        ledgers = [self.side.ledger, *(neighbour.ledger for neighbour in self.neighbours)]
        epochs = tuple(last.epoch if (last := ledger.last_epoch()) is not None else 0 for ledger in ledgers)
        if epochs == self._epochs:
            return
        self._epochs = epochs
        self.own = self._places(self.side.ledger)
        self.others = [self._places(neighbour.ledger) for neighbour in self.neighbours]
        named = [(self.side.ledger, self.own)]
        named += [(neighbour.ledger, places) for neighbour, places in zip(self.neighbours, self.others, strict=True)]
        identities = ((one_of(ledger.records(), LedgerIdentity), places) for ledger, places in named)
        self.ledgers = {identity.ledger: places for identity, places in identities if identity is not None}
        living = {key for places in (self.own, *self.others) for key, count in places.living.items() if count > 0}
        self._living = sorted(living)
        self._names = {}

    def ask_catalog(self, locations: Collection[str], names: Iterable[TableName]) -> None:
        """Read from the catalog which tables lie at, around or below `locations`, and where the tables `names` lie."""
        self.references = references_of(self.side, self.spellings.key, around=locations, names=frozenset(names))

    def is_living(self, key: str) -> bool:
        """Tell whether a ledger says that the directory `key`, or one below it, is shown."""
        return is_within(self._living, key)

    def is_referenced(self, key: str) -> bool:
        """Tell whether the catalog has a table or partition that lies in the directory `key` or below it, as of the
        last `ask_catalog`."""
        return self.references.within(key)

    def is_shown_elsewhere(self, location: str) -> bool:
        """Tell whether a ledger or the catalog knows a directory with the same path below another base. It may be
        this directory under a spelling that `aliases` do not have."""
        for base in own_places(self.side.policy):
            if place(base).contains(place(location)):
                relative = place(location).path[len(place(base).path) :]
                own = self.spellings.key(base)
                name = relative.rpartition("/")[2]
                return any(key.endswith(relative) and not lies_in(key, own) for key in self._by_name().get(name, ()))
        return False

    def _by_name(self) -> Mapping[str, Sequence[str]]:
        """Return the keys of all known directories by the last names of their paths."""
        if not self._names:
            left = (key for places in (self.own, *self.others) for key in places.left)
            for key in {*self._living, *left, *self.references.sorted_locations}:
                self._names.setdefault(key.rpartition("/")[2], []).append(key)
        return self._names

    def _places(self, ledger: Ledger) -> LedgerPlaces:
        return places_of(ledger.places(), ledger.epochs(), self.spellings.key)


def is_within(sorted_keys: Sequence[str], key: str) -> bool:
    return any(
        index < len(sorted_keys) and (sorted_keys[index] == key or sorted_keys[index].startswith(f"{key}/"))
        for index in (bisect_left(sorted_keys, key), bisect_left(sorted_keys, f"{key}/"))
    )
