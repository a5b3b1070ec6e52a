"""The request for a dump, and the finished dump."""

from __future__ import annotations

from dataclasses import dataclass

from calque.model.names import EventId
from calque.plugins.dumps.core.layout import DumpDirectory
from calque.plugins.dumps.core.options import DumpOptions
from calque.plugins.dumps.core.scope import Scope


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """The request for one dump. `from_event` None asks for a bootstrap. Else the dump has the events after it, up to
    `to_event` (None: the source's newest), and at most `limit` events of the policy. `replaced` is the policy of the
    dumps before, None where it did not change. `change_root` is the directory where the source's change manager keeps
    files, empty where there is none; `keeps_files` says whether it keeps those of this database."""

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
    """A dump that is finished. `last_event` is the event that the next increment begins after. `notes` are sentences
    for the user."""

    directory: DumpDirectory
    last_event: EventId
    notes: tuple[str, ...] = ()
