"""Facets (docs/glossary.md) that are written after a group's last hop, as far as the hops lead."""

from __future__ import annotations

import math
from collections.abc import Collection

from calque.core.plan.problem import Problem
from calque.core.states.fold import LineageId
from calque.core.states.walk import StateWalk
from calque.model.names import TableName
from calque.model.plan import BASE, FacetEvent, Version


def facets_of(
    problem: Problem, reached: int, written: Collection[Version] = ()
) -> tuple[tuple[TableName, tuple[tuple[str, Version], ...]], ...]:
    """Return the objects whose basic statistics are written after the last hop: by table, the partitions (`""`: the
    table) with the version that has the statistics.

    They are the objects, shown in the state `reached`, whose newest change up to it was of statistics alone. Objects
    whose version is in `written` are left out, because the hops write their definitions with these statistics.
    """
    if reached < 0 or not problem.chain.facets:
        return ()
    shown = shown_after(problem, reached)
    parts = {cell for cell, value in problem.first.parts.items() if value is not None}
    upto = last_event(problem, reached)
    for stage in problem.stages[:reached]:
        for touch in stage.touches:
            for name, _, value in touch.parts:
                (parts.discard if value is None else parts.add)((touch.lineage, name))
    versions_by_table: dict[TableName, list[tuple[str, Version]]] = {}
    for (lineage, partition), version in problem.chain.facets.items():
        is_shown = lineage in shown and (not partition or (lineage, partition) in parts)
        if is_shown and version.event_id <= upto and version not in written:
            versions_by_table.setdefault(shown[lineage], []).append((partition, version))
    return tuple((table, tuple(versions)) for table, versions in sorted(versions_by_table.items()))


def counted(problem: Problem, reached: int) -> dict[Version, Version]:
    """Return, for definitions in the state `reached`, the newer version that differs from them by statistics alone."""
    if reached < 0 or not problem.chain.facets:
        return {}
    walk, upto = StateWalk(problem.chain), last_event(problem, reached)
    walk.to(reached)
    newer_versions = {}
    for (lineage, partition), version in problem.chain.facets.items():
        shown = walk.parts.get((lineage, partition)) if partition else walk.heads.get(lineage)
        if shown is not None and shown.version != BASE and version.event_id <= upto:
            newer_versions[shown.version] = version
    return newer_versions


def facet_events_of(problem: Problem, reached: int) -> tuple[FacetEvent, ...]:
    """Return the changes of column statistics and constraints up to the state `reached`, of objects that it shows, in
    order and with the names that the objects have there."""
    chain = problem.chain
    steps = chain.steps[: max(reached, 0)]
    upto = last_event(problem, reached)
    changes = [change for change in chain.facet_events if change[0] <= upto]
    if not changes:
        return ()
    walk, objects = StateWalk(chain), []
    for event_id, lineage, partition in changes:
        while walk.index < len(steps) and steps[walk.index].event_id < event_id:
            walk.to(walk.index + 1)
        part = walk.parts.get((lineage, partition))
        objects.append((event_id, lineage, partition, part.lineage if part is not None else ""))
    walk.to(len(steps))
    tables = shown_after(problem, len(steps))
    partitions = {(of, part.lineage): name for (of, name), part in walk.parts.items() if part is not None}
    newest = {(lineage, name): version.event_id for (lineage, name), version in chain.facets.items()}
    facet_events = []
    for event_id, lineage, partition, part_lineage in objects:
        name = partitions.get((lineage, part_lineage)) if part_lineage else partition
        if lineage in tables and name is not None:
            part = walk.parts.get((lineage, name)) if name else None
            version = part.version if part is not None else BASE if name else walk.heads[lineage].version
            later = max(version.event_id, newest.get((lineage, name), 0))
            facet_events.append(FacetEvent(event_id, tables[lineage], name, event_id > later))
    return tuple(facet_events)


def shown_after(problem: Problem, index: int) -> dict[LineageId, TableName]:
    """Return the lineages that the state at `index` shows, with their names there."""
    shown = problem.first.shown()
    for stage in problem.stages[:index]:
        for touch in stage.touches:
            if touch.named is not None:
                shown[touch.lineage] = touch.named
            else:
                shown.pop(touch.lineage, None)
    return shown


def last_event(problem: Problem, reached: int) -> float:
    """Return the last event whose facets belong to the state `reached`. At the window's end it is infinity, because
    events that made no step count there too."""
    if reached == problem.last:
        return math.inf
    return problem.stages[reached - 1].event_id if reached > 0 else 0
