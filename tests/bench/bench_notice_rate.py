"""How fast a backlog of notices is sent, against a bare producer loop of the same bodies, and what many topics cost.

The journal is a Delta table with so many ADD_PARTITION events; the broker is a real Kafka. The bare loop produces the
same bodies with the same keys to one topic, by one idempotent producer, and waits for the last answer. Then the
same notices go to as many topics as `--topics` says: memory, threads and sockets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer
from rig import arguments, tell, tell_machine, tell_ratio

from calque.adapters.delta.journal import DeltaJournal
from calque.core.events.rows import table_of
from calque.engine.sides.sides import SourceSide
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import TableName
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.notices.adapters.kafka.broker import KafkaNoticeBroker
from calque.plugins.notices.core.channel import Channel
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.engine.ordered_publisher import OrderedPublisher
from calque.plugins.notices.engine.positions import KeyRecords
from calque.plugins.notices.engine.source_feed import SourceFeed
from calque.plugins.notices.model import Message
from calque.sandbox import Broker
from support.memory.gaps import MemoryGaps
from support.services.noticebrokers import threads_and_sockets

TABLES = 100


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, notices=100_000, runs=3, topics=10_000).parse_args(given)
    with TemporaryDirectory() as folder, Broker.start(Path(folder) / "broker") as broker:
        tell_machine()
        journal = written(Path(folder) / "journal", options.notices, TABLES)
        bare, sent = [], []
        for run in range(options.runs):
            heard: list[Message] = []
            seconds = drained(journal, broker, f"run{run}", heard)
            sent.append(options.notices / seconds)
            bare.append(options.notices / produced(broker, f"bare{run}", heard))
        print(f"{options.notices} notices of {TABLES} tables, one topic")
        baseline = tell("  bare producer loop", bare, "notices/s")
        tell_ratio("  calque / bare", tell("  calque, journal to acknowledgement", sent, "notices/s") / baseline)
        if options.topics:
            many = written(Path(folder) / "many", options.topics, options.topics)
            before, memory = threads_and_sockets(), own_memory()
            seconds = drained(many, broker, "{database}.{table}", [])
            after = threads_and_sockets()
            print(f"{options.topics} topics that are made, one notice each: {seconds:.1f} s")
            print(f"  threads {before[0]} before, {after[0]} after; sockets {before[1]} before, {after[1]} after")
            print(f"  RSS {memory:.0f} MiB before, {own_memory():.0f} MiB after")


class Held:
    """Records in a dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, Mapping[str, Any]] = {}

    def put(self, name: str, record: Mapping[str, Any]) -> None:
        self.held[name] = record

    def read(self, name: str) -> Mapping[str, Any] | None:
        return self.held.get(name)


class Copying:
    """A broker, and every message that it takes."""

    def __init__(self, broker: KafkaNoticeBroker, heard: list[Message]) -> None:
        self.broker, self.heard = broker, heard

    def publish(self, messages: Sequence[Message]) -> None:
        self.broker.publish(messages)
        self.heard += messages


def written(folder: Path, count: int, tables: int) -> DeltaJournal:
    journal = DeltaJournal(str(folder))
    for begin in range(0, count, 20_000):
        journal.append(table_of(rows(begin, min(begin + 20_000, count), tables)))
    return journal


def rows(begin: int, end: int, tables: int) -> Iterator[tuple[Event, Keys]]:
    for number in range(begin, end):
        name = TableName("d", f"t{number % tables}")
        event = Event(number + 1, 1_700_000_000, "ADD_PARTITION", "hive", *name, "json-0.2", "")
        yield event, Keys(EventKind.ADD_PARTITIONS, name, partitions=(f"ds=2024-01-01/hour={number}",))


def drained(journal: DeltaJournal, broker: Broker, topic: str, heard: list[Message]) -> float:
    """Seconds until the broker has acknowledged everything that the journal has."""
    selection = Selection.of(("add_partition",), ("*.*",), ())
    channel = Channel("bus", "hq", "source", TopicTemplate(topic, "hq"), selection, "calque", "", lambda table: table)
    connected = KafkaNoticeBroker(Connection(broker.address, {}, "[notices.bus]"))
    records: Any = Held()
    records.put("notices/bus", {"gap": 0, "event_id": 0, "mark": 0, "epoch": 0, "pending": []})
    unused: Any = None
    side = SourceSide("hq", unused, unused, journal, unused, unused, gaps=MemoryGaps())
    publisher = OrderedPublisher(channel, Copying(connected, heard), list)  # type: ignore[arg-type]
    feed = SourceFeed(side, None, publisher, records, "notices/bus", KeyRecords(records, "own", "base"), 0)
    feed.open()
    began = time.perf_counter()
    while feed.send():
        pass
    taken = time.perf_counter() - began
    connected.close()
    return taken


def produced(broker: Broker, topic: str, messages: Sequence[Message]) -> float:
    """Seconds of a bare loop over the same bodies. The topic is there before."""
    KafkaNoticeBroker(Connection(broker.address, {}, "[notices.bus]")).publish([Message(topic, "", b"{}")])
    settings = {"bootstrap.servers": broker.address, "enable.idempotence": True, "linger.ms": 5}
    producer = Producer(settings)
    began = time.perf_counter()
    for message in messages:
        while True:
            try:
                producer.produce(topic, message.body, message.key)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(60) == 0
    return time.perf_counter() - began


def own_memory() -> float:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def test_the_rate_is_measured() -> None:
    main(["--notices", "2000", "--runs", "1", "--topics", "20"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
