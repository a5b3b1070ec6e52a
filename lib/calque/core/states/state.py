"""States of a chain as comparable values, and the difference between two of them while it grows.

A state is made of cells: the table that a name shows, the definition and content of each table, each partition. A stage
is the changes of one step, cell by cell, with the values before and after it. So the difference between two states is
made from the stages between them alone, and costs as much as these changed, not as much as the table is large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calque.core.states.fold import Chain, LineageId, PartCell
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, Data, Head, Part, Version

Content = str
"""A fingerprint of files; empty for an object without files; `UNLISTED` where it is not known."""
UNLISTED: Content = "?"


@dataclass(frozen=True, slots=True)
class HeadValue:
    """A table's header in one state; `size` is that of its content, in bytes."""

    version: Version
    content: Content
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class PartValue:
    """A partition in one state; with `stays` it is there in every later state of the chain."""

    lineage: str
    version: Version
    content: Content
    size: int = field(default=0, compare=False)
    stays: bool = field(default=False, compare=False)


@dataclass(slots=True)
class StateValues:
    """One whole state, of all objects that the chain touches."""

    names: dict[TableName, LineageId | None] = field(default_factory=dict)
    heads: dict[LineageId, HeadValue] = field(default_factory=dict)
    parts: dict[PartCell, PartValue | None] = field(default_factory=dict)

    def shown(self) -> dict[LineageId, TableName]:
        """Return the lineages that the state shows, with their names."""
        return {lineage: name for name, lineage in self.names.items() if lineage is not None}


PartChange = tuple[str, PartValue | None, PartValue | None]
"""A partition's name, with its value before and after."""


@dataclass(frozen=True, slots=True)
class LineageChange:
    """The change of one lineage by one step. `was_named` and `named` are the names under which it is shown before and
    after, None where it is not shown. `head` is None where definition and content stayed. `cascade` says that all
    partitions' columns changed, `columns` that the table's own did without them."""

    lineage: LineageId
    was_named: TableName | None
    named: TableName | None
    was_head: HeadValue | None = None
    head: HeadValue | None = None
    parts: tuple[PartChange, ...] = ()
    cascade: bool = False
    columns: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the chain, with contents in the form in which they can be compared (fingerprints). `doubtful` lineages
    have partitions whose columns are not known from this step on, until a step that cascades or settles them; `settled`
    are lineages whose partitions' columns are known again."""

    event_id: EventId
    touches: tuple[LineageChange, ...]
    doubtful: frozenset[LineageId] = frozenset()
    settled: frozenset[LineageId] = frozenset()


ContentOf = Callable[[LineageId, str, Data | None], tuple[Content, int]]
"""A function that gives the content of a table (`""`) or of a partition, by its lineage, and its size in bytes."""


def stages_of(
    chain: Chain, takes: Callable[[TableName], bool], content_of: ContentOf
) -> tuple[StateValues, list[Stage]]:
    """Return the chain's first state, and its steps as stages. Names that `takes` refuses show no table at the
    target."""

    def head_value(head: Head) -> HeadValue:
        return HeadValue(head.version, *content_of(head.lineage, "", head.data))

    last_absent = {
        cell: index for index, step in enumerate(chain.steps) for cell, part in step.parts.items() if part is None
    }

    def part_value(cell: PartCell, part: Part | None, index: int = -1) -> PartValue | None:
        if part is None:
            return None
        content, size = content_of(cell[0], part.lineage, part.data)
        return PartValue(part.lineage, part.version, content, size, last_absent.get(cell, -1) < index)

    taken_names = {name for name in chain.tables if takes(name)}
    first = StateValues(
        {name: lineage for name, lineage in chain.names.items() if name in taken_names},
        {lineage: head_value(head) for lineage, head in chain.heads.items()},
        {cell: part_value(cell, part) for cell, part in chain.parts.items()},
    )
    bound, shown, heads, parts = dict(first.names), first.shown(), dict(first.heads), dict(first.parts)
    stages = []
    for index, step in enumerate(chain.steps):
        was = {lineage: shown.get(lineage) for lineage in step.heads}
        changed: dict[LineageId, list[PartChange]] = {}
        for cell, value in step.parts.items():
            after = part_value(cell, value, index)
            changed.setdefault(cell[0], []).append((cell[1], parts.get(cell), after))
            parts[cell] = after
            was.setdefault(cell[0], shown.get(cell[0]))
        if step.names:
            rename(bound, shown, was, {name: to for name, to in step.names.items() if name in taken_names})
        touches = []
        for lineage, was_named in was.items():
            was_head = heads.get(lineage)
            if (definition := step.heads.get(lineage)) is not None:
                heads[lineage] = now = head_value(definition)
            else:
                was_head = now = None
            touches.append(
                LineageChange(
                    lineage,
                    was_named,
                    shown.get(lineage),
                    was_head,
                    now,
                    tuple(changed.get(lineage, ())),
                    lineage in step.cascades,
                    lineage in step.columns,
                )
            )
        stages.append(Stage(step.event_id, tuple(touches), step.doubtful, step.settled))
    return first, stages


def rename(
    bound: dict[TableName, LineageId | None],
    shown: dict[LineageId, TableName],
    was: dict[LineageId, TableName | None],
    names: Mapping[TableName, LineageId | None],
) -> None:
    """Bind `names` in `bound` and `shown`; `was` gets the names before of all lineages that this concerns."""
    for lineage in [*(bound.get(name) for name in names), *names.values()]:
        if lineage is not None:
            was.setdefault(lineage, shown.get(lineage))
    for name in names:
        before = bound.get(name)
        if before is not None and shown.get(before) == name:
            del shown[before]
    for name, lineage in names.items():
        bound[name] = lineage
        if lineage is not None:
            shown[lineage] = name


def departure(start: StateValues, first: StateValues) -> Stage:
    """Return, as a stage, the difference between the cells that the target shows (`start`) and the chain's first
    state."""
    shown = start.shown()
    was: dict[LineageId, TableName | None] = {lineage: shown.get(lineage) for lineage in first.heads}
    now, bound = dict(shown), dict(start.names)
    rename(bound, now, was, first.names)
    parts: dict[LineageId, list[PartChange]] = {}
    for cell, value in first.parts.items():
        was.setdefault(cell[0], shown.get(cell[0]))
        parts.setdefault(cell[0], []).append((cell[1], start.parts.get(cell), value))
    return Stage(
        0,
        tuple(
            LineageChange(
                lineage,
                named,
                now.get(lineage),
                start.heads.get(lineage),
                first.heads.get(lineage, start.heads.get(lineage)),
                tuple(parts.get(lineage, ())),
            )
            for lineage, named in was.items()
        ),
    )


class Delta:
    """The difference of one lineage between two states. `was` and `now` are its names there, None where it is not
    shown."""

    __slots__ = (
        "added",
        "bytes_added",
        "bytes_changed",
        "cascade",
        "changed",
        "columns",
        "head",
        "head_touched",
        "now",
        "overwritten",
        "pairs",
        "redefined",
        "removed",
        "staying",
        "unknown",
        "vanished",
        "was",
        "was_head",
    )

    def __init__(self, was: TableName | None, now: TableName | None) -> None:
        self.was, self.now = was, now
        self.vanished = False
        """Whether a state in between that may be shown lacked this lineage and differed in nothing else."""
        self.redefined = False
        """Whether a step in between changed its head and left its name."""
        self.head_touched = False
        self.was_head: HeadValue | None = None
        self.head: HeadValue | None = None
        self.cascade: EventId = 0
        self.columns: EventId = 0
        """The newest events in between that changed all partitions' columns (`cascade`), and the table's alone."""
        self.pairs: dict[str, tuple[PartValue | None, PartValue | None]] = {}
        self.added: dict[str, PartValue] = {}
        self.removed: dict[str, PartValue] = {}
        self.changed: dict[str, tuple[PartValue, PartValue]] = {}
        self.overwritten = 0
        """The number of those in `changed` that never will be as they were: no definition and no content comes back."""
        self.staying = 0
        """The number of those in `added` that every later state has."""
        self.unknown = 0
        """The number of those in `added` that should have been there already: their definition is in no event."""
        self.bytes_added = 0
        self.bytes_changed = 0
        """The bytes of the new contents of `added` and of `changed`."""

    @property
    def table(self) -> TableName:
        """Return the lineage's newest name; in a difference it has at least one."""
        name = self.now or self.was
        assert name is not None
        return name

    @property
    def definition(self) -> bool:
        return self.head_touched and (self.was_head is None or self.was_head.version != self.head_().version)

    @property
    def content(self) -> bool:
        return self.head_touched and (self.was_head is None or self.was_head.content != self.head_().content)

    def head_(self) -> HeadValue:
        assert self.head is not None
        return self.head

    def differs(self) -> bool:
        if self.was is None and self.now is None:
            return False
        if self.was != self.now or self.cascade or self.added or self.removed or self.changed:
            return True
        return self.head_touched and self.was_head != self.head

    def beside_partitions(self) -> bool:
        """Tell whether the lineage differs in more than partitions."""
        return self.was != self.now or bool(self.cascade) or (self.head_touched and self.was_head != self.head)

    def two_columns(self) -> bool:
        """Tell whether the partitions got other columns than the table has now, because the table's columns changed
        again after a CASCADE. No one call does both."""
        return 0 < self.cascade < self.columns

    def touches_partitions(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def lasting_header(self) -> bool:
        """Tell whether the lineage differs for good beside its partitions: no definition and no content ever comes
        back."""
        return self.definition or bool(self.cascade) or (self.content and self.head_().content != UNLISTED)

    def lasting_partitions(self) -> int:
        """Return the number of partitions of the earlier state that no later state has again as they were."""
        return len(self.removed) + self.overwritten

    def stays_different(self) -> bool:
        """Tell whether the lineage differs for good: no later state in which it is shown has it again as the earlier of
        the two states has it."""
        return self.lasting_header() or self.lasting_partitions() + self.staying > 0

    def renames_one(self) -> bool:
        """Tell whether one partition goes and one comes, and no other changes."""
        return len(self.added) == len(self.removed) == 1 and not self.changed

    def pair(self, name: str, was: PartValue | None, now: PartValue | None) -> None:
        """Set the values that a partition has in the two states."""
        if name in self.pairs:
            self.count(name, -1)
            for kind in (self.added, self.removed, self.changed):
                kind.pop(name, None)
        self.pairs[name] = (was, now)
        if was is None:
            if now is not None:
                self.added[name] = now
        elif now is None:
            self.removed[name] = was
        elif was != now:
            self.changed[name] = (was, now)
        self.count(name, 1)

    def count(self, name: str, sign: int) -> None:
        if (new := self.added.get(name)) is not None:
            self.bytes_added += sign * new.size
            self.unknown += sign * (new.version == BASE)
            self.staying += sign * new.stays
        elif (pair := self.changed.get(name)) is not None:
            was, now = pair
            self.bytes_changed += sign * now.size * (was.content != now.content)
            self.overwritten += sign * (now.content != UNLISTED or was.version != now.version)


class StateDifference:
    """The difference between two states, lineage by lineage. It grows by stages at its later or its earlier end."""

    __slots__ = ("deltas", "differing")

    def __init__(self) -> None:
        self.deltas: dict[LineageId, Delta] = {}
        self.differing: dict[LineageId, Delta] = {}

    def forward(self, stage: Stage) -> None:
        """Move the later state over `stage`, the one that follows it."""
        for touch in stage.touches:
            delta = self.deltas.get(touch.lineage)
            if delta is None:
                delta = self.deltas[touch.lineage] = Delta(touch.was_named, touch.named)
            delta.now = touch.named
            delta.redefined |= touch.head is not None and touch.was_named == touch.named
            if touch.head is not None:
                if not delta.head_touched:
                    delta.head_touched, delta.was_head = True, touch.was_head
                delta.head = touch.head
            if touch.cascade:
                delta.cascade = stage.event_id
            if touch.columns:
                delta.columns = stage.event_id
            for name, was, now in touch.parts:
                known_pair = delta.pairs.get(name)
                delta.pair(name, was if known_pair is None else known_pair[0], now)
            self.note(touch.lineage, delta)

    def backward(self, stage: Stage) -> None:
        """Move the earlier state back over `stage`, the one that leads to it."""
        for touch in stage.touches:
            delta = self.deltas.get(touch.lineage)
            if delta is None:
                delta = self.deltas[touch.lineage] = Delta(touch.was_named, touch.named)
            delta.was = touch.was_named
            delta.redefined |= touch.head is not None and touch.was_named == touch.named
            if touch.head is not None:
                if not delta.head_touched:
                    delta.head_touched, delta.head = True, touch.head
                delta.was_head = touch.was_head
            if touch.cascade and not delta.cascade:
                delta.cascade = stage.event_id
            if touch.columns and not delta.columns:
                delta.columns = stage.event_id
            for name, was, now in touch.parts:
                known_pair = delta.pairs.get(name)
                delta.pair(name, was, now if known_pair is None else known_pair[1])
            self.note(touch.lineage, delta)

    def note(self, lineage: LineageId, delta: Delta) -> None:
        if delta.differs():
            self.differing[lineage] = delta
        else:
            self.differing.pop(lineage, None)

    def see(self) -> None:
        """Note that the target may show the state to which this difference was just led between its ends: the one
        lineage that differs, and is not shown at an end, has `vanished`."""
        if len(self.differing) == 1:
            (delta,) = self.differing.values()
            delta.vanished |= delta.was is None or delta.now is None

    def only(self) -> tuple[LineageId, Delta] | None:
        """Return the one lineage that differs, with its delta; None when none or several do."""
        if len(self.differing) != 1:
            return None
        return next(iter(self.differing.items()))
