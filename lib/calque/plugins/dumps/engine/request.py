"""What a dump is asked for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from calque.model.names import EventId
from calque.plugins.dumps.core.layout import DumpDirectory
from calque.plugins.dumps.core.options import DumpOptions
from calque.plugins.dumps.core.scope import Scope


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """`from_event` None asks for a bootstrap, else for the events after it, up to `to_event` (None: the source's
    newest) and at most `limit` of the policy's. `replaced` is the policy that the dumps before had. `change_root` is
    where the source's change manager keeps files, and `keeps_files` whether it does so for this database."""

    scope: Scope
    options: DumpOptions
    replaced: Scope | None = None
    from_event: EventId | None = None
    to_event: EventId | None = None
    limit: int | None = None
    change_root: str = ""
    keeps_files: bool = False


@dataclass(frozen=True, slots=True)
class FinishedDump:
    """`notes` are what a person should know of it."""

    directory: DumpDirectory
    last_event: EventId
    notes: tuple[str, ...] = ()
