"""The planning problem of one group: its chain in comparable values, and the place of the target on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.plan.edges import EdgeRules
from calque.core.states.fold import Chain, LineageId, PartCell
from calque.core.states.locate import ObservedTable, locate, observed_state
from calque.core.states.state import UNLISTED, Content, Stage, StateValues, stages_of
from calque.model.names import EventId, TableName
from calque.model.plan import Data

START = -1
"""The index that stands for the state that the target shows where it is none of the chain's."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One group's planning problem. `start` are the cells that the target shows, `origin` is the index of the state
    that looks so (0: before the first step; `START`: none), and `first_stop` is the earliest state that may still be
    shown. `ground` has the rules by which the target's catalog crosses differences."""

    chain: Chain
    first: StateValues
    stages: list[Stage]
    start: StateValues
    origin: int
    first_stop: int
    ground: EdgeRules
    own_order: bool = False
    """True where each table may be shown at an event of its own (`consistency = "table"`)."""
    parts: Sequence[Collection[TableName]] = ()
    """The names of tables that go together, where transactions alone link these parts."""

    @property
    def last(self) -> int:
        return len(self.stages)


def problem_of(
    chain: Chain,
    observed: Mapping[TableName, ObservedTable | None],
    shown: Callable[[TableName], EventId],
    takes: Callable[[TableName], bool],
    listed: Callable[[Data], tuple[Content, int] | None],
    ground: EdgeRules,
    own_order: bool = False,
    parts: Sequence[Collection[TableName]] = (),
) -> Problem:
    """Return the problem of a target that showed each table at the event that `shown` gives, and shows `observed` now
    under the names that `takes` admits. `listed` gives a content's fingerprint and bytes, None where its files are not
    known. `ground`, `own_order` and `parts` go into the problem as they are."""
    start = observed_state(chain, observed, shown)
    base = base_contents(start)

    def content(lineage: LineageId, part_lineage: str, data: Data | None) -> tuple[Content, int]:
        if data is None:
            return "", 0
        if not data.event_id or data in chain.renamed:
            return base.get((lineage, part_lineage), ("", 0))
        listed_content = listed(data) if data.location else ("", 0)
        return (UNLISTED, 0) if listed_content is None else listed_content

    first, stages = stages_of(chain, takes, content)
    located = locate(start, first, stages, observed, shown, ground.extends)
    origin = START if located.index is None else located.index
    return Problem(chain, first, stages, start, origin, located.first_stop, ground, own_order, parts)


def part_of(problem: Problem, names: Collection[TableName]) -> Problem:
    """Return the problem of some of the tables alone. They are at the same place on the chain."""
    chain = problem.chain
    bound = [chain.names, *(step.names for step in chain.steps)]
    lineages = {lineage for of_step in bound for name, lineage in of_step.items() if name in names}

    def values(whole: StateValues) -> StateValues:
        own = {name: lineage for name, lineage in whole.names.items() if name in names}
        kept = {*lineages, *own.values()}
        heads = {lineage: head for lineage, head in whole.heads.items() if lineage in kept}
        return StateValues(own, heads, {cell: part for cell, part in whole.parts.items() if cell[0] in kept})

    stages = [
        replace(
            stage,
            touches=tuple(touch for touch in stage.touches if touch.lineage in lineages),
            doubtful=stage.doubtful & lineages,
            settled=stage.settled & lineages,
        )
        for stage in problem.stages
    ]
    return replace(
        problem, first=values(problem.first), stages=stages, start=values(problem.start), own_order=True, parts=()
    )


def base_contents(values: StateValues) -> dict[PartCell, tuple[Content, int]]:
    """Return the contents, with their bytes, that the target shows of lineages from before the window, by lineage and
    the partition's lineage."""
    contents = {(lineage, ""): (value.content, value.size) for lineage, value in values.heads.items()}
    for (lineage, _), value in values.parts.items():
        if value is not None:
            contents[lineage, value.lineage] = (value.content, value.size)
    return contents
