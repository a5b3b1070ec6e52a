"""The kinds of journals, file systems, formats and target parts that plugins add below sources and targets. Spark's
workers get these values, too."""

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
    """A journal whose rows can also be read as columns."""

    def rows(self, span: Span) -> pa.Table:
        """Return the rows of the span without their messages, as columns. Raises `Refused` where the journal does not
        have all of the span."""


OpenJournal = Callable[[], tuple[JournalTable, EvidenceStore]]
"""A function that opens a journal and its evidence, also in processes that Spark starts. It has to be a function of a
module, or a `functools.partial` of one over small values, so that it can be pickled."""


class MadeJournal(NamedTuple):
    """The report on what was made for a journal before its capture begins: as a JSON document, and as lines for
    people."""

    document: Mapping[str, Any]
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalKind:
    """Journals of one format. `opener` returns the function that opens the journal at an address. `make` makes what
    capture does not make by itself, such as topics; None where there is no such thing."""

    format: str
    opener: Callable[[Source, StateFolder, JournalAddress], OpenJournal]
    make: Callable[[Source, JournalAddress], MadeJournal] | None = None


def open_delta(journal: str, evidence: str, options: Mapping[str, Any]) -> tuple[JournalTable, EvidenceStore]:
    """Return the journal and the evidence in the Delta tables at these paths or URIs."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    return DeltaJournal(journal, options), DeltaEvidence(evidence, options)


def delta_opener(source: Source, folder: StateFolder, _address: JournalAddress) -> OpenJournal:
    tables = folder.table(source.places.journal), folder.table(source.places.evidence)
    return partial(open_delta, *tables, folder.table_options)


DELTA = JournalKind(format="delta", opener=delta_opener)


class TargetContext(NamedTuple):
    """The context in which a plugin replaces parts of a target.

    `storage` has effects as the lease permits, `bare_storage` without asking the lease. `next_epoch` returns the number
    of the epoch that will tell of what is done now.
    """

    plug: Target
    folder: StateFolder
    storage: Storage
    bare_storage: Storage
    next_epoch: Callable[[], int]


TargetPartsKind = Callable[[TargetParts, TargetContext], TargetParts]
"""A function that replaces parts of a target, as its plug wants it. It returns the parts of any other target
unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WiringKinds:
    """The kinds of all plugins that a wiring uses, the kernel's own included."""

    journals: tuple[JournalKind, ...] = (DELTA,)
    file_systems: tuple[FileSystemKind, ...] = ()
    target_parts: tuple[TargetPartsKind, ...] = ()
    """Functions that replace parts of targets, in the order of their calls: a later one wraps what an earlier one
    made."""
    formats: tuple[TableFormat, ...] = ()

    def journal(self, format: str) -> JournalKind:  # noqa: A002 - the key's name
        """Return the kind of journals of this format. Raises `Refused` for a format that no plugin has."""
        for kind in self.journals:
            if kind.format == format:
                return kind
        raise Refused(f'Journals of the format "{format}" can\'t be opened', "No plugin has it", "Name another format")
