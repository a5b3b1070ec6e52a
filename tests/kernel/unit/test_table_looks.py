"""The tables of many groups are read at the target together, and each look is used once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

import pytest

from calque.core.images.table_layout import with_format
from calque.engine.sides.sides import TargetSide
from calque.engine.window.groups import Group
from calque.engine.window.table_looks import TableLooks
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Storage, Table
from calque.model.journal import Entry, EventKind, Keys
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.ports.forwarding import ForwardingCatalog
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage

P = ParamSpec("P")
R = TypeVar("R")
POLICY = Policy("dr", "hq", include=("d1.*", "d2.*"), rename={"d2": "d2_dr"}, warehouse="file:/target")


class Looked:
    """A target that notes how its catalog is asked, and does not tell of many tables while it has `trouble`."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.store, self.asked = MemoryMetastore(), list[str]()
        self.trouble: Exception | None = None
        for database in ("d1", "d2_dr"):
            self.store.create_database(Database(database))
        catalog = ForwardingCatalog(MemoryCatalog(self.store), self.note)
        self.side = TargetSide.of(policy, catalog, MemoryLedger(), MemoryStorage())

    def note(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        self.asked.append(method)
        if self.trouble is not None and method == "headers":
            raise self.trouble
        return call(*arguments, **named)

    def make(self, database: str, table: str, table_format: str = "") -> Table:
        made = with_format(Table(table, database, storage=Storage((Column("x", "int"),))), table_format)
        self.store.create_table(made)
        found = self.side.catalog.table(TableName(database, table))
        assert found is not None
        self.asked.clear()
        return found


@pytest.fixture
def target() -> Looked:
    return Looked()


def group(event_id: int, name: TableName, was: TableName | None = None, kind: EventKind | None = None) -> Group:
    kind = kind or (EventKind.ALTER_TABLE if was is None else EventKind.RENAME_TABLE)
    return Group([Entry(event_id, 0, "", Keys(kind, name, was))])


def test_tables_of_many_groups_are_read_by_one_call_for_each_database(target: Looked) -> None:
    one, other = target.make("d1", "one"), target.make("d2_dr", "other")
    groups = [
        group(1, TableName("d1", "one")),
        group(2, TableName("d1", "new"), TableName("d2", "other")),
        group(3, TableName("elsewhere", "t"), TableName("d1", "gone")),
    ]
    looks = TableLooks(target.side, groups)
    assert [dict(looks.take(each)) for each in groups] == [
        {TableName("d1", "one"): one},
        {TableName("d1", "new"): None, TableName("d2", "other"): other},
        {TableName("d1", "gone"): None},
    ]
    assert target.asked == ["headers", "headers"]


def test_no_more_groups_are_looked_at_than_are_begun_soon(target: Looked) -> None:
    groups = [group(number, TableName("d1", f"t{number}")) for number in range(1, 8)]
    looks = TableLooks(target.side, groups, ahead=3)
    calls = []
    for each in groups:
        looks.take(each)
        calls.append(len(target.asked))
    assert calls == [1, 1, 1, 2, 2, 2, 3]


def test_a_look_is_used_once(target: Looked) -> None:
    target.make("d1", "t")
    first = group(1, TableName("d1", "t"))
    looks = TableLooks(target.side, [first])
    assert list(looks.take(first)) == [TableName("d1", "t")]
    assert looks.take(first) == {}
    assert looks.take(group(1, TableName("d1", "t"))) == {}


@pytest.mark.parametrize("trouble", [Unavailable("The target does not answer", "It is down", "Wait"), KeyError("name")])
def test_tables_that_cannot_be_read_together_are_left_to_their_groups(target: Looked, trouble: Exception) -> None:
    groups = [group(1, TableName("d1", "t")), group(2, TableName("d1", "u"))]
    looks = TableLooks(target.side, groups)
    target.trouble = trouble
    assert [dict(looks.take(each)) for each in groups] == [{}, {}]
    assert target.asked == ["headers"]


def test_a_table_with_a_log_is_left_to_its_group(target: Looked) -> None:
    target.make("d1", "t", "delta")
    first = group(1, TableName("d1", "t"))
    assert TableLooks(target.side, [first]).take(first) == {}


def test_a_group_that_drops_a_table_or_leaves_files_at_the_source_reads_when_it_begins(target: Looked) -> None:
    dropping = group(1, TableName("d1", "t"), kind=EventKind.DROP_TABLE)
    assert TableLooks(target.side, [dropping]).take(dropping) == {}
    alone = Looked(replace(POLICY, data="none"))
    altering = group(1, TableName("d1", "t"))
    assert TableLooks(alone.side, [altering]).take(altering) == {}
    assert target.asked == alone.asked == []
