"""Cells of a chain as comparable values, and the difference between two states while it grows.

`Cells` is what a reader of the target can tell apart: which lineage a name shows, the version and content of each head,
each partition. `Difference` keeps, for one reference state, what separates a later state from it; adding a step costs
what the step changed, and asking which operation could cross it costs nothing that grows with the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from calque.core.fold import Chain, LineageId, PartCell, Step
from calque.model.names import EventId, TableName
from calque.model.plan import Head, Part, Version

Content = str
"""A fingerprint of files; empty for what has none; `UNLISTED` where it is not known."""
UNLISTED: Content = "?"


@dataclass(frozen=True, slots=True)
class HeadValue:
    version: Version
    content: Content


@dataclass(frozen=True, slots=True)
class PartValue:
    lineage: str
    version: Version
    content: Content


@dataclass(slots=True)
class Cells:
    names: dict[TableName, LineageId | None] = field(default_factory=dict)
    heads: dict[LineageId, HeadValue] = field(default_factory=dict)
    parts: dict[PartCell, PartValue | None] = field(default_factory=dict)

    def copy(self) -> Cells:
        return Cells(dict(self.names), dict(self.heads), dict(self.parts))

    def apply(self, step: StepValues) -> None:
        self.names.update(step.names)
        self.heads.update(step.heads)
        self.parts.update(step.parts)

    def shown(self) -> dict[LineageId, TableName]:
        """Which lineages are there, and under which name."""
        return {lineage: name for name, lineage in self.names.items() if lineage is not None}

    def same(self, other: Cells) -> bool:
        """Whether a reader sees the same; cells of lineages that neither shows do not matter."""
        shown = self.shown()
        return (
            shown == other.shown()
            and all(self.heads.get(lineage) == other.heads.get(lineage) for lineage in shown)
            and all(
                self.parts.get(cell) == other.parts.get(cell)
                for cell in self.parts.keys() | other.parts.keys()
                if cell[0] in shown
            )
        )

    def visitable(self) -> bool:
        """Whether the files of everything shown are known."""
        shown = self.shown()
        return all(self.heads[lineage].content != UNLISTED for lineage in shown if lineage in self.heads) and all(
            value is None or value.content != UNLISTED for (lineage, _), value in self.parts.items() if lineage in shown
        )


@dataclass(frozen=True, slots=True)
class StepValues:
    """A step with its contents resolved."""

    step: Step
    names: Mapping[TableName, LineageId | None]
    heads: Mapping[LineageId, HeadValue]
    parts: Mapping[PartCell, PartValue | None]


HeadContent = Callable[[Head], Content]
PartContent = Callable[[PartCell, Part], Content]


def values_of(
    chain: Chain, takes: Callable[[TableName], bool], head: HeadContent, part: PartContent
) -> tuple[Cells, list[StepValues]]:
    """The chain's first cells and its steps as comparable values. Names that `takes` refuses show nothing at the
    target."""

    def names(found: Mapping[TableName, LineageId | None]) -> dict[TableName, LineageId | None]:
        return {name: lineage for name, lineage in found.items() if takes(name)}

    def heads(found: Mapping[LineageId, Head]) -> dict[LineageId, HeadValue]:
        return {lineage: HeadValue(value.version, head(value)) for lineage, value in found.items()}

    def parts(found: Mapping[PartCell, Part | None]) -> dict[PartCell, PartValue | None]:
        return {
            cell: None if value is None else PartValue(value.lineage, value.version, part(cell, value))
            for cell, value in found.items()
        }

    first = Cells(names(chain.names), heads(chain.heads), parts(chain.parts))
    return first, [StepValues(step, names(step.names), heads(step.heads), parts(step.parts)) for step in chain.steps]


@dataclass(slots=True)
class LineageDelta:
    """How one lineage differs between the reference and now."""

    was: TableName | None
    now: TableName | None
    definition: bool = False
    content: bool = False
    cascade: EventId = 0
    """The newest event between that changed the columns of all partitions."""
    added: dict[str, PartValue] = field(default_factory=dict)
    removed: dict[str, PartValue] = field(default_factory=dict)
    changed: dict[str, tuple[PartValue, PartValue]] = field(default_factory=dict)

    def differs(self) -> bool:
        if self.was is None and self.now is None:
            return False
        changed = self.definition or self.content or bool(self.cascade)
        return self.was != self.now or changed or self.touches_partitions()

    def copy(self) -> LineageDelta:
        return replace(self, added=dict(self.added), removed=dict(self.removed), changed=dict(self.changed))

    def touches_partitions(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Difference:
    """What separates the current state from `reference`, lineage by lineage."""

    def __init__(self, reference: Cells) -> None:
        self.reference = reference
        self.now = reference.copy()
        self.was_shown = reference.shown()
        self.is_shown = dict(self.was_shown)
        self.deltas: dict[LineageId, LineageDelta] = {}
        self.differing: set[LineageId] = set()

    def add(self, values: StepValues) -> None:
        """Go one step on."""
        touched: set[LineageId] = set(values.heads) | {lineage for lineage, _ in values.parts}
        for name, lineage in values.names.items():
            before = self.now.names.get(name)
            self.now.names[name] = lineage
            if before is not None:
                touched.add(before)
                if self.is_shown.get(before) == name:
                    del self.is_shown[before]
            if lineage is not None:
                touched.add(lineage)
                self.is_shown[lineage] = name
        self.now.heads.update(values.heads)
        for lineage in touched:
            delta = self.deltas.setdefault(lineage, LineageDelta(self.was_shown.get(lineage), None))
            delta.now = self.is_shown.get(lineage)
        for lineage in values.heads:
            was, now = self.reference.heads.get(lineage), self.now.heads[lineage]
            delta = self.deltas[lineage]
            delta.definition = was is None or was.version != now.version
            delta.content = was is None or was.content != now.content
        for lineage in values.step.cascades:
            self.deltas[lineage].cascade = values.step.event_id
        for cell, value in values.parts.items():
            self.now.parts[cell] = value
            self.part(self.deltas[cell[0]], cell, value)
        for lineage in touched:
            (self.differing.add if self.deltas[lineage].differs() else self.differing.discard)(lineage)

    def part(self, delta: LineageDelta, cell: PartCell, now: PartValue | None) -> None:
        name, was = cell[1], self.reference.parts.get(cell)
        delta.added.pop(name, None)
        delta.removed.pop(name, None)
        delta.changed.pop(name, None)
        if was is None and now is not None:
            delta.added[name] = now
        elif was is not None and now is None:
            delta.removed[name] = was
        elif was is not None and now is not None and was != now:
            delta.changed[name] = (was, now)

    def only(self) -> LineageDelta | None:
        """The one lineage that differs; None when none or several do."""
        if len(self.differing) != 1:
            return None
        (lineage,) = self.differing
        return self.deltas[lineage]

    def only_lineage(self) -> LineageId:
        (lineage,) = self.differing
        return lineage
