"""The result of one window of a target: `WindowResult`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from calque.core.states.fold import names_of
from calque.engine.apply import AppliedChanges
from calque.engine.sides.announced_exceptions import Announcement, bridges, in_parts, parts
from calque.engine.window.advance import GroupOutcome
from calque.model.journal import Entry
from calque.model.ledger import Bridge, Epoch, Parts
from calque.model.names import OURS, Span, TableName
from calque.model.plan import GroupPlan


@dataclass(slots=True)
class WindowResult:
    """The result of a window: what was planned, applied and published. `epoch` is None when none was published."""

    span: Span
    events: int = 0
    plans: list[GroupPlan] = field(default_factory=list)
    applied: AppliedChanges = field(default_factory=AppliedChanges)
    landed: int = 0
    epoch: Epoch | None = None
    own: bool = False
    """True where the window has events, and all of them concern calque's own objects."""
    announced: tuple[Announcement, ...] = ()
    """Announcements that the window's epoch tells of, those of crashed windows before it included."""

    @property
    def hops(self) -> int:
        return sum(len(plan.hops) for plan in self.plans)

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that the window changed."""
        return frozenset(table for plan in self.plans for table in plan.tables)

    def add(self, advanced: GroupOutcome) -> None:
        self.plans.append(advanced.plan)
        self.applied.objects += advanced.applied.objects
        self.applied.calls += advanced.applied.calls
        self.applied.files += advanced.applied.files
        self.applied.bytes += advanced.applied.bytes
        self.applied.disarmed += advanced.applied.disarmed
        self.applied.together += advanced.applied.together

    def bridges(self) -> tuple[Bridge, ...]:
        return bridges(self.announced)

    def parts(self) -> tuple[Parts, ...]:
        return parts(self.announced)

    def in_parts(self) -> tuple[str, ...]:
        return in_parts(self.announced)


def all_own(entries: Sequence[Entry]) -> bool:
    """Tell whether all entries concern calque's own objects."""
    return all(
        entry.keys.table is not None and all(name.database == OURS for name in names_of(entry)) for entry in entries
    )
