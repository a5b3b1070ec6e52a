"""What `calque plan` announces for a window, over generated histories, is what `run` then does in it: its calls are
counted at the target's catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.core.events import decode
from calque.core.records.lifecycle import UNREAD
from calque.engine.apply.applier import names_of
from calque.engine.failpoints import EFFECTS
from calque.engine.replica.dry_run import ExplainedWindow, explain_next_window
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.sides import TargetSide
from calque.engine.window.result import WindowResult as Played
from calque.errors import Unavailable
from calque.model.hive import Partition, is_view
from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName, partition_name
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    DropPartitions,
    DropTable,
    GroupPlan,
    Head,
    HiddenBuild,
    Hop,
    Operation,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)
from calque.model.policy import Limits, TargetCapabilities
from calque.model.records import AnnouncedBridge, AnnouncedParts
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, ServerHabits
from support.worlds.histories import (
    AT_FIRST,
    HOLES,
    PLAIN,
    Action,
    Capture,
    Player,
    Read,
    Story,
    Window,
    Write,
    stories,
    works,
)
from support.worlds.worlds import World

HISTORIES = {"check": 50, "prove": 10_000}
CASES = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 100), suppress_health_check=list(HealthCheck)
)
ABILITIES = st.sampled_from(
    [
        TargetCapabilities(),
        TargetCapabilities(limits=Limits(1, 1, 1)),
        TargetCapabilities(limits=Limits(1, 1, 1), any_difference=True),
    ]
)
ALTERATIONS = {"alter_table", "alter_partitions"}
"""By them facets, and partitions that went along with their table, are written, too."""
ROUNDS = 5
"""Looks of capture after which evidence is as good as it gets."""
FACETS = {"add_constraints", "drop_constraint", "put_statistics", "drop_statistics"}
"""Methods whose calls depend on what the target has already, which a plan does not read."""
Counts = Counter[str]
"""By method of the catalog."""


Standing = dict[TableName, set[str]]
"""The partitions of each table at the target, by the source's name of the table."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the target has, and what waits to be told by its next epoch."""

    standing: Standing
    views: frozenset[TableName]
    waiting: tuple[AnnouncedBridge | AnnouncedParts, ...]

    def announced(self, kind: type[AnnouncedBridge | AnnouncedParts]) -> set[str]:
        return {str(record.table) for record in self.waiting if isinstance(record, kind)}


class CountingCatalog(MemoryCatalog):
    """Counts the objects of the lists that were written."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.objects: Counts = Counter()

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        super().add_partitions(name, partitions)
        self.objects["add_partitions"] += len(partitions)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        super().alter_partitions(name, partitions)
        self.objects["alter_partitions"] += len(partitions)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        super().drop_partitions(name, names)
        self.objects["drop_partitions"] += len(names)


class CountingWorld(World):
    """Counts the calls that changed the target's metastore, whose tables are all plain: what becomes of a Delta table
    is in its log. calque's own database is there from the beginning, and copies may hold up a window: a plan has those
    that would be made beside it, too. `left_files`: an attempt that met lost files may have left others where they
    belong."""

    def __init__(self, story: Story, habits: ServerHabits, abilities: TargetCapabilities) -> None:
        self.calls: Counts = Counter()
        self.left_files = False
        super().__init__(0, habits, replace(story.policy, format="plain"), batch=story.batch)
        self.catalog = CountingCatalog(self.target_store, abilities, before=self.called, after=self.returned)
        self.side = TargetSide.of(self.policy, self.catalog, self.ledger, self.storage)
        ensure_own_database(self.catalog, self.policy.warehouse)
        self.replica = self.new_replica()

    def returned(self, method: str) -> None:
        if method in EFFECTS["catalog"]:
            self.calls[method] += 1
        super().returned(method)


class ExplainingPlayer(Player):
    """Each window comes to a process that has just begun, and is explained before; nothing changes in between."""

    def __init__(self, story: Story, abilities: TargetCapabilities) -> None:
        self.abilities = abilities
        super().__init__(story)

    def made(self) -> CountingWorld:
        return CountingWorld(self.story, HIVE_3 if self.story.hive == 3 else HIVE_4, self.abilities)

    def act(self, action: Action) -> None:
        if isinstance(action, Window):
            self.compare(action.percent)
        else:
            super().act(action)

    def compare(self, percent: int) -> None:
        world = self.world
        assert isinstance(world, CountingWorld)
        for _ in range(ROUNDS):
            world.capture_all()
        world.restart_replica(world.ledger)
        try:
            found = explain_next_window(world.source_side, world.side, world.beginning, self.upto(percent))
        except Unavailable:
            return
        before = Before(standing_at(world), views_at(world), world.side.announced.waiting())
        world.calls, world.catalog.objects = Counter(), Counter()
        played = len(world.windows)
        world.window(found.span.upto)
        if len(world.windows) > played:
            require_same(world, found, world.windows[-1], before)


def standing_at(world: World) -> Standing:
    found = {}
    for name, stored in world.stored_at_target():
        keys = [key.name for key in stored.table.partition_keys or ()]
        names = {partition_name(keys, values) for values in stored.partitions}
        found[world.side.admission.source_of(name) or name] = names
    return found


def views_at(world: World) -> frozenset[TableName]:
    """By the source's names."""
    views = (name for name, stored in world.stored_at_target() if is_view(stored.table))
    return frozenset(world.side.admission.source_of(name) or name for name in views)


def require_same(world: CountingWorld, found: ExplainedWindow, played: Played, before: Before) -> None:
    """What was announced is what was done. A plan knows neither which files of the source are gone when they are to be
    copied, nor which statistics and constraints the target has, nor which partitions of a table whose files stay at the
    source went along with its directory."""
    assert (found.span, found.events) == (played.span, played.events)
    plans = [group.plan for group in found.groups]
    if lost_files(world, plans, played.plans):
        world.left_files = True
        return
    assert plans == played.plans
    announced = Announced(world, before)
    announced.window(found)
    made = Counter({method: count for method, count in world.calls.items() if method not in FACETS})
    hops = [hop for plan in plans for hop in plan.hops]
    facets = any(group.statistics for group in found.groups) or not FACETS.isdisjoint(world.calls)
    followed = any(moves_files_that_stay(world, hop.operation) for hop in hops)
    if facets or followed:
        assert (announced.calls <= made, announced.objects <= world.catalog.objects) == (True, True)
        assert {*(made - announced.calls), *(world.catalog.objects - announced.objects)} <= ALTERATIONS
    else:
        assert (announced.calls, announced.objects) == (made, world.catalog.objects)
    if not (facets or followed) and not any(isinstance(hop.operation, Rebuild) for hop in hops):
        assert sum(group.calls for group in found.groups) + len(found.other_calls) == made.total()
    costs = [cost for group in found.groups for cost in group.costs]
    announced_copies = sum(cost.files for cost in costs), sum(cost.bytes for cost in costs)
    copies = played.applied.files, played.applied.bytes
    assert announced_copies == copies or (world.left_files and announced_copies > copies)
    tables = world.replica.tables
    assert [name_of(row) for row in found.reads] == tables.in_state(*UNREAD)
    assert [name_of(row) for row in found.quarantined] == tables.in_state(TableState.QUARANTINED)
    bridges = [hop for hop in hops if hop.bridge]
    parts = [hop for hop in hops if hop.in_parts > 1 and not hop.bridge]
    assert names_in(bridges) | before.announced(AnnouncedBridge) == {bridge.table for bridge in played.bridges()}
    announced_parts, in_parts = names_in(parts) | before.announced(AnnouncedParts), {*played.in_parts()}
    assert announced_parts == in_parts or (followed and announced_parts < in_parts)


def moves_files_that_stay(world: World, operation: Operation) -> bool:
    """Whether it is a rename of a table whose files are the source's."""
    if isinstance(operation, PrepareFlipSweep) and operation.header is not None:
        return moves_files_that_stay(world, operation.header)
    is_rename = isinstance(operation, AlterTable | Rebuild) and operation.was not in (None, operation.table)
    return is_rename and not world.side.admission.copies(operation.table)


def lost_files(world: World, announced: Sequence[GroupPlan], played: Sequence[GroupPlan]) -> bool:
    """Whether files could not be copied any more: states of a plan that were to be visited can't be, and a group
    without a way past them is read."""
    known = {event for plan in announced for event in plan.unvisitable}
    is_group_lost = any(lost for _, lost in world.replica.player.lost.values())
    return is_group_lost or any(event not in known for plan in played for event in plan.unvisitable)


def names_in(hops: Sequence[Hop]) -> set[str]:
    return {str(name) for hop in hops for name in names_of(hop.operation)}


def name_of(row: TableRow) -> TableName:
    return TableName(row.database, row.table)


class Announced:
    """The calls of the hops and of databases and functions, by method, and the objects of their lists."""

    def __init__(self, world: CountingWorld, before: Before) -> None:
        self.world, self.standing, self.limits = world, before.standing, world.catalog.abilities().limits
        self.views = {*before.views}
        self.calls: Counts = Counter()
        self.objects: Counts = Counter()

    def window(self, found: ExplainedWindow) -> None:
        for call in found.other_calls:
            self.calls[call.operation] += 1
        for group in found.groups:
            for hop in group.plan.hops[:-1] if group.keeps else group.plan.hops:
                self.hop(hop.operation)

    def hop(self, operation: Operation) -> None:
        match operation:
            case CreateTable(table, head):
                self.calls["create_table"] += 1
                (self.views.add if self.is_view(head) else self.views.discard)(table)
                if self.files_stay(table) and table not in self.views:
                    self.calls["alter_table"] += 1
            case HiddenBuild(table, _, partitions):
                self.calls["create_table"] += 1
                self.added(table, len(partitions))
                self.calls["alter_table"] += 1
            case AlterTable():
                self.calls["alter_table"] += 1
            case DropTable():
                self.calls["drop_table"] += 1
            case AddPartitions(table, partitions):
                self.added(table, len(partitions), table not in self.views)
            case AlterPartitions(_, partitions):
                self.list("alter_partitions", len(partitions), self.limits.alter_partitions)
            case RenamePartition(table):
                self.calls["rename_partition"] += 1
                self.list("alter_partitions", int(self.files_stay(table)), 1)
            case DropPartitions(_, names):
                self.list("drop_partitions", len(names), self.limits.drop_partitions)
            case Publish():
                pass
            case PrepareFlipSweep(_, added, changed, doomed, header):
                self.calls["alter_table"] += header is not None
                self.list("add_partitions", len(added), self.limits.add_partitions)
                flipped = len(added) + len(changed) + len(doomed)
                self.list("alter_partitions", flipped, self.limits.alter_partitions)
                self.list("drop_partitions", len(doomed), self.limits.drop_partitions)
            case Rebuild():
                self.rebuild(operation)
            case CommitTable():
                self.calls["commit_table"] += 1
            case _:
                assert_never(operation)

    def rebuild(self, operation: Rebuild) -> None:
        """The old table's partitions come along."""
        self.calls["create_table"] += 1
        touched = {name: part is not None for name, part in operation.partitions}
        count = sum(touched.values())
        if operation.was is not None:
            self.calls["alter_table"] += 1
            self.calls["drop_table"] += 1
            if not operation.whole:
                count += len(self.standing[operation.was] - touched.keys())
        self.added(operation.table, count)
        self.calls["alter_table"] += 1

    def files_stay(self, table: TableName) -> bool:
        return not self.world.side.admission.copies(table)

    def added(self, table: TableName, count: int, are_placed: bool = True) -> None:
        """Where files stay at the source, the place of what is added is said by a second call."""
        self.list("add_partitions", count, self.limits.add_partitions)
        if self.files_stay(table) and are_placed:
            self.list("alter_partitions", count, self.limits.alter_partitions)

    def is_view(self, head: Head) -> bool:
        event_id = head.version.event_id
        return is_view(decode.table_after(self.world.journal.events([event_id])[event_id]))

    def list(self, method: str, count: int, most: int) -> None:
        if count:
            self.calls[method] += -(-count // most)
            self.objects[method] += count


@CASES
@given(stories(works(st.just(()), others=HOLES), seen=False), ABILITIES)
def test_a_window_makes_the_calls_and_copies_that_its_plan_announced(
    story: Story, abilities: TargetCapabilities
) -> None:
    player = ExplainingPlayer(story, abilities)
    player.begin()
    for action in story.actions:
        player.act(action)


def test_a_bridge_that_takes_several_calls_is_announced_as_a_bridge_alone() -> None:
    writes = (Write("exchange_partition", 122), Write("alter_partitions", 0))
    before = (*AT_FIRST, Write("add_partitions", 109))
    story = Story(PLAIN, 4, before, (Capture(), Read(), *writes, Capture(), Window()), settled=True)
    player = ExplainingPlayer(story, TargetCapabilities(limits=Limits(1, 1, 1)))
    player.begin()
    for action in story.actions:
        player.act(action)
    window = player.world.windows[-1]
    assert ([bridge.table for bridge in window.bridges()], window.in_parts()) == (["d1.c"], ())
