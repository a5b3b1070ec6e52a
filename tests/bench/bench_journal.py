"""The two journals side by side: appending, reading, how soon a reader sees an event, and bytes of an event on disk.

The events are recorded messages. Delta is on a local disk, Kafka on one broker beside it. Disk space is what the folder
and the topic's segments have grown by. Nothing is asserted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from rig import arguments, percentile, tell, tell_machine, tell_ratio, timed

from calque.adapters.delta.journal import DeltaJournal
from calque.core.events.rows import rows_of_events
from calque.model.journal import Event
from calque.model.names import Span
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.ports import Journal
from calque.sandbox import Broker

RECORDING = Path(__file__).parents[1] / "golden" / "events" / "hive-3.1-json.jsonl"
BATCHES = (1, 20, 5_000)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a journal of this kind is opened, and where its bytes are. `name` keeps journals apart."""

    label: str
    open: Callable[[str], Journal]
    bytes: Callable[[str], int]


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, events=50_000, appends=300, runs=3).parse_args(given)
    with TemporaryDirectory() as folder, Broker.start(Path(folder, "broker")) as broker:
        kinds = (
            Kind(
                "Delta",
                lambda name: DeltaJournal(str(Path(folder, name))),
                lambda name: bytes_below(Path(folder, name)),
            ),
            Kind(
                "Kafka",
                lambda name: KafkaJournal(Topic(broker.address, name)),
                lambda name: sum(bytes_below(path) for path in Path(folder, "broker").glob(f"**/{name}-0")),
            ),
        )
        tell_machine()
        rows = sample(options.events)
        figures = [measure(kind, rows, options.appends, options.runs) for kind in kinds]
        print("Kafka / Delta")
        for label in figures[0]:
            tell_ratio(f"  {label}", figures[1][label] / figures[0][label])


def sample(count: int) -> pa.Table:
    """So many events, with the messages of the recording, none twice."""
    recorded = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    events = (
        Event(
            number,
            row["event_time"],
            row["event_type"],
            row["cat_name"] or "",
            row["db_name"] or "",
            row["table_name"] or "",
            row["message_format"] or "",
            unlike(row["message"] or "", number),
        )
        for number, row in enumerate(islice(cycle(recorded), count), 1)
    )
    return rows_of_events(events)


def unlike(message: str, number: int) -> str:
    """The message with a location, a time and the like of its own, as those of one log are."""
    return message.replace("17", f"{number % 100:02}").replace("warehouse", f"warehouse{number}")


def measure(kind: Kind, rows: pa.Table, appends: int, runs: int) -> dict[str, float]:
    """Events per second, milliseconds and bytes, by what they are of."""
    print(kind.label)
    found: dict[str, float] = {}
    for size in BATCHES:
        count = min(rows.num_rows, appends * size)
        rates = [count / appended(kind, f"{kind.label}{run}x{size}", rows.slice(0, count), size) for run in range(runs)]
        found[f"append by {size}"] = tell(f"  append by {size:,}", rates, "events/s")
    name = f"{kind.label}0x{BATCHES[-1]}"
    whole = kind.open(name)
    span = Span(0, whole.last() or 0)
    entries = [len(span) / timed(lambda: kind.open(name).entries(span)) for _ in range(runs)]
    found["read entries"] = tell("  read entries, opened anew", entries, "events/s")
    ids = range(1, min(len(span), 10_000) + 1)
    events = [len(ids) / timed(lambda: kind.open(name).events(ids)) for _ in range(runs)]
    found["read events"] = tell("  read events with messages, opened anew", events, "events/s")
    opened = [1000 * timed(lambda: kind.open(name).events([span.upto // 2])) for _ in range(runs)]
    found["one event"] = tell("  open, read one from the middle", opened, "ms")
    delays = [seen(kind, f"{kind.label}{run}seen", rows, appends) for run in range(runs)]
    for share in (0.5, 0.95):
        label = f"seen, p{share * 100:.0f}"
        found[label] = tell(f"  {label}", [percentile(run, share) for run in delays], "ms")
    looks = [1000 * timed(lambda: [whole.last() for _ in range(500)]) / 500 for _ in range(runs)]
    found["look"] = tell("  look for news in vain", looks, "ms")
    sizes = [kind.bytes(f"{kind.label}{run}x{BATCHES[-1]}") / len(span) for run in range(runs)]
    found["bytes"] = tell("  on disk", sizes, "bytes/event")
    return found


def appended(kind: Kind, name: str, rows: pa.Table, size: int) -> float:
    """Seconds to append the rows, so many at once, once the journal is made."""
    journal = kind.open(name)
    journal.append(rows.slice(0, 1))
    batches = [rows.slice(start, size) for start in range(1, rows.num_rows, size)]
    return timed(lambda: [journal.append(batch) for batch in batches])


def seen(kind: Kind, name: str, rows: pa.Table, count: int) -> list[float]:
    """Milliseconds from the call of an append of one event until a reader, who looks without pause, has its entry."""
    writer, reader = kind.open(name), kind.open(name)
    writer.append(rows.slice(0, 1))
    at: dict[int, float] = {}
    done = threading.Event()

    def follow() -> None:
        after = 1
        while not done.is_set():
            upto = reader.last() or 0
            if upto > after:
                reader.entries(Span(after, upto))
                at.update(dict.fromkeys(range(after + 1, upto + 1), time.perf_counter()))
                after = upto

    thread = threading.Thread(target=follow)
    thread.start()
    delays = []
    for number in range(2, count + 2):
        begun = time.perf_counter()
        writer.append(rows.slice(number - 1, 1))
        while number not in at:
            time.sleep(0.0002)
        delays.append(1000 * (at[number] - begun))
    done.set()
    thread.join()
    return delays


def bytes_below(folder: Path) -> int:
    return 512 * sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file())


def test_journals_are_compared() -> None:
    main(["--events", "2000", "--appends", "20", "--runs", "1"])


if __name__ == "__main__":
    main()
