"""Location of a target on its chain: the cells that it shows, and the last state that looks the same.

A crash leaves the target ahead of its ledger. Marks (`calque.event`, `calque.incarnation`) say which definitions the
target already shows; contents are compared by fingerprint. A target never goes back, so a state before its newest mark
is no stop: the ledger ends at event 80, and table `t` carries the mark 86 of a window that died. States before event 86
are not shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calque.core.formats.bounded import number_of
from calque.core.states.fold import Chain, LineageId
from calque.core.states.state import Content, HeadValue, PartValue, Stage, StateDifference, StateValues, departure
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, Version

FOREIGN: LineageId = -1
"""The lineage of a table that stands at the target and is none of the chain's; further ones count down."""


@dataclass(frozen=True, slots=True)
class ObservedPart:
    """A partition at the target: its marks, the fingerprint of its files and their bytes."""

    event: EventId
    incarnation: str
    content: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class ObservedTable:
    """A table at the target under its source's name. `event` and `incarnation` are its marks; `content` is the
    fingerprint of a plain table's files, `size` their bytes; `parts` are the touched partitions that exist."""

    event: EventId
    incarnation: str
    content: str = ""
    size: int = 0
    parts: Mapping[str, ObservedPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocatedState:
    """The place of a target on a chain. `index` is the last state that looks like the target, None for none; no state
    before `first_stop` may be shown again."""

    index: int | None
    first_stop: int


def locate(
    start: StateValues,
    first: StateValues,
    stages: list[Stage],
    observed: Mapping[TableName, ObservedTable | None],
    shown: Callable[[TableName], EventId],
    extends: Callable[[Content, Content], bool],
) -> LocatedState:
    """Return the place on the chain of a target that shows the cells `start`, made from `observed`. `shown` gives the
    event that each table showed by the ledger. `extends` tells whether all files of one content are in another."""
    ahead = [
        mark for name, table in observed.items() if table is not None for mark in marks(table) if mark > shown(name)
    ]
    first_stop = 0
    if ahead:
        newest = max(ahead)
        first_stop = next((index for index, stage in enumerate(stages, 1) if stage.event_id >= newest), len(stages))
    difference = StateDifference()
    difference.forward(departure(start, first))
    located_index = 0 if not difference.differing and first_stop == 0 else None
    appended_index: int | None = None
    for index, stage in enumerate(stages, start=1):
        difference.forward(stage)
        if index >= first_stop and not difference.differing:
            located_index = index
        elif index >= first_stop and appended_index is None and only_appended(difference, extends):
            appended_index = index
    if located_index is None and appended_index is not None and appended_index < len(stages):
        first_stop = appended_index + 1
    return LocatedState(located_index, first_stop)


def only_appended(difference: StateDifference, extends: Callable[[Content, Content], bool]) -> bool:
    """Tell whether the observed cells have all of the state, and more files: an append in place began, which leaves no
    mark."""
    return all(
        delta.was is not None
        and delta.was == delta.now
        and not (delta.definition or delta.cascade or delta.added or delta.removed)
        and (
            not delta.content or (delta.was_head is not None and extends(delta.head_().content, delta.was_head.content))
        )
        and all(
            (was.lineage, was.version) == (now.lineage, now.version) and extends(now.content, was.content)
            for was, now in delta.changed.values()
        )
        for delta in difference.differing.values()
    )


def marks(table: ObservedTable) -> list[EventId]:
    return [table.event, *(part.event for part in table.parts.values())]


def observed_state(
    chain: Chain, observed: Mapping[TableName, ObservedTable | None], shown: Callable[[TableName], EventId]
) -> StateValues:
    """Return the cells that the target shows, with the lineages and versions that the chain has for them."""
    heads: dict[LineageId, list[tuple[EventId, Version, str]]] = {}
    parts: dict[tuple[LineageId, str], list[tuple[EventId, str, Version]]] = {}
    showing: dict[TableName, list[tuple[EventId, LineageId]]] = {}
    for name, first in chain.names.items():
        if first is not None:
            showing.setdefault(name, []).append((0, first))
    for step in chain.steps:
        for lineage, head in step.heads.items():
            heads.setdefault(lineage, []).append((head.since, head.version, head.incarnation))
        for cell, part in step.parts.items():
            if part is not None:
                parts.setdefault(cell, []).append((part.since, part.lineage, part.version))
        for name, bound in step.names.items():
            if bound is not None:
                showing.setdefault(name, []).append((step.event_id, bound))

    values = StateValues()
    for name, table in observed.items():
        if table is None:
            values.names[name] = None
            continue
        cursor = shown(name)
        lineage = lineage_of(chain, table, showing.get(name, []), heads, cursor, -len(values.heads) + FOREIGN)
        values.names[name] = lineage
        version = newest_at(heads.get(lineage, []), table.event) if table.event > cursor else BASE
        values.heads[lineage] = HeadValue(version, table.content, table.size)
        for partition, part_seen in table.parts.items():
            known_parts = [row for row in parts.get((lineage, partition), []) if row[0] <= part_seen.event]
            if part_seen.event > cursor and known_parts:
                _, part_lineage, part_version = known_parts[-1]
            else:
                part_lineage, part_version = partition, BASE
            values.parts[lineage, partition] = PartValue(part_lineage, part_version, part_seen.content, part_seen.size)
    for lineage_now in values.names.values():
        if lineage_now is not None:
            for chain_lineage, partition in chain.parts:
                if chain_lineage == lineage_now:
                    values.parts.setdefault((lineage_now, partition), None)
    return values


def lineage_of(
    chain: Chain,
    table: ObservedTable,
    showing: list[tuple[EventId, LineageId]],
    heads: Mapping[LineageId, list[tuple[EventId, Version, str]]],
    cursor: EventId,
    otherwise: LineageId,
) -> LineageId:
    """Return the lineage that an observed table is, of those that the chain shows under its name; `otherwise` where it
    is none of them."""
    for _, lineage in showing:
        if lineage in chain.complete and any(row[2] == table.incarnation for row in heads.get(lineage, [])):
            return lineage
    if (read_at := event_of_read(table.incarnation)) > cursor:
        return next((lineage for event, lineage in reversed(showing) if event <= read_at), otherwise)
    old = [(event, lineage) for event, lineage in showing if lineage not in chain.complete]
    if table.event <= cursor:
        return next((lineage for event, lineage in old if event == 0), otherwise)
    return next((lineage for event, lineage in reversed(old) if event <= table.event), otherwise)


def event_of_read(incarnation: str) -> EventId:
    """Return the event of the exact read that made the table; 0 for a table that an event made."""
    digits = incarnation.removeprefix("r")
    return number_of(digits) if incarnation.startswith("r") else 0


def newest_at(rows: list[tuple[EventId, Version, str]], event: EventId) -> Version:
    """Return the newest version up to the event; `BASE` where there is none."""
    versions = [version for since, version, _ in rows if since <= event]
    return versions[-1] if versions else BASE
