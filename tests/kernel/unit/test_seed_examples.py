"""The examples of Hive's replication document, played through the fold and the planner.

What is asserted are the states that a reader of the target sees one after the other: each was the source's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from calque.core.plan.edges import EdgeRules
from calque.core.plan.problem import problem_of
from calque.core.plan.search import solve
from calque.core.states.fold import fold
from calque.core.states.locate import ObservedPart, ObservedTable
from calque.model.hive import Partition
from calque.model.names import EventId
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    HiddenBuild,
    Hop,
    Operation,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)
from calque.model.policy import TargetCapabilities
from support.sources.logs import Log, part, partitioned

Rows = Mapping[tuple[EventId, str], str]
"""The rows of a partition after an event, as words; an event whose files were not seen in time is left out."""


def hops(
    log: Log,
    rows: Rows,
    shown: Mapping[str, str] | None,
    *,
    after: EventId,
    abilities: TargetCapabilities | None = None,
) -> list[str]:
    """What the window of the log's events after `after` does to a target that showed the partitions `shown` (None: no
    table) at `after`."""

    def listed(data: Data) -> tuple[str, int] | None:
        found = rows.get((data.event_id, data.location.rpartition("=")[2]))
        return None if found is None else (found, len(found.split()))

    def extends(one: str, other: str) -> bool:
        return set(one.split()) <= set(other.split())

    entries = [entry for entry in log.entries() if entry.event_id > after]
    chain = fold(entries)
    [name] = chain.tables
    parts = {f"p={value}": ObservedPart(after, "0", found, len(found)) for value, found in (shown or {}).items()}
    touched = {partition: found for partition, found in parts.items() if (1, partition) in chain.parts}
    observed = {name: None if shown is None else ObservedTable(after, "0", parts=touched)}
    ground = EdgeRules(abilities or TargetCapabilities(), extends)
    problem = problem_of(chain, observed, lambda _: after, lambda _: True, listed, ground)
    solution = solve(problem)
    assert solution.reached == problem.last
    return [in_words(hop, rows) for hop in solution.plan.hops]


def in_words(hop: Hop, rows: Rows) -> str:
    assert not hop.bridge
    return f"{hop.to_event}: {told(hop.operation, rows)}"


def told(operation: Operation, rows: Rows) -> str:
    def of(listed: tuple[tuple[str, Part | None], ...]) -> str:
        return ", ".join(
            f"{name[2:]} = {rows[found.data.event_id, name[2:]]}" if found else f"no {name[2:]}"
            for name, found in listed
        )

    match operation:
        case CreateTable():
            return "create the table"
        case HiddenBuild():
            return f"build the table with {of(operation.partitions)}"
        case AddPartitions():
            return f"add {of(operation.partitions)}"
        case AlterPartitions():
            return f"alter {of(operation.partitions)}"
        case DropPartitions():
            return f"drop {', '.join(name[2:] for name in operation.names)}"
        case Publish():
            return f"append to {operation.partition[2:]}: {rows[operation.data.event_id, operation.partition[2:]]}"
        case CommitTable():
            return f"commit {of(operation.partitions)}"
        case DropTable():
            return "drop the table"
        case AlterTable() | RenamePartition() | PrepareFlipSweep() | Rebuild():
            raise AssertionError(operation)
        case _:
            assert_never(operation)


# Rubberbanding: 10 CREATE TABLE blah, 20 INSERT p=a (5), 30 INSERT p=b (10), 40 INSERT p=a (15)

BLAH = partitioned("blah")
A, B = part(BLAH, "a"), part(BLAH, "b")
RUBBERBAND = {(20, "a"): "5", (30, "b"): "10", (40, "a"): "5 15"}


def rubberband() -> Log:
    """The first insert into a partition adds it."""
    return Log().at(10).create(BLAH).at(20).add(BLAH, A).at(30).add(BLAH, B).at(40).insert(BLAH, A)


def test_the_whole_window_is_one_hop_where_a_table_can_be_built_hidden() -> None:
    assert hops(rubberband(), RUBBERBAND, None, after=5) == ["40: build the table with a = 5 15, b = 10"]


def test_from_the_empty_table_both_partitions_are_added_at_once() -> None:
    assert hops(rubberband(), RUBBERBAND, {}, after=10) == ["40: add a = 5 15, b = 10"]


def test_from_the_first_row_the_second_comes_before_the_third() -> None:
    assert hops(rubberband(), RUBBERBAND, {"a": "5"}, after=20) == ["30: add b = 10", "40: append to a: 5 15"]


def test_from_two_rows_the_third_is_appended() -> None:
    assert hops(rubberband(), RUBBERBAND, {"a": "5", "b": "10"}, after=30) == ["40: append to a: 5 15"]


def test_the_files_of_a_state_that_is_not_shown_need_not_be_known() -> None:
    late = {key: rows for key, rows in RUBBERBAND.items() if key != (20, "a")}
    assert hops(rubberband(), late, {}, after=10) == ["40: add a = 5 15, b = 10"]


def test_a_target_that_commits_any_difference_of_a_table_needs_one_commit() -> None:
    done = hops(rubberband(), RUBBERBAND, {"a": "5"}, after=20, abilities=TargetCapabilities(any_difference=True))
    assert done == ["40: commit a = 5 15, b = 10"]


def test_a_table_that_is_dropped_again_in_the_window_was_never_there() -> None:
    assert hops(rubberband().at(50).drop(BLAH), RUBBERBAND, None, after=5) == []


# The same partition three times: 100 ADD p=1, 110 DROP p=1, 120 ADD p=1, at one location with other files

TBL = partitioned("tbl")
ONE = part(TBL, "1")


def three_times() -> Log:
    return Log().at(100).add(TBL, ONE).at(110).drop_partitions(TBL, ONE).at(120).add(TBL, ONE)


def test_the_newest_of_three_is_added_and_the_files_of_the_first_are_never_asked_for() -> None:
    assert hops(three_times(), {(120, "1"): "new"}, {}, after=90) == ["120: add 1 = new"]


def test_a_window_that_ends_at_the_drop_does_nothing() -> None:
    log = Log().at(100).add(TBL, ONE).at(110).drop_partitions(TBL, ONE)
    assert hops(log, {}, {}, after=90) == []


def test_a_target_that_showed_the_first_shows_the_last_with_its_own_files() -> None:
    rows = {(120, "1"): "new"}
    assert hops(three_times(), rows, {"1": "old"}, after=100) == ["120: alter 1 = new"]


def test_equal_files_of_another_incarnation_are_another_partition() -> None:
    rows = {(120, "1"): "old"}
    assert hops(three_times(), rows, {"1": "old"}, after=100) == ["120: alter 1 = old"]


# Bootstrap: 184 DROP Px, 196 ADD Pa, 204 ADD Pb, 216 DROP Py, while the table is read

T1 = partitioned("t1")
CONSOLIDATED = {(196, "a"): "1", (204, "b"): "2"}


def consolidation() -> Log:
    found: dict[str, Partition] = {value: part(T1, value) for value in "xyab"}
    log = Log().at(184).drop_partitions(T1, found["x"]).at(196).add(T1, found["a"])
    return log.at(204).add(T1, found["b"]).at(216).drop_partitions(T1, found["y"])


def test_what_was_read_at_200_is_exact_there_and_only_later_events_are_played() -> None:
    read = {"a": "1", "y": "9"}
    assert hops(consolidation(), CONSOLIDATED, read, after=200) == ["204: add b = 2", "216: drop y"]


def test_what_was_read_at_170_goes_through_the_fewest_states_of_the_source() -> None:
    read = {"x": "8", "y": "9"}
    assert hops(consolidation(), CONSOLIDATED, read, after=170) == [
        "184: drop x",
        "204: add a = 1, b = 2",
        "216: drop y",
    ]
