"""Channels of notices in a world in memory: a broker, records that outlive a death, and a subscriber who believes what
the notices say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.engine.failpoints import Hit, passing
from calque.model.journal import Entry, EventKind
from calque.model.names import TableName, table_name
from calque.plugins.marks.ports import MarkStore
from calque.plugins.notices.core.channel import Channel, Format
from calque.plugins.notices.core.selection import FOUND, Selection
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.engine.ordered_publisher import OrderedPublisher
from calque.plugins.notices.engine.positions import KeyRecords
from calque.plugins.notices.engine.source_feed import SourceFeed
from calque.plugins.notices.engine.target_feed import TargetFeed, TargetMarks
from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import Subscription
from support.worlds.worlds import World

TYPES = (
    "create_table",
    "alter_table",
    "drop_table",
    "add_partition",
    "alter_partition",
    "drop_partition",
    "insert",
    "done",
    "gap",
)


class HeardBroker:
    """Remembers every message, in order. `hit` is called before and after each of them is taken."""

    def __init__(self, hit: Hit = passing) -> None:
        self.messages: list[Message] = []
        self.hit = hit

    def publish(self, messages: Sequence[Message]) -> None:
        self.hit("broker.publish.before")
        for message in messages:
            self.messages.append(message)
            self.hit("broker.publish.message")
        self.hit("broker.publish.after")

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def notices(self) -> list[dict[str, Any]]:
        return [json.loads(message.body) for message in self.messages]


class HeldRecords:
    """Records in a dictionary."""

    def __init__(self, hit: Hit = passing) -> None:
        self.held: dict[str, str] = {}
        self.hit = hit

    def put(self, name: str, record: Mapping[str, Any]) -> None:
        self.hit("record.notices.put.before")
        self.held[name] = json.dumps(record)
        self.hit("record.notices.put.after")

    def read(self, name: str) -> Mapping[str, Any] | None:
        return json.loads(self.held[name]) if name in self.held else None

    def names(self, prefix: str = "") -> Sequence[str]:
        return sorted(name for name in self.held if name.startswith(prefix))

    def remove(self, name: str) -> None:
        self.held.pop(name, None)

    def stamp(self, name: str) -> tuple[int, int, int]:
        return (hash(self.held.get(name)), 0, 0)


def channel_of(
    world: World,
    at: str = "source",
    types: Sequence[str] = TYPES,
    topic: str = "{source}.{database}.{table}",
    format: Format = "calque",  # noqa: A002 - as the configuration calls it
) -> Channel:
    name_at_target = world.side.admission.name_at_target if at != "source" else lambda name: name
    selection = Selection.of(tuple(types), ("*.*",), ())
    return Channel("bus", "hq", at, TopicTemplate(topic, "hq"), selection, format, "thrift://hq", name_at_target)


@dataclass
class Site:
    """A broker and the records of channels, which all deaths leave alone."""

    world: World
    hit: Hit = passing
    broker: HeardBroker = field(init=False)
    records: HeldRecords = field(init=False)

    def __post_init__(self) -> None:
        self.broker, self.records = HeardBroker(self.hit), HeldRecords(self.hit)

    def publisher(self, channel: Channel) -> OrderedPublisher:
        return OrderedPublisher(channel, self.broker, lambda: [TableName("d1", "t1")])

    def source_feed(self, marks: MarkStore | None = None, types: Sequence[str] = TYPES) -> SourceFeed:
        """One that is started."""
        world = self.world
        keys = KeyRecords(self.records, "notices/bus/keys", "keys")
        publisher = self.publisher(channel_of(world, types=types))
        feed = SourceFeed(world.source_side, marks, publisher, self.records, "notices/bus", keys, world.begin)
        feed.open()
        return feed

    def target_feed(
        self,
        types: Sequence[str] = (*TYPES, FOUND),
        marks: MarkStore | None = None,
        target_marks: TargetMarks | None = None,
    ) -> TargetFeed:
        """One that is started."""
        world = self.world
        keys = KeyRecords(self.records, "notices/bus/keys", "keys")
        publisher = self.publisher(channel_of(world, at="dr", types=types))
        places = (self.records, "notices/bus", keys, world.begin)
        feed = TargetFeed(
            world.source_side, "dr", world.ledger, publisher, *places, marks=marks, target_marks=target_marks
        )
        feed.open()
        return feed


def without_repetitions(notices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each notice where it came first. What is repeated says the same."""
    first: dict[str, dict[str, Any]] = {}
    for notice in notices:
        assert first.setdefault(notice["id"], notice) == notice
    return list(first.values())


def drain(feed: SourceFeed | TargetFeed, most: int = 10_000) -> None:
    for _ in range(most):
        if not feed.send():
            return
    raise AssertionError("it never comes to an end")


@dataclass
class Believer:
    """What somebody takes the tables to be, with the names of their partitions, who hears the notices alone."""

    tables: dict[TableName, set[str]] = field(default_factory=dict)

    def hear(self, notice: Mapping[str, Any], name_of: Callable[[Mapping[str, str]], str]) -> None:
        if notice["type"] in ("gap", "done"):
            return
        name = TableName(notice["database"], notice["table"])
        partitions = set(map(name_of, notice["partitions"]))
        match notice["type"]:
            case "create_table":
                assert name not in self.tables, notice
                self.tables[name] = set()
            case "drop_table":
                del self.tables[name]
            case "alter_table" if notice["was"] is not None:
                assert name not in self.tables, notice
                self.tables[name] = self.tables.pop(table_name(*notice["was"].split(".")))
            case "add_partition":
                assert not self.tables[name] & partitions, notice
                self.tables[name] |= partitions
            case "drop_partition":
                assert self.tables[name] >= partitions, notice
                self.tables[name] -= partitions
            case "alter_partition":
                assert self.tables[name] >= partitions, notice
            case "insert":
                assert self.tables[name] >= partitions, notice
            case "alter_table":
                assert name in self.tables, notice


def sorted_name(partition: str) -> str:
    """A partition's name with its keys in lexical order."""
    return "/".join(sorted(partition.split("/")))


KINDS = {
    EventKind.CREATE_TABLE: ("create_table",),
    EventKind.ALTER_TABLE: ("alter_table",),
    EventKind.RENAME_TABLE: ("alter_table",),
    EventKind.DROP_TABLE: ("drop_table",),
    EventKind.ADD_PARTITIONS: ("add_partition",),
    EventKind.ALTER_PARTITIONS: ("alter_partition",),
    EventKind.RENAME_PARTITION: ("drop_partition", "add_partition"),
    EventKind.DROP_PARTITIONS: ("drop_partition",),
    EventKind.INSERT: ("insert",),
    EventKind.UNKNOWN: ("alter_table",),
}


def expected_of(entry: Entry) -> tuple[str, ...]:
    """The types of the notices that an event of the source gives."""
    name = entry.keys.table
    hidden = name is None or not name.table or name.database.startswith("_") or name.table.startswith("_calque")
    return () if hidden or entry.keys.facets_only else KINDS.get(entry.keys.kind, ())
