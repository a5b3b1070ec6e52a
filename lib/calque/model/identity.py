"""Who is who: what two metastores, the directories that targets write below, and the hidden database say of themselves.

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
    """Ids are empty where a metastore has none."""

    source: str
    source_id: str
    target_id: str

    def __str__(self) -> str:
        return f"{self.source} ({self.source_id or 'without an id'}) at {self.target_id or 'a metastore without an id'}"


@dataclass(frozen=True, slots=True)
class MarkedDirectory:
    """A directory that targets write below, as a spelling of its place leads to it. `nonce` is its random name, empty
    where it was never marked; `first_place` the spelling under which it was. `targets` are the ids of the metastores
    that were seen to use it; `sources` the names of sources whose replicas lie in it, with the ids of these."""

    location: str
    nonce: str = ""
    first_place: str = ""
    targets: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerPosition:
    """How far a ledger was seen to be: the newest generation of the lease that its writer took, its epoch, and the
    writer's id."""

    generation: int = 0
    epoch: int = 0
    writer: str = ""


@dataclass(frozen=True, slots=True)
class HiddenIdentity:
    """What the target's hidden database remembers of a deployment. `nonce` is the record's random name."""

    nonce: str
    source_id: str = ""
    ledgers: Mapping[str, LedgerPosition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answers:
    """What answers now, for one target. `source_id` and `source_event` are None where the source does not answer, or
    need not be asked; an id is empty where a metastore has none. `hidden` is what the metastore remembers by the
    warehouse that the ledger knows, `newest` is the lease by that of the target's policy."""

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
