"""What plugins plug in below sources and targets; Spark's workers get these values, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from calque.adapters.files.system import FileSystemKind
from calque.config.plugs import Source, Target
from calque.errors import Refused
from calque.model.names import Span
from calque.ports import EvidenceStore, Journal, Storage, TargetParts
from calque.ports.formats import TableFormat
from calque.wiring.journal_location import JournalAddress
from calque.wiring.state_folder import StateFolder

if TYPE_CHECKING:
    import pyarrow as pa


class JournalTable(Journal, Protocol):
    """A journal whose rows are read as columns, too."""

    def rows(self, span: Span) -> pa.Table:
        """The rows of the span without their messages. Raises `Refused` where the span is not all there."""


OpenJournal = Callable[[], tuple[JournalTable, EvidenceStore]]
"""Opens a journal and its evidence, also in processes that Spark starts: a function of a module, or a
`functools.partial` of one, over small values."""


class MadeJournal(NamedTuple):
    """What was made before capture begins, as a document and for people."""

    document: Mapping[str, Any]
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalKind:
    """How journals of a format are opened, and made where capture does not make them by itself."""

    format: str
    opener: Callable[[Source, StateFolder, JournalAddress], OpenJournal]
    make: Callable[[Source, JournalAddress], MadeJournal] | None = None


def open_delta(journal: str, evidence: str, options: Mapping[str, Any]) -> tuple[JournalTable, EvidenceStore]:
    """The journal and the evidence in the tables of these paths or URIs."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    return DeltaJournal(journal, options), DeltaEvidence(evidence, options)


def delta_opener(source: Source, folder: StateFolder, _address: JournalAddress) -> OpenJournal:
    tables = folder.table(source.places.journal), folder.table(source.places.evidence)
    return partial(open_delta, *tables, folder.table_options)


DELTA = JournalKind(format="delta", opener=delta_opener)


class TargetContext(NamedTuple):
    """What a target's parts are replaced with: its storage as the lease permits, and without asking it; and the number
    of the epoch that will tell of what is done now."""

    plug: Target
    folder: StateFolder
    storage: Storage
    bare_storage: Storage
    next_epoch: Callable[[], int]


TargetPartsKind = Callable[[TargetParts, TargetContext], TargetParts]
"""Replaces parts of a target, as its plug wants it; those of every other target are the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WiringKinds:
    """All of them."""

    journals: tuple[JournalKind, ...] = (DELTA,)
    file_systems: tuple[FileSystemKind, ...] = ()
    target_parts: tuple[TargetPartsKind, ...] = ()
    """From the innermost on."""
    formats: tuple[TableFormat, ...] = ()

    def journal(self, format: str) -> JournalKind:  # noqa: A002 - the key's name
        """Raises `Refused` for a format that nothing here knows."""
        for kind in self.journals:
            if kind.format == format:
                return kind
        raise Refused(f'Journals of the format "{format}" can\'t be opened', "No plugin has it", "Name another format")
