"""How soon a subscriber hears of a change: from the return of the source's call to the message's arrival.

One channel is at the source and one at a target; a real Kafka, and a plain consumer in this process. A target tells of
a change when the epoch that shows it is published.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import rig
from confluent_kafka import Consumer
from rig import Job, arguments, metastores, percentile, plain_table, target, tell, tell_machine, wait_until

from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox import Broker
from calque.sandbox.writer import HiveClient

DATABASE = "announced"
NAME = TableName(DATABASE, "events")
EVERY_SECONDS = 0.4
PLACES = {"source": "history", "dr": "shown"}


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, changes=40, runs=3).parse_args(given)
    with metastores(2) as (root, servers), Broker.start(root / "broker") as broker:
        tell_machine()
        source = HiveClient(servers[0].uri)
        folder = root / "source"
        rig.write_file(folder / NAME.table / "first", b"1,one,1.0\n")
        source.create_database(Database(DATABASE, location=folder.as_uri()))
        source.create_table(plain_table(DATABASE, NAME.table, folder / NAME.table))
        sections = {"dr": target(servers[1], root / "warehouse", DATABASE, "announced_dr")}
        job = Job(root / "job", servers[0], sections, "50ms")
        job.config.write_text(job.config.read_text() + channels(broker))
        with job.running(), Heard(broker) as heard:
            measure(source, HiveClient(servers[1].uri), heard, options.changes, options.runs)


def channels(broker: Broker) -> str:
    lines = [""]
    for place, topic in PLACES.items():
        lines += [f"[notices.{topic}]", f'at = "{place}"', f'url = "kafka://{broker.address}"', f'topic = "{topic}"']
        lines += ['types = ["create_table", "alter_table", "found"]', f'include = ["{DATABASE}.*"]']
    return "\n".join(lines)


class Heard:
    """When the notice of each event came, by topic."""

    def __init__(self, broker: Broker) -> None:
        self.moments: dict[tuple[str, int], float] = {}
        self.broker, self.stopping = broker, threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)

    def __enter__(self) -> Heard:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join()

    def listen(self) -> None:
        settings = {"bootstrap.servers": self.broker.address, "group.id": "bench", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "topic.metadata.refresh.interval.ms": 1000, "fetch.wait.max.ms": 10})
        consumer.subscribe(list(PLACES.values()))
        while not self.stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                notice = json.loads(message.value() or b"")
                self.moments.setdefault((message.topic() or "", notice["event_id"]), time.perf_counter())
        consumer.close()


def measure(source: HiveClient, at_target: HiveClient, heard: Heard, changes: int, runs: int) -> None:
    wait_until(lambda: at_target.catalog.table(TableName("announced_dr", NAME.table)), 0.1)
    while not all(any(topic == one for topic, _ in heard.moments) for one in PLACES.values()):
        change(source)
        time.sleep(1)
    found: dict[str, list[list[float]]] = {topic: [] for topic in PLACES.values()}
    for _ in range(runs):
        moments = []
        for _ in range(changes):
            moments.append(change(source))
            time.sleep(EVERY_SECONDS)
        for topic, lags in found.items():
            last = (topic, moments[-1][0])
            wait_until(lambda last=last: last in heard.moments, seconds=30)
            lags.append(
                [(heard.moments[topic, event] - at) * 1000 for event, at in moments if (topic, event) in heard.moments]
            )
    for place, topic in PLACES.items():
        print(f"at {place}, {changes} changes in each run")
        tell("  p50", [percentile(run, 0.5) for run in found[topic]], "ms")
        tell("  p95", [percentile(run, 0.95) for run in found[topic]], "ms")


def change(source: HiveClient) -> tuple[int, float]:
    """The event's id, and when the call returned."""
    table = source.catalog.table(NAME)
    assert table is not None
    source.alter_table(NAME, replace(table, parameters={**(table.parameters or {}), "mark": str(time.time_ns())}))
    returned = time.perf_counter()
    return source.current(), returned


def test_the_lag_is_measured() -> None:
    main(["--changes", "3", "--runs", "1"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
