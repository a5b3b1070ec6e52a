"""The versions of a Delta replica, with the events of the source that each of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from calque.errors import Refused
from calque.model.names import EventId, TableName
from calque.plugins.delta_replicas.core.log import ShownVersion


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a Delta replica. At every event from `from_event` to `event_id`, both included, the source's table
    was as the version shows it."""

    version: int
    from_event: EventId
    event_id: EventId
    published_at: str
    """The time of the commit: ISO 8601, UTC."""


def table_versions(commits: Sequence[tuple[int, int, ShownVersion]], shows: EventId) -> list[TableVersion]:
    """Return the versions that calque's commits made, oldest first. `commits` are in order: version, time in
    milliseconds since 1970, and what the commit shows. `shows` is the event that the target's table shows now."""
    versions: list[TableVersion] = []
    end = shows
    later: ShownVersion | None = None
    for version, made_ms, shown in reversed(commits):
        event_id = shown.state.event_id
        if later is not None and later.state.event_id != event_id:
            end = later.state.first_event - 1
        published_at = datetime.fromtimestamp(made_ms / 1000, UTC).isoformat(timespec="milliseconds")
        versions.append(TableVersion(version, event_id, max(end, event_id), published_at))
        later = shown
    return versions[::-1]


def version_showing(table: TableName, versions: Sequence[TableVersion], event_id: EventId) -> TableVersion:
    """Return the newest version that shows the event. Raises `Refused`, with its neighbours, where none does."""
    for one in reversed(versions):
        if one.from_event <= event_id <= one.event_id:
            return one
    before = next((one for one in reversed(versions) if one.event_id < event_id), None)
    after = next((one for one in versions if one.from_event > event_id), None)
    neighbours = [f"version {one.version} shows {span_of(one)}" for one in (before, after) if one is not None]
    why = f"{', '.join(neighbours).capitalize()}" if neighbours else "Its log has no version of calque's"
    if after is None:
        todo = "Wait until the target has come there"
    elif before is None:
        todo = "Older versions are forgotten after the target's grace: take the first one"
    else:
        todo = "The target went from one to the other at once: take one of them"
    raise Refused(f"No version of {table} shows event {event_id}", why, todo)


def span_of(version: TableVersion) -> str:
    if version.from_event == version.event_id:
        return f"event {version.event_id}"
    return f"events {version.from_event} to {version.event_id}"
