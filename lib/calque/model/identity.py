"""The identities of a deployment: what two metastores, the directories that targets write below, and the hidden
database say of themselves.

A deployment is (source name, id of the source's metastore, id of the target's). Where a source has no id, its name
stands for it. The state folder is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.model.lease import Generation
from calque.model.names import EventId


@dataclass(frozen=True, slots=True)
class Deployment:
    """A source and a target metastore. Ids are empty where a metastore has none."""

    source: str
    source_id: str
    target_id: str

    def __str__(self) -> str:
        return f"{self.source} ({self.source_id or 'without an id'}) at {self.target_id or 'a metastore without an id'}"


@dataclass(frozen=True, slots=True)
class MarkedDirectory:
    """A directory below which targets write, reached by the spelling `location`. `nonce` is its random name, empty
    where it was never marked; `first_place` is the spelling under which it was marked. `targets` are the ids of the
    metastores that were seen to use it; `sources` are the names of the sources whose replicas lie in it, with these
    sources' ids."""

    location: str
    nonce: str = ""
    first_place: str = ""
    targets: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerPosition:
    """The farthest position at which a ledger was seen: the newest generation of the lease that its writer took, its
    epoch, and the writer's id."""

    generation: int = 0
    epoch: int = 0
    writer: str = ""


@dataclass(frozen=True, slots=True)
class HiddenIdentity:
    """The record of a deployment in the target's hidden database. `nonce` is the record's random name; `ledgers` has a
    position by the id of each ledger that wrote to the target."""

    nonce: str
    source_id: str = ""
    ledgers: Mapping[str, LedgerPosition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answers:
    """The identities that the services of one target give now. `source_id` and `source_event` are None where the source
    does not answer, or need not be asked; an id is empty where a metastore has none. `hidden` is the metastore's record
    for the warehouse that the ledger knows, `newest` the lease for the warehouse of the target's policy."""

    source: str
    target: str
    target_id: str
    source_id: str | None = None
    source_event: EventId | None = None
    directories: tuple[MarkedDirectory, ...] = ()
    hidden: HiddenIdentity | None = None
    newest: Generation | None = None
    warehouse: str = ""
    """The first spelling of the target's warehouse."""

    @property
    def deployment(self) -> Deployment:
        return Deployment(self.source, self.source_id or "", self.target_id)
