"""The dump that Hive 4 would make next: an increment on the last loaded dump, or a bootstrap where there is no dump."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calque.errors import Refused, Unavailable
from calque.model.names import EventId
from calque.plugins.dumps.core.dump_metadata import read_dump_metadata
from calque.plugins.dumps.core.layout import DumpLayout
from calque.plugins.dumps.core.scope import scope_of_policy
from calque.plugins.dumps.engine.directories import finished_dumps
from calque.plugins.dumps.engine.dump import DumpPlace
from calque.plugins.dumps.engine.request import DumpRequest


@dataclass(frozen=True, slots=True)
class WaitingDump:
    """A finished dump that no target has loaded yet: it has no `_finished_load`."""

    directory: str
    last_event: EventId


def next_dump(place: DumpPlace, request: DumpRequest) -> DumpRequest | WaitingDump:
    """Return the request for the next dump of the database, as Hive 4 chooses it: a bootstrap where there is no dump,
    an increment on the newest dump where that one was loaded. Return the newest dump where it was not loaded yet.
    Raises `Refused` where the statement has a FROM or the layout of Hive 3.1, and `Unavailable` where the newest dump
    disappears."""
    if request.from_event is not None:
        raise Refused(
            "FROM is not for the mode hive4",
            "There each dump goes on from the last loaded one",
            "Leave FROM out, or write WITH ('calque.repl.mode' = 'seed')",
        )
    if request.options.layout is not DumpLayout.HIVE_4:
        raise Refused(
            "The mode hive4 has Hive 4's layout alone",
            "Loads of Hive 3.1 leave no mark in a dump",
            "Leave 'calque.repl.layout' out, or write WITH ('calque.repl.mode' = 'seed')",
        )
    dumps = [
        each
        for each in finished_dumps(place.storage, place.root, request.scope.database)
        if each.directory.layout is DumpLayout.HIVE_4
    ]
    if not dumps:
        return request
    newest = dumps[-1].directory
    content = place.storage.read(newest.dump_metadata)
    if content is None:
        raise Unavailable(f"{newest.dump_metadata} is not there", "Somebody removes the dump", "Try again")
    metadata = read_dump_metadata(content.decode())
    last_event = metadata.from_event if metadata.is_bootstrap else metadata.to_event
    if not place.storage.files([newest.finished_load]):
        return WaitingDump(newest.directory, last_event)
    is_same = metadata.policy is None or metadata.policy == request.scope.policy
    replaced = None if is_same or metadata.policy is None else scope_of_policy(metadata.policy)
    return replace(request, from_event=last_event, replaced=replaced)
