"""`EventImages`: what a plan writes, from messages of which few are held at a time, each decoded once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.events import decode
from calque.core.events.rows import rows_of_events
from calque.engine.apply.definitions import EventImages
from calque.engine.sides.journal_reads import AT_ONCE, messages
from calque.model.hive import Partition, Table
from calque.model.names import EventId, TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CreateTable,
    Data,
    GroupPlan,
    Head,
    Hop,
    Part,
    Version,
)
from support.sources.heavy import MEGABYTE, CountingJournal
from support.sources.logs import Log, part, partitioned

NAME = TableName("d1", "t")
TABLE = partitioned()


def journal_of(log: Log) -> CountingJournal:
    journal = CountingJournal()
    journal.append(rows_of_events(log.events))
    return journal


def padded(table: Table, size: int) -> Table:
    return replace(table, parameters={"padding": "x" * size})


def partition(number: int, size: int = 0) -> Partition:
    return part(TABLE, str(number), parameters={"padding": "x" * size})


def added(event_id: EventId, index: int = 0, columns: EventId = 0) -> tuple[str, Part]:
    return f"p={event_id}.{index}", Part("", Version(event_id, index), Data(event_id, "file:/x"), columns=columns)


def plan_of(*operations: AddPartitions | AlterPartitions | AlterTable | CreateTable) -> GroupPlan:
    hops = tuple(Hop(number + 1, operation, 1) for number, operation in enumerate(operations))
    return GroupPlan((NAME,), len(operations), hops)


def head(event_id: EventId) -> Head:
    return Head(0, Version(event_id))


def test_a_plan_of_light_messages_fetches_them_in_one_call() -> None:
    log = Log().create(TABLE)
    for number in range(2, 50):
        log.add(TABLE, partition(number))
    journal = journal_of(log)
    images = EventImages(
        journal, plan_of(CreateTable(NAME, head(1)), AddPartitions(NAME, tuple(map(added, range(2, 50)))))
    )
    assert len(journal.given) == 1
    assert images.table(Version(1)) == TABLE
    images.passed(0)
    assert [images.partition(Version(number)) for number in range(2, 50)] == [
        partition(number) for number in range(2, 50)
    ]
    assert len(journal.given) == 1


def test_a_plan_without_images_asks_for_nothing() -> None:
    journal = journal_of(Log().create(TABLE))
    EventImages(journal, plan_of())
    assert journal.given == []


def test_heavy_messages_are_held_a_few_at_a_time_in_whatever_order_they_are_used() -> None:
    log = Log()
    for number in range(1, 31):
        log.add(TABLE, partition(number, MEGABYTE))
    journal = journal_of(log)
    parts = tuple(map(added, range(30, 0, -1)))
    images = EventImages(journal, plan_of(AddPartitions(NAME, parts)), 4 * MEGABYTE)
    order = [7, 30, 1, *range(8, 30), *range(2, 7)]
    assert [images.partition(Version(number)).values for number in order] == [(str(number),) for number in order]
    assert max(journal.given) < 6 * MEGABYTE
    assert sum(journal.given) < 31 * MEGABYTE
    assert images.events == {}


def test_what_no_later_hop_needs_is_let_go() -> None:
    log = Log()
    for number in range(1, 11):
        log.alter(TABLE, padded(TABLE, number))
    journal = journal_of(log)
    images = EventImages(journal, plan_of(*(AlterTable(NAME, NAME, head(number)) for number in range(1, 11))))
    for number in range(10):
        assert images.table(Version(number + 1)) == padded(TABLE, number + 1)
        assert len(images.tables) == 1
        images.passed(number)
    assert (images.tables, images.events, len(journal.given)) == ({}, {}, 1)


def test_of_a_message_with_many_partitions_those_that_are_needed_stay_as_long_as_they_are() -> None:
    log = Log().add(TABLE, *(partition(number) for number in range(2000)))
    journal = journal_of(log)
    plan = plan_of(AddPartitions(NAME, (added(1, 7), added(1, 900))), AlterPartitions(NAME, (added(1, 7),)))
    images = EventImages(journal, plan, 1)
    assert images.partition(Version(1, 900)).values == ("900",)
    assert images.partitions[1].keys() == {7, 900}
    images.passed(0)
    assert images.partitions[1].keys() == {7}
    assert images.partition(Version(1, 7)).values == ("7",)
    images.passed(1)
    assert (images.partitions, len(journal.given)) == ({1: {}}, 1)


def test_the_columns_of_a_cascade_are_images_too() -> None:
    log = Log().add(TABLE, partition(1)).alter(TABLE, padded(TABLE, 3))
    images = EventImages(journal_of(log), plan_of(AddPartitions(NAME, (added(1, columns=2),))))
    assert images.partition(Version(1)) == partition(1)
    assert images.table(Version(2)) == padded(TABLE, 3)


def test_what_no_operation_names_is_fetched_when_it_is_asked_for() -> None:
    log = Log().create(TABLE).add(TABLE, partition(2)).add(TABLE, partition(3))
    images = EventImages(journal_of(log), plan_of(AddPartitions(NAME, (added(3),))))
    assert images.partition(Version(2)) == partition(2)
    assert images.table(Version(1)) == TABLE
    assert images.partition(Version(3)) == partition(3)


def test_a_message_that_cannot_be_decoded_says_so_when_it_is_used() -> None:
    log = Log().create(TABLE).write("ADD_PARTITION", {"partitionListJson": ["{"]}, "d1", "t")
    plan = plan_of(CreateTable(NAME, head(1)), AddPartitions(NAME, (added(2),)))
    images = EventImages(journal_of(log), plan)
    assert images.table(Version(1)) == TABLE
    with pytest.raises(decode.Undecodable):
        images.partition(Version(2))


def test_messages_that_are_gone_through_are_fetched_by_their_weight() -> None:
    log = Log()
    for _ in range(20):
        log.alter(TABLE, padded(TABLE, 5 * MEGABYTE))
    journal = journal_of(log)
    assert [event.event_id for event in messages(journal, range(1, 21))] == list(range(1, 21))
    assert max(journal.given) < AT_ONCE + 6 * MEGABYTE
    assert 2 <= len(journal.given) <= 5
