"""Every metastore takes marks of partitions like this, in memory and real ones."""

from __future__ import annotations

import pytest

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.marks.adapters.partition_events import HivePartitionEvents
from calque.plugins.marks.ports import PartitionEvents
from support.memory.metastore import MemoryMetastore
from support.memory.partition_events import MemoryPartitionEvents
from support.worlds.metastore_worlds import World


@pytest.fixture
def events(world: World) -> PartitionEvents:
    if isinstance(world.writer, MemoryMetastore):
        return MemoryPartitionEvents(world.writer)
    return HivePartitionEvents(world.writer.client)


def test_a_partition_is_done_once_it_was_said_whether_it_is_there_or_not(world: World, events: PartitionEvents) -> None:
    world.create_database()
    name = world.created(world.table("t", ("ds", "region")))
    day, other = {"ds": "a/b=c ü", "region": "1"}, {"ds": "a/b=c ü", "region": "2"}
    before = world.log.current()
    assert not events.is_done(name, day)
    events.mark_done(name, day)
    events.mark_done(name, day)
    assert (events.is_done(name, day), events.is_done(name, other)) == (True, False)
    assert world.log.current() == before


def test_a_table_that_is_not_there_and_keys_that_it_lacks_are_refused(world: World, events: PartitionEvents) -> None:
    world.create_database()
    name = world.created(world.table("t", ("ds", "region")))
    for table, partition in (
        (TableName(name.database, "none"), {"ds": "1", "region": "1"}),
        (name, {"ds": "1"}),
    ):
        with pytest.raises(Refused):
            events.mark_done(table, partition)
