"""Plans of generated histories: each stop is a state that the source had, and no plan is dearer than the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calque.core.plan.edges import EdgeRules
from calque.core.plan.problem import Problem, problem_of
from calque.core.plan.search import HOP_BYTES, ChainSearch, Solution, kept_stops, solve, visitable_states
from calque.core.states.fold import Chain, ColumnChanges, fold, groups, same_run
from calque.core.states.locate import ObservedPart, ObservedTable
from calque.core.states.state import UNLISTED, HeadValue, PartValue
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AlterTable, CommitTable, Data, Hop, Operation, Rebuild
from calque.model.policy import Limits, TargetCapabilities
from support.sources.chains import NAMES, OPERATIONS, Files, Source, State, TableShown, Target, begun, play

COUNTS = {"check": 50, "test": 500, "prove": 100_000}
CASES = settings(max_examples=COUNTS.get(settings.get_current_profile_name(), settings.default.max_examples))
METASTORE = TargetCapabilities()
SHORT = TargetCapabilities(limits=Limits(2, 2, 2))
GLUE_LIKE = TargetCapabilities(limits=Limits(2, 2, 2), atomic_lists=False)
DELTA_LIKE = TargetCapabilities(limits=Limits(2, 2, 2), any_difference=True)

Draws = list[tuple[int, int, int]]
calls = st.tuples(st.integers(0, OPERATIONS - 1), st.integers(0, 3), st.integers(0, 5))
histories = st.tuples(st.lists(calls, min_size=2, max_size=12), st.lists(calls, min_size=4, max_size=14))
abilities = st.sampled_from([METASTORE, SHORT, GLUE_LIKE, DELTA_LIKE])


@dataclass
class Case:
    """A history cut in two: what the target showed, and the window."""

    source: Source
    cursor: EventId
    window: list[Entry]
    cascaded: frozenset[EventId]
    outside: frozenset[TableName]

    @classmethod
    def of(cls, before: Draws, after: Draws, outside: bool = False) -> Case:
        source = Source()
        play(source, before)
        cursor, entries = source.event, len(source.entries)
        cascaded = play(source, after)
        names = frozenset({TableName("d", "out")}) if outside else frozenset()
        return cls(source, cursor, source.entries[entries:], frozenset(cascaded), names)

    def takes(self, name: TableName) -> bool:
        return name not in self.outside

    def image(self, state: State, names: tuple[TableName, ...]) -> State:
        return {name: table for name, table in state.items() if name in names and self.takes(name)}

    def groups(self, window: list[Entry] | None = None) -> list[list[Entry]]:
        found = groups(self.window if window is None else window)
        return [group for group in found if any(self.takes(name) for name in fold(group).tables)]

    def lose(self, numbers: set[int]) -> None:
        """These contents were not seen in time."""
        for number, data in enumerate(list(self.source.contents)):
            if number in numbers:
                del self.source.contents[data]

    def history(self, names: tuple[TableName, ...]) -> list[State]:
        """What readers of the source saw of these tables, from the cursor on."""
        return [self.image(self.source.state_at(self.cursor), names)] + [
            self.image(state, names) for event, state in self.source.states if event > self.cursor
        ]

    def problem(self, chain: Chain, target: Target, ground: EdgeRules) -> Problem:
        def listed(data: Data) -> tuple[str, int] | None:
            files = self.source.contents.get(data)
            return None if files is None else (fingerprint(files), self.source.size(files))

        names = [name for name in chain.tables if self.takes(name)]
        observed = target.observed(names, fingerprint)
        return problem_of(chain, observed, lambda _: self.cursor, self.takes, listed, ground)


def fingerprint(files: Files) -> str:
    return ",".join(map(str, sorted(files)))


def extends(one: str, other: str) -> bool:
    return set(filter(None, one.split(","))) <= set(filter(None, other.split(",")))


def ground_of(able: TargetCapabilities, in_place: bool = True) -> EdgeRules:
    return EdgeRules(able, extends, in_place)


grounds = st.builds(EdgeRules, abilities, st.just(extends), st.booleans(), st.booleans())
losses = st.sets(st.integers(0, 20), max_size=4)

# Calls by themselves, of the only table and of its first or the first missing partition
TABLE, PARTITIONED, INSERT, OVERWRITE = (0, 0, 0), (0, 0, 1), (4, 0, 0), (5, 0, 0)
ADD, ADD_TWO, ADD_THREE, RENAME = (6, 0, 0), (6, 0, 1), (6, 0, 2), (9, 0, 0)
WIDEN, WIDEN_ALL = (3, 0, 1), (3, 0, 2)


def chain_of(case: Case, group: list[Entry]) -> Chain:
    return fold(group, ColumnChanges(case.cascaded))


def follow(target: Target, reader: Reader, hops: Sequence[Hop]) -> None:
    for hop in hops:
        reader.excepted = hop.bridge or hop.in_parts > 1
        target.run(hop)


@CASES
@given(histories, grounds, st.booleans())
@example(([PARTITIONED, ADD], [WIDEN_ALL, WIDEN, ADD]), ground_of(METASTORE), False)
def test_every_stop_is_a_state_of_the_source_and_the_last_one_is_the_newest(
    drawn: tuple[Draws, Draws], ground: EdgeRules, outside: bool
) -> None:
    case = Case.of(*drawn, outside=outside)
    for group in case.groups():
        chain = chain_of(case, group)
        states = case.history(chain.tables)
        reader = Reader(states)
        target = Target(case.source, states[0], reader.look)
        solution = solve(case.problem(chain, target, ground))
        follow(target, reader, solution.plan.hops)
        if not any(step.doubtful for step in chain.steps):
            assert not any(hop.bridge for hop in solution.plan.hops)
        if not solution.missing:
            assert target.tables == states[-1]
            assert incarnations(target.tables) == incarnations(states[-1])


def incarnations(state: State) -> dict[TableName, str]:
    return {name: table.incarnation for name, table in state.items()}


@CASES
@given(histories, grounds, losses)
@example(([TABLE, INSERT], [INSERT]), ground_of(METASTORE, in_place=False), set())
@example(([PARTITIONED, ADD], [RENAME, INSERT]), ground_of(METASTORE), set())
@example(([PARTITIONED], [ADD_TWO]), ground_of(GLUE_LIKE), set())
@example(([PARTITIONED], [ADD, ADD]), ground_of(GLUE_LIKE), set())
@example(([PARTITIONED], [ADD_THREE]), ground_of(DELTA_LIKE), set())
@example(([], [PARTITIONED, ADD, INSERT, OVERWRITE]), ground_of(METASTORE), set())
@example(([PARTITIONED, ADD], [WIDEN, INSERT, WIDEN_ALL]), ground_of(METASTORE), set())
def test_no_chain_of_hops_is_cheaper(drawn: tuple[Draws, Draws], ground: EdgeRules, lost: set[int]) -> None:
    case = Case.of(*drawn)
    case.lose(lost)
    for group in case.groups():
        chain = chain_of(case, group)
        target = Target(case.source, case.history(chain.tables)[0], lambda _: None)
        problem = case.problem(chain, target, ground)
        solution = solve(problem)
        if not any(hop.bridge for hop in solution.plan.hops):
            reached, cost = cheapest(problem)
            assert (solution.reached, cost_of(solution)) == (reached, cost)


@CASES
@given(histories, grounds, losses)
def test_files_that_were_not_seen_are_never_asked_for_and_the_last_known_state_is_reached(
    drawn: tuple[Draws, Draws], ground: EdgeRules, lost: set[int]
) -> None:
    case = Case.of(*drawn)
    case.lose(lost)
    for group in case.groups():
        chain = chain_of(case, group)
        states = case.history(chain.tables)
        reader = Reader(states)
        target = Target(case.source, states[0], reader.look)
        problem = case.problem(chain, target, ground)
        solution = solve(problem)
        follow(target, reader, solution.plan.hops)
        if solution.reached != problem.last:
            assert not any(hop.bridge for hop in solution.plan.hops)
        reached = problem.stages[solution.reached - 1].event_id if solution.reached else case.cursor
        assert target.tables == case.image(case.source.state_at(reached), chain.tables)


@CASES
@given(histories, grounds, st.integers(0, 5), st.integers(0, 2))
def test_a_target_that_died_anywhere_is_found_again_and_goes_on(
    drawn: tuple[Draws, Draws], ground: EdgeRules, hops: int, items: int
) -> None:
    """Where partitions got columns in the window it may be read exactly: nothing at the target says what they have."""
    case = Case.of(*drawn)
    for group in case.groups():
        chain = chain_of(case, group)
        states = case.history(chain.tables)
        reader = Reader(states)
        target = Target(case.source, states[0], reader.look)
        first = solve(case.problem(chain, target, ground))
        follow(target, reader, first.plan.hops[:hops])
        if hops < len(first.plan.hops) and first.plan.hops[hops].in_parts > 1 and items:
            follow(target, reader, [begun(first.plan.hops[hops], items)])
        second = solve(case.problem(chain, target, ground))
        follow(target, reader, second.plan.hops)
        if second.missing and any(step.cascades for step in chain.steps):
            continue
        assert first.missing or target.tables == states[-1]
        third = solve(case.problem(chain, target, ground))
        follow(target, reader, third.plan.hops)
        assert all(cascades(hop.operation) for hop in third.plan.hops)


def cascades(operation: Operation) -> bool:
    """Nothing at the target says whether its partitions have the table's columns already; they are given them again."""
    match operation:
        case AlterTable() | Rebuild() | CommitTable():
            return bool(operation.cascade)
        case _:
            return False


@CASES
@given(histories, grounds, st.integers(0, 100))
def test_the_end_does_not_depend_on_where_the_log_is_cut(
    drawn: tuple[Draws, Draws], ground: EdgeRules, percent: int
) -> None:
    case = Case.of(*drawn)
    at = len(case.window) * percent // 100
    while 0 < at < len(case.window) and same_run(case.window[at - 1], case.window[at]):
        at += 1
    target = Target(case.source, case.source.state_at(case.cursor), lambda _: None)
    for window in (case.window[:at], case.window[at:]):
        for group in case.groups(window):
            solution = solve(case.problem(chain_of(case, group), target, ground))
            if solution.missing:
                return
            follow(target, Reader([]), solution.plan.hops)
        case.cursor = window[-1].event_id if window else case.cursor
    newest = case.source.states[-1][1]
    assert target.tables == newest
    assert incarnations(target.tables) == incarnations(newest)


@CASES
@given(histories, grounds, st.sampled_from(NAMES), st.booleans())
def test_a_table_that_the_source_had_long_ago_makes_way(
    drawn: tuple[Draws, Draws], ground: EdgeRules, name: TableName, partitioned: bool
) -> None:
    """Policies that keep what the source drops leave such tables."""
    case = Case.of(*drawn)
    for group in case.groups():
        chain = chain_of(case, group)
        states = case.history(chain.tables)
        if chain.names.get(name, 0) is None:
            old = TableShown(-1, -1, None if partitioned else frozenset(), {}, 0, "kept")
            target = Target(case.source, states[0] | {name: old}, lambda _: None)
            solution = solve(case.problem(chain, target, ground))
            for hop in solution.plan.hops:
                target.run(hop)
            assert solution.missing or target.tables == states[-1]


@CASES
@given(histories)
def test_tables_that_renames_link_are_together_and_all_others_apart(drawn: tuple[Draws, Draws]) -> None:
    window = Case.of(*drawn).window
    linked = [{entry.keys.table, entry.keys.other} - {None} for entry in window]
    for one, other in product(linked, repeat=2):
        if one & other:
            one |= other
            other |= one
    found = groups(window)
    assert sorted((entry for group in found for entry in group), key=lambda entry: entry.event_id) == window
    assert [group[0].event_id for group in found] == sorted(group[0].event_id for group in found)
    for group in found:
        assert [entry.event_id for entry in group] == sorted(entry.event_id for entry in group)
    of = {entry.event_id: number for number, group in enumerate(found) for entry in group}
    for (one, tables), (other, more) in product(zip(window, linked, strict=True), repeat=2):
        assert (of[one.event_id] == of[other.event_id]) == bool(tables & more)


def cost_of(solution: Solution) -> tuple[int, int]:
    hops = solution.plan.hops
    return sum(hop.in_parts > 1 for hop in hops), sum(HOP_BYTES + hop.bytes for hop in hops)


def cheapest(problem: Problem) -> tuple[int, tuple[int, int]]:
    """The last state that any chain of hops reaches, and what the cheapest to it costs, by trying all of them."""
    states = list(whole_states(problem))
    costs = {0: (0, 0)}
    for later, earlier in product(range(len(states)), repeat=2):
        if earlier >= later or earlier not in costs or not known(problem, states[later], later):
            continue
        if (price := price_of(problem.ground, problem, states, earlier, later)) is not None:
            parts, work = costs[earlier]
            costs[later] = min(costs.get(later, (10**9, 0)), (parts + price[0], work + price[1]))
    return max(costs), costs[max(costs)]


Price = tuple[int, int]
"""1 for an operation in parts, and the work."""
Whole = dict[int, tuple[TableName, HeadValue, dict[str, PartValue], tuple[EventId, EventId]]]
"""A state: of each table that is shown its name, header, partitions, and the newest events that changed the columns of
all partitions and of the table alone."""


def whole_states(problem: Problem) -> Iterator[Whole]:
    names, heads = problem.first.shown(), dict(problem.first.heads)
    parts = {cell: part for cell, part in problem.first.parts.items() if part is not None}
    columns: dict[int, tuple[EventId, EventId]] = {}

    def now() -> Whole:
        return {
            lineage: (
                name,
                heads[lineage],
                {cell[1]: part for cell, part in parts.items() if cell[0] == lineage},
                columns.get(lineage, (0, 0)),
            )
            for lineage, name in names.items()
        }

    yield now()
    for stage in problem.stages:
        for touch in stage.touches:
            names.pop(touch.lineage, None)
            if touch.named is not None:
                names[touch.lineage] = touch.named
            if touch.head is not None:
                heads[touch.lineage] = touch.head
            for name, _, part in touch.parts:
                parts.pop((touch.lineage, name), None)
                if part is not None:
                    parts[touch.lineage, name] = part
            cascade, alone = columns.get(touch.lineage, (0, 0))
            columns[touch.lineage] = (
                stage.event_id if touch.cascade else cascade,
                stage.event_id if touch.columns else alone,
            )
        yield now()


def known(problem: Problem, state: Whole, index: int) -> bool:
    contents = [head.content for _, head, _, _ in state.values()]
    contents += [part.content for _, _, parts, _ in state.values() for part in parts.values()]
    doubted: set[int] = set()
    for stage in problem.stages[:index]:
        doubted -= {touch.lineage for touch in stage.touches if touch.cascade}
        doubted |= stage.doubtful
    return UNLISTED not in contents and not doubted & state.keys()


def price_of(ground: EdgeRules, problem: Problem, states: list[Whole], earlier: int, later: int) -> Price | None:
    """The one operation between two states, if there is one."""
    was, now = states[earlier], states[later]
    differing = [lineage for lineage in was.keys() | now.keys() if was.get(lineage) != now.get(lineage)]
    if not differing:
        return 0, 0
    if len(differing) > 1:
        return None
    (lineage,) = differing
    if lineage not in now:
        return 0, HOP_BYTES
    name, head, parts, (cascade, alone) = now[lineage]
    if lineage not in was:
        total = head.size + sum(part.size for part in parts.values())
        return (0, HOP_BYTES + total) if lineage in problem.chain.complete else None
    old_name, old_head, old_parts, (old_cascade, _) = was[lineage]
    changes = Changes(old_parts, parts)
    if old_cascade < cascade < alone or any(part.version == BASE for part in changes.added.values()):
        return None
    new_content = head.size if head.content != old_head.content else 0
    price: Price | None = None
    if ground.abilities.any_difference:
        if name == old_name:
            return 0, HOP_BYTES + new_content + changes.bytes()
        price = (0, HOP_BYTES) if head.content == old_head.content and not changes.count() else None
    elif not changes.count():
        same_definition = (name, head.version) == (old_name, old_head.version)
        price = 0, HOP_BYTES + new_content
        if same_definition and ground.in_place and extends(old_head.content, head.content):
            price = 0, HOP_BYTES + head.size - old_head.size
    elif (name, head, cascade) == (old_name, old_head, old_cascade):
        price = price_of_partitions(ground, changes)
    rest = {key: value for key, value in was.items() if key != lineage}
    if price is None and rest in states[earlier + 1 : later]:
        return 0, HOP_BYTES + changes.bytes()
    return price


class Changes:
    """What partitions differ in."""

    def __init__(self, was: dict[str, PartValue], now: dict[str, PartValue]) -> None:
        self.added = {name: part for name, part in now.items() if name not in was}
        self.removed = {name: part for name, part in was.items() if name not in now}
        self.changed = {name: (was[name], part) for name, part in now.items() if was.get(name, part) != part}

    def count(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)

    def bytes(self) -> int:
        new = [part for was, part in self.changed.values() if was.content != part.content]
        return sum(part.size for part in (*self.added.values(), *new))


def price_of_partitions(ground: EdgeRules, changes: Changes) -> Price | None:
    limits, count, work = ground.abilities.limits, changes.count(), HOP_BYTES + changes.bytes()
    if count == 1 and changes.changed:
        ((was, now),) = changes.changed.values()
        same_definition = (was.lineage, was.version) == (now.lineage, now.version)
        if same_definition and ground.in_place and extends(was.content, now.content):
            return 0, HOP_BYTES + now.size - was.size
    if not changes.changed and len(changes.added) == len(changes.removed) == 1:
        (now,), (was,) = changes.added.values(), changes.removed.values()
        if (was.lineage, was.content) == (now.lineage, now.content):
            return 0, HOP_BYTES
    if not changes.removed and not changes.changed:
        return in_parts(ground, count, limits.add_partitions), work
    if not changes.added and not changes.changed:
        return in_parts(ground, count, limits.drop_partitions), work
    if ground.rows or not (changes.added or changes.removed):
        return in_parts(ground, count, limits.alter_partitions), work
    return None


def in_parts(ground: EdgeRules, count: int, limit: int) -> int:
    return int(count > limit or (count > 1 and not ground.abilities.atomic_lists))


class Reader:
    """Sees only states of the source, none before the last one seen; `excepted` while an announced exception lasts."""

    def __init__(self, states: list[State]) -> None:
        self.states, self.at, self.excepted = states, 0, False

    def look(self, seen: State) -> None:
        at = next((index for index in range(self.at, len(self.states)) if self.states[index] == seen), None)
        assert at is not None or self.excepted, f"the source never showed {seen} after state {self.at}"
        self.at = self.at if at is None else at


SHAPES: dict[str, Callable[[int], list[Entry]]] = {
    "one table altered": lambda size: [alteration(event) for event in range(1, size)],
    "its header and its partitions by turns": lambda size: [
        alteration(event) if event % 2 else alteration(event, f"p={event % 100}") for event in range(1, size)
    ],
    "a partition added between alterations": lambda size: [
        alteration(event) if event % 50 else addition(event, f"p={event}") for event in range(1, size)
    ],
    "partitions that come and go": lambda size: [
        addition(event, f"p={event // 2}") if event % 2 == 0 else removal(event, f"p={event // 2}")
        for event in range(2, size)
    ],
    "dropped and made again": lambda size: [
        Entry(
            event,
            0,
            "",
            Keys([EventKind.DROP_TABLE, EventKind.CREATE_TABLE][event % 2], T, shape=TableShape.PARTITIONED),
        )
        for event in range(2, size)
    ],
    "a partition that stays early to late": lambda size: [
        addition(1, "p=x"),
        *(alteration(event, f"p={event % 3}") for event in range(2, size, 2)),
        removal(size, "p=x"),
    ],
}
T = TableName("d", "t")


def alteration(event: EventId, partition: str = "") -> Entry:
    if not partition:
        return Entry(event, 0, "", Keys(EventKind.ALTER_TABLE, T, shape=TableShape.PARTITIONED))
    keys = Keys(EventKind.ALTER_PARTITIONS, T, shape=TableShape.PARTITIONED, partitions=(partition,), locations=("/x",))
    return Entry(event, 0, "", keys)


def addition(event: EventId, partition: str) -> Entry:
    keys = Keys(EventKind.ADD_PARTITIONS, T, shape=TableShape.PARTITIONED, partitions=(partition,), locations=("/x",))
    return Entry(event, 0, "", keys)


def removal(event: EventId, partition: str) -> Entry:
    return Entry(
        event, 0, "", Keys(EventKind.DROP_PARTITIONS, T, shape=TableShape.PARTITIONED, partitions=(partition,))
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_search_looks_no_farther_than_the_chain_is_long(shape: str) -> None:
    assert looks(SHAPES[shape](8000)) < 5 * looks(SHAPES[shape](2000)) + 1000


def looks(entries: list[Entry]) -> int:
    parts = {f"p={number}": ObservedPart(0, "1", "old") for number in range(100)}
    problem = problem_of(
        fold(entries),
        {T: ObservedTable(0, "1", parts=parts)},
        lambda _: 0,
        lambda _: True,
        lambda _: ("new", 1),
        ground_of(METASTORE),
    )
    search = ChainSearch(problem, kept_stops(problem, visitable_states(problem)), problem.origin, problem.last)
    assert search.run(bridges=False) == problem.last
    return search.looks
